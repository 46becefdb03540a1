"""Recognise the intent of a request: to continue, to recall, to get the latest or an earlier state. Pure."""

import re

from registry.text.analysis.particles import strip_particles
from registry.text.request.request_words import is_request_word

# asks to continue a conversation
CONTINUE = re.compile(
    r"""^\s*(?:(?:please|can\ (?:you|we)|could\ (?:you|we)|shall\ we|let['’]?s|let\ us|i\ want\ to|i['’]d\ like\ to
              |help\ me|we\ should|ok,?|hey,?|now|so|and)\ )*
        (?:continu(?:e|ing)(?!\ (?:statement|keyword|command|button|label|flag|block|clause|token|inside|vs\.?|versus
            |or\ break|and\ break|on\ error|in\ an?|integration)\b)
          |resume(?!\ (?:template|parser|parsing|builder|format|pdf|writing|review|for)\b)
          |carry\ on|pick(?:ing)?\ (?:(?:it|this|that)\ )?(?:back\ )?up(?!\ lines?)
          |go\ on(?!\ (?:vacation|holiday|a|an)\b)
          |keep\ going|(?:(?:get|go)\ )?back\ (?:to|on)|take\ up|catch\ me\ up)\b
      | \bwhere\ (?:did\ )?(?:were\ )?(?:we|i)\ (?:left|leave|stopped|stop|ended|end)(?:\ off|\ up|\ it)?\b
      | \bwhere\ (?:(?:were|was)\ (?:we|i)|(?:we|i)\ (?:were|was))\b
      | (?:[;,.:]|\b(?:conversation|chat|session)\ and(?:\ then)?)\ (?:please\ |let['’]?s\ |i\ want\ to\ |can\ we\ )?
          (?:continue|resume|carry\ on|go\ on|pick\ (?:it\ |this\ |that\ )?(?:back\ )?up)
          (?:\ (?:it|this|that|there|with\ (?:it|this|that)))?\s*(?:please)?\s*[.!]?$
      | (?:^|[,;.?!])\s*what(?:['’]s|\ is|\ was)\ (?:next|left|still\ open|open)(?:\ to\ do)?
          (?:\ (?:on|with|for|in)\b|\s*\??$)
      | 이어(?:서)?\s*(?:나?가(?:자|기|줘|고|볼까)|하(?:자|고|기)|해\s*줘|진행|계속|작업|할게|할래|부탁|볼까|보자|봐|줘
          |주세요|받아)
      | 이어서\s*해?\s*[.!?~]*$
      | (?:계속|마저)\s*(?:(?:진행|작업)\s*)?(?:하자|해\s*줘|해|할게|하고|진행|가자|이어)?\s*[.!?~]*$
      | 어디\s*까지\s*(?:했|하다|얘기|이야기|진행|작업|왔) | (?:대화|작업|얘기)로\s*(?:다시\s*)?돌아가
    """,
    re.VERBOSE | re.IGNORECASE,
)
# CONTINUE including the rest of its last Korean word
CONTINUE_PHRASE = re.compile(rf"(?:{CONTINUE.pattern})[가-힣]*", re.VERBOSE | re.IGNORECASE)
# asks for the current state
ASKS_LATEST = re.compile(
    r"\b(?:in the end|eventually|currently|at the moment|nowadays|these days|most recently"
    r"|final(?:ly)?|the latest|last word)\b|\bnow\W*$"
    r"|결국|최종|현재|지금|요즘|(?:제일|가장) ?최근|마지막에|이제는",
    re.IGNORECASE,
)
# asks for the conversation in which something was mentioned first
ASKS_FIRST = re.compile(
    r"\b(?:(?:the|my|our) )?(?:very )?(?:first|earliest|oldest) (?:time|conversation|chat|session)s?\b"
    r"|\bdid (?:we|i) first\b"
    r"|(?:맨 ?)?처음(?:으로)?(?= .*(?:얘기|이야기|말|언급|물어|대화))"
    r"|(?:(?:가장|제일) ?)?(?:오래된|첫(?: ?번째)?) ?(?:대화|채팅|세션)",
    re.IGNORECASE,
)
_PAST_CONJUNCTION = (
    r"(?:before(?! (?:last|\w+ing|\d|\w+ \d))|until|over the|(?:right|just|shortly) after|at launch|at the time"
    r"|first (?:pick|choice|plan|idea))"
)
_WHILE = r"(?:when|while|during)"
# asks for the state before a change, but not for an event: "When did she ...", "how did he feel when he ..."
ASKS_PAST = re.compile(
    r"\bbefore\s*(?:[,?.]|$)|\b(?:before (?:we|i|the|it|that|switch\w*|mov\w*|chang\w*)|used to|original(?:ly)?"
    r"|at first|initially|as of (?!today|now|the latest)"
    r"|back (?:then|in|when)|previous(?:ly)?|earlier|did (?:we|i|it|they|you|our|my|the) .{1,40}\bfirst"
    r"|(?:in|at) the (?:very )?(?:beginning|start)|(?:start|begin|began) (?:out|with)"
    r"|(?:at|in|under|my|our|its|the|was|were|did|had|we|\w+ed) first\b(?! (?:time|thing|aid|name|step|week|of|\d))"
    rf"|(?:was|were|did|had)\b.*\b{_PAST_CONJUNCTION}|(?:was|were|had|did (?:we|i|our|my))\b.*\b{_WHILE})\b"
    rf"|^(?:{_PAST_CONJUNCTION}|{_WHILE}(?! (?:did|was|were|had)\b))\b.*\b(?:was|were|did|had)\b"
    r"|[가-힣]기 ?전|원래|전에는|이전에|예전|처음(?!부터)|기존|당시|(?<![월달년주])(?<![월달년주] )초에|시절|까지는"
    r"|때 [가-힣]+던|최초|초창기|(?<!\w)그 ?전|때(?:는|엔|에는)|전에 [가-힣]+던|(?:쓰|다니|타|먹|사|받|모이)던 "
    r"|(?<![고라] )[었했였갔났됐봤썼냈]었",
    re.IGNORECASE,
)
# asks to load a conversation; not part of its subject
LOAD_PHRASE = re.compile(
    r"^(?:please |can you |could you )?(?:pull (?:in|up)|load|fetch|open|check|bring (?:in|up|back))"
    r" (?:the |my |our |that )?(?:context|sessions?|conversations?|chats?|discussions?)"
    r"(?: (?:from when|from|of|about|where|on|with)(?: we (?:worked|were working) on)?)?(?!\w)",
    re.IGNORECASE,
)
# in a request without a subject: asks for the latest conversation
ASKS_RECENT = re.compile(
    r"\b(?:these days|recent(?:ly)?|lately|latest|newest|last|previous|prior|working on)\b"
    r"|최근|요즘|마지막|지난 ?번|저번|아까|방금|이전|하던|하다",
    re.IGNORECASE,
)
# says only that it was recent; not part of the subject
RECENTLY = re.compile(r"\b(?:these days|last time)\b", re.IGNORECASE)
# names the last conversation as the place: "which files did we change in the last session"
LAST_SESSION = re.compile(
    r"\b(?:last|previous|prior|latest|most recent) (?:time|sessions?|chats?|conversations?)\b"
    r"|(?:마지막|지난번?|직전|최근) ?(?:세션|대화|채팅)",
    re.IGNORECASE,
)
# tells the conversation from another one: "the baseplate one, not the FFT one", PETG 말고 ABS 얘기
NOT_THE_OTHER = re.compile(
    r", (?:and |but )?not (?:the|that|about)\b[^,.;:?!]*[.?!]?$"
    r"|\bnot (?:the|that) [^,.;:?!]*\b(?:one|chat|conversation|session)[.?!]?$"
    r"|\S+ ?(?:말고|아니고|아니라)(?= .*(?:얘기|이야기|대화|채팅|세션|거|것)[.?!]?$)",
    re.IGNORECASE,
)
# names the conversation before that one
BEFORE_LAST = re.compile(
    r"(?:\bone |(?<=chat )|(?<=conversation )|(?<=session ))before (?:the |my )?last(?: one)?\b"
    r"|\b(?:second[- ](?:to[- ])?(?:last|latest)|last but one)\b"
    r"|(?:지지난 ?번?|저저번|전전)(?! ?[주달날])",
    re.IGNORECASE,
)
OTHER_PROJECT = re.compile(
    r"\b(?:in|from|for|of) (?:(?:my|the|our|an?|some) ?other|another) (?:projects?|repos?(?:itory)?|codebase)\b"
    r"|(?<![가-힣])다른 ?(?:프로젝트|레포|저장소)(?:에서는?|의)?(?![가-힣])",
    re.IGNORECASE,
)

