"""Patterns of what a request says beside its subject: courtesy, what to do with it, another project. Pure."""

from __future__ import annotations

import re

# courtesy and asides: neither the subject nor a time
ASIDES = re.compile(
    r"""\b(?:be|are)\ so\ kind(?:\ as)?(?:\ to)?\b | \bif\ (?:it['’]s\ |it\ is\ )?possible\b
      | \b(?:when|whenever|if|once)\ you\ (?:have|get|find|find\ yourself\ with)
          \ (?:a\ (?:moment|minute|second|chance)|time|the\ chance)\b
      | \bthank(?:s|\ you)(?:\ (?:so|very)\ much|\ a\ lot)?(?:\ in\ advance)?(?=\s*(?:[,.!]|$))
      | \bi\ (?:was|am)\ (?:just\ )?wondering(?:\ (?:if|whether)(?:\ you\ (?:could|can))?)?\b
      | \b(?:do|would)\ you\ (?:happen\ to|mind)\b | \bsorry\ (?:to\ (?:bother|ask)|for\ asking)(?:\ you)?\b
      | (?<![가-힣])(?:바쁘신데|바쁘실\ ?텐데|죄송하지만|죄송한데|미안한데|미안하지만|실례지만|감사합니다|고맙습니다
          |감사해요|고마워요?|괜찮으시면|시간\ ?되시면|번거로우시겠지만|(?:물어볼|질문할|궁금한)\ ?게(?:\ ?있는데)?
          |말인데요?|말이야|결국(?:에|엔|에는)?|마침내)(?![가-힣])
      | \b(?:we|i)\ (?:worked|were\ working|was\ working|have\ (?:been\ working|worked))\ (?:on|with)\b
      | \b(?:did|have)\ (?:i|we)\ ever\ (?:finish|manage\ to|get\ around\ to|get\ to|end\ up)(?!\w)
      | \bi\ need\ to\ (?:reference|refer\ (?:back\ )?to|look\ (?:at|up)|check|see)\b
      | \b(?:short|long)\ version(?=\W*$)
      | (?<![가-힣])(?:한|두|세|네|몇|여러)\ ?(?:개|가지|건)(?:만|를|을)?(?![가-힣])
      | \b(?:in\ the\ end|eventually|ended\ up|turned\ out|turn\ out\ to\ be|(?:end\ up|turn\ out)(?=\W*$))(?!-)\b
      | \b(?:last|this|the\ other|the\ last)\ time\b(?!\W+(?:zone|stamp|out|series|limit))
      | ^\s*(?:(?:ok(?:ay)?|hey|hi|hello|alright)(?=[\s,.!])[,.!]?|well,)
      | \b(?:so\ far|up\ to\ now|until\ now)\b
      | \b(?:in|from)\ (?:another|a\ different|(?:an|my|some|the)\ other)\ (?:chat|conversation|session)\b
      | (?<![가-힣])다른\ ?(?:대화|채팅|세션)(?:창)?(?:에서는?|의)(?![가-힣])
      | (?<![가-힣])(?:제일|가장|맨)\ ?(?:최근|마지막)(?:에|의)?(?![가-힣])
      | (?<![가-힣])(?:지금|여태|이제)까지(?![가-힣])""",
    re.VERBOSE | re.IGNORECASE,
)
# asks for what holds now
IN_THE_END = re.compile(
    r"\b(?:in the end|eventually|end(?:ed)? up|currently|at the moment|nowadays|these days|most recently"
    r"|final(?:ly)?|the latest|last word|settled? on)\b|\bnow\W*$"
    r"|결국|최종|현재|지금|요즘|(?:제일|가장) ?최근|마지막에|이제는",
    re.IGNORECASE,
)
_THEN = (
    r"(?:before|during|until|over the|(?:right|just|shortly) after|at launch|at the time"
    r"|first (?:pick|choice|plan|idea))"
)
# asks for what held before a change
IN_THE_PAST = re.compile(
    r"\b(?:before (?:we|i|the|it|that|switch\w*|mov\w*|chang\w*)|used to|original(?:ly)?|at first|initially|as of"
    r"|back (?:then|in|when)|previous(?:ly)?|earlier|did .{1,40}\bfirst|(?:in|at) the (?:beginning|start)"
    r"|start(?:ed)? out"
    rf"|(?:was|were|did|had)\b.*\b{_THEN})\b|^{_THEN}\b.*\b(?:was|were|did|had)\b"
    r"|[가-힣]기 ?전|원래|전에는|이전에|예전|처음(?!부터)|기존|당시|초에|시절|까지는|때 [가-힣]+던",
    re.IGNORECASE,
)
OTHER_PROJECT = re.compile(
    r"\b(?:in|from|for|of) (?:(?:my|the|our|an?|some) ?other|another) (?:projects?|repos?(?:itory)?|codebase)\b"
    r"|(?<![가-힣])다른 ?(?:프로젝트|레포|저장소)(?:에서는?|의)?(?![가-힣])",
    re.IGNORECASE,
)
_TALK = r"(?:sessions?|conversations?|chats?|discussions?)"
# what to make of the conversation that is named behind it
BASED_ON = re.compile(
    r"^(?:please |can you |could you )?(?:generate|write|create|draft|prepare|make|produce|update) (?:[\w'’-]+ ){1,6}?"
    r"(?:based on|from|out of|using) "
    rf"(?=(?:our|my|that) (?:[\w'’-]+ ){{0,6}}{_TALK}\W*$"
    rf"|(?:our|the|my|that) (?:[\w'’-]+ ){{0,6}}{_TALK} (?:about|on|where|when|with|from|we|i)\b)",
    re.IGNORECASE,
)
# what to do with the conversation, and nothing of its subject
LEADS_IN = re.compile(
    r"(?:^|(?<=[.!?] ))(?:please |can you |could you )?(?:pull (?:in|up)|load|fetch|open|check|bring (?:in|up|back))"
    r" (?:the |my |our |that )?(?:context|sessions?|conversations?|chats?|discussions?)"
    r"(?: (?:from when|from|of|about|where|on|with))?(?!\w)",
    re.IGNORECASE,
)
