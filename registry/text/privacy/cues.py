"""Find the names of secrets in a text, such as "password", 비번 or "api key". Pure."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from registry.text.privacy.rules import Name, spaced_words

BEFORE = 100  # characters before a cue that are searched for a value: about a sentence


class Secret(NamedTuple):
    """A secret in a text: its kind and position."""

    kind: str
    start: int
    end: int


class Cue(NamedTuple):
    """A name of a secret, at its position in a text."""

    start: int
    end: int
    name: Name
    is_strong: bool
    """True if it names a secret, False if it only announces a login, or is the verb "pass"."""


_PUBLIC = re.compile(r"(?:public[ _-]?key|public|publishable|primary|foreign)[ _-]?\Z", re.IGNORECASE)
_PUBLIC_KEY = re.compile(r"\b(?:site|restore|cache(?: [a-z]+){0,4})[ _-]?\Z", re.IGNORECASE)  # of a key alone
_ARN = re.compile(r"\b(?:arn|urn):[\w:/.-]*$")  # an Amazon resource name that continues after the cue
_NOUN = re.compile(  # before "pass", if it is a noun; not a plural: "the tests pass"
    r"(?:\b(?:the|my|our|your|his|her|their|temp|new|old|root|admin|user|default)\s(?:[\w-]{0,12}[^\Ws]\s)?|_)\Z",
    re.IGNORECASE,
)
_STATEMENT = re.compile(r"(?:  |\t)pass(?: *#|\s*$)", re.MULTILINE)  # of Python
_STATED = re.compile(r" (?:is|was)\b|\s?[:=]")
NO_SECRET = re.compile(  # a label of something public: the value after it is no secret
    r"(?:\bENC\(|;base64,|\bssh-[a-z0-9]+ )\Z"
    r"|(?:(?:sha\d+|md5|hash|digest|integrity|checksum|commit|fingerprint|etag|nonce|opaque|uuid|version|cert)\w*"
    r"|(?:\b|_)(?:id|kid|h1|rev|sha|ssid|(?:user|host)?_?name|user|host|server|network|driver|model|branch|class|tag|image|txn?"
    r"|trace|span|event|ray|realm|vin"
    r"|(?:serial|order|invoice|tracking)(?: (?:number|no\.?))?|path|file|url|from|import|at|[nexy])"
    r"|\b(?:NIST|OWASP|ASVS|PCI[- ]DSS|ISO|IEC|FIPS|ISMS-P|RFC|benchmark|thinkpad|iptime|archer|netgear)"
    r"|이름|아이디|해시(?: \w{1,4})?|버전|모델|시리얼|포트"
    r"|(?:회원|주문|접수|제출|등록|신청|사건|견적|요청|문의|계약|송장|제품|일련|시리얼|모델|예약|사업자) ?번호)"
    r"(?:은|는|이|가)?[\"'\])]{0,2}(?:\s?(?:[:=]|=>)\s?|\sis\s|\s{1,2})(?:W/)?[\"'`“‘(\[]?\Z",
    re.IGNORECASE,
)


def find_cues(text: str, names: Sequence[Name]) -> list[Cue]:
    """Return the names in a text with their positions; of overlapping ones the longest."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters become two in lower case, which would shift the positions
        lowered = text
    spaced, cues = spaced_words(lowered), list[Cue]()
    for name in names:
        at = spaced.find(name.words)
        while at >= 0:
            end = at + len(name.words)
            is_compound = name.kind == "password" or len(name.words) > 3  # 문자인증번호
            is_part = name.is_whole_word and _is_part(text, at, end, is_compound=is_compound)
            is_statement = name.words == "pass" and _STATEMENT.match(text, max(0, at - 2)) is not None
            if not is_part and not is_statement and not _is_public(text[max(0, at - 200) : at], name):
                is_noun = name.words != "pass" or _is_noun(text, at, end)
                cues.append(Cue(at, end, name, is_noun and not name.is_cue))
            at = spaced.find(name.words, end)
    kept = list[Cue]()
    for cue in sorted(cues, key=lambda cue: (cue.start, -cue.end)):
        if not kept or cue.end > kept[-1].end:  # "key" within "signing key"
            kept.append(cue)
    return kept


def _is_noun(text: str, at: int, end: int) -> bool:
    """Return True if "pass" is a noun there: "the wifi pass", "pass is"."""
    return _STATED.match(text, end) is not None or _NOUN.search(text[max(0, at - 24) : at]) is not None


def _is_part(text: str, start: int, end: int, *, is_compound: bool) -> bool:
    """Return True if a name is part of a longer word, except at the end of one like `keystorePass`. A plural's s or a
    Korean particle may follow it."""
    end += text[end : end + 1] == "s"
    before, behind = text[start - 1 : start], text[end : end + 1]
    is_hump = text[start].isupper() and text[start + 1].islower()
    is_korean = text[start] >= "가" and is_compound  # 공유계정
    return (before.isalnum() and not is_hump and not is_korean) or (behind.isascii() and behind.isalnum())


def _is_public(before: str, name: Name) -> bool:
    """Return True if the words before a name make it the name of something public: "public key"."""
    if _PUBLIC.search(before[-16:]) or (name.words.endswith("key") and _PUBLIC_KEY.search(before[-40:])):
        return True
    return ("arn:" in before or "urn:" in before) and _ARN.search(before) is not None