_MAX_REQUEST = 300  # characters; a longer text has content of its own
_RECALLS = re.compile(
    r"""\b(?:what|where|which|how|why|when)\ did\ (?:we|i)\ (?:\w+\ )?
          (?:discuss|talk|decide|say|settle|agree|conclude|choose|pick|land|end)\b
      | \b(?:what|where|which|how|why|when)\ did\ we\ (?:\w+\ )?
          (?:do|fix|solve|resolve|use|handle|set|configure|implement|name|call|change|leave|find|learn|try|make)\b
      | \bdid\ we\ (?:ever\ )?(?:discuss|talk|decide|settle|agree)\b
      | \bdo\ (?:you|we)\ remember\b | \bremember\ when\ (?:we|i)\b
      | \b(?:we|i)\ (?:talked|spoke|chatted|discussed)\ (?:about\ )?.{0,60}\b(?:before|earlier|yesterday|last|ago)\b
      | \b(?:our|my|the|that|another|last|previous|earlier)\ (?:\w+\ ){0,3}(?:conversations?|chats?|discussions?)\b
      | \b(?:pull|bring|look|dig)\ up\ (?:our|my|the|what)\b
      | (?:지난번|저번|예전|이전|아까|그때|지난주|어제).{0,40}(?:얘기|이야기|말|논의|대화|상담|하던|했던|정한|정했)
      | (?:얘기|이야기|논의|대화|상담)(?:했|하던|한|나눈|나눴) | 기억\s*(?:나|하니|하냐)
      | (?:뭐|뭘|무엇|어떻게|얼마|몇|언제|어디|왜|누구).{0,20}
          (?:했|됐|였|랬|정했|잡았|썼)(?:었)?(?:지|더라|더라고|나)\s*[?.!]*$""",
    re.VERBOSE | re.IGNORECASE,
)
_MIN_LIST_WORDS = 15
_PLAIN = re.compile(r"[^\W\d_]+,?")


def is_recall_request(text: str) -> bool:
    """Return True for a short message that asks about another conversation, or to continue one."""
    request = text.strip()
    return len(request) <= _MAX_REQUEST and bool(CONTINUE.search(request) or _RECALLS.search(request))


def is_word_list(text: str) -> bool:
    """Return True for a list of keywords: no sentences, and no logs or code, which have other characters."""
    words = text.split()
    if len(words) < _MIN_LIST_WORDS or sum(bool(_PLAIN.fullmatch(word)) for word in words) < 0.9 * len(words):
        return False
    plain = [word.strip(",").lower() for word in words]
    return sum(is_request_word(word) or strip_particles(word) != word for word in plain) < 0.05 * len(words)


def normalise_request(text: str) -> str:
    """Normalise case, spaces and final punctuation, to compare two requests."""
    return " ".join(text.casefold().split()).strip(" .?!~")
