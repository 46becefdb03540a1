"""How it is said that something is decided, changed, asked or left open, in English and Korean. Pure."""

from __future__ import annotations

import re

SAYS_NOTHING = re.compile(
    r"(?:ok(?:ay)?|k|yes|yep|sure|no|nope|thanks?(?: you)?(?: so much)?|great|nice|perfect|cool|good|go(?: on| ahead)?|"
    r"continue|done|please|sounds good|looks good|lgtm|got it|hi|hello|hey|(?:good )?morning|agreed?|why\??|"
    r"네|넵|예|응|ㅇㅇ|ㅇㅋ|오케이|좋아요?|좋습니다|고마워요?|감사합니다|감사해요|계속(?:해줘|해|하자)?|그래|아니(?:요|야)?|"
    r"알겠습니다|알겠어요?|확인|진행해(?:줘)?|안녕(?:하세요)?|왜\??)[\s.,!~ㅎㅋ]*|\[[^\]]*\]",
    re.IGNORECASE,
)
"""Nor does a placeholder in brackets, as for a picture."""
CHEERS = re.compile(
    r"(?:\w+: )?(?:(?:hey|hi|yeah|yep|oh|so|well|and)[, ]+(?:\w+[,! ]+)?)?"
    r"(?:(?:wow|whoa|woah|woohoo|congrat\w*|haha|aww*|oof|way to go)\b"
    r"(?:,? (?:for|on|that|that['’]s|this|love|you|you['’]re|your|what|so)(?: [\w'’]+){0,5})?"
    r"|(?:thanks?(?: you)?(?: so much)?|take care|sounds (?:great|awesome)|long time no see"
    r"|(?:that|this|it)(?:['’]s| is| looks| sounds)(?: so| really| just)? (?:great|awesome|cool|amazing)"
    r"|(?:good|great|nice|sorry) to (?:see|hear))\b(?: (?:for|to|that|about|from|you)(?: [\w'’]+){0,5})?)"
    r"(?:,? [\w'’]+)?\s*[!.]+"
    r"|(?:우와|축하(?:해|드려)요?|고마워요?|감사해요?|잘 지냈(?:어|니)|오랜만이(?:야|에요))(?:[\s,]+\S+)?\s*[!.~]+",
    re.IGNORECASE,
)
"""What people say to be kind to each other, in one short sentence."""
OFFERS = re.compile(
    r"\bany (?:other |more |further )?questions\b|\banything else\b|\bfurther (?:clarification|assistance|help)\b"
    r"|\b(?:let me know|feel free|hope (?:this|that) helps)\b|\bin more detail\?|\bhappy to help\b"
    r"|궁금한 (?:점|것|게)|언제든|도움이 (?:필요|되)",
    re.IGNORECASE,
)
"""What an answer ends with whatever it was about."""
DECIDES = re.compile(
    r"\b(?:decided|decision(?! tree| making)"
    r"|let['’]?s (?:go with|use(?! (?:the|an|this|your|both)\b)|do (?:it|that)|drop|switch"
    r"|keep(?! (?:it )?(?:up|going|working|pushing|improving)\b))"
    r"|we(?:['’]ll| will| should) (?:use|go with|keep|do)"
    r"|go(?:ing)? with|we (?:have )?agreed|agreed on|settled|(?:we|I) chose|root cause"
    r"|(?:I|I['’]d|I would|we) recommend(?:ed)?|the fix (?:is|was)|the (?:problem|cause) (?:is|was))\b"
    r"|\bturned out (?=\w)"
    r"|\b(?:use|using|go|going|with|take|switch\w*|keep\w*)\b.{0,60}\binstead of\b"
    r"|결정(?!이 필요|해야|할)|하기로|(?:^|\s)정했|쓰기로|채택|선택(?:했|하)|합의|결론"
    r"|로 (?:가자|하자|갑시다|합시다|가죠|하죠|할게|갈게|바꾸자)"
    r"|권장(?!하지)|추천(?=합니|해요|드립|드려|하는 (?:쪽|것|건))|원인은|대신|하자[.!]?$|가자[.!]?$",
    re.IGNORECASE,
)
SETTLES = re.compile(
    r"\b(?:(?:I['’]ll|I will|we['’]ll) (?!definitely|be|see|check|try|do my best|have to)"
    r"|let['’]?s (?!look|see|go through|break|start|talk|say|hope|work hard"
    r"|keep (?:it )?(?:up|going|working|pushing|improving))|keeping"
    r"|you['’]?re right|going for)\b"
    r"|^(?:ok(?:ay)?|then|so)\b[,. ]+\S+ \S+|\bit is\b(?=[,.!]|$)"
    r"|^(?:go|take|keep|drop|skip|use|stick with) \S+(?: \S+){0,6}[.!]?$"
    r"|(?:할게|할래|갈게|살게|쓸게|[루기꾸리치우추들내하가쓰두보르누빼넣놓받찾먹사주드끄켜]자)(?:요)?[\s.!~ㅎㅋ]*$|^그럼\s.+(?:로|고|먼저|게)\b",
    re.IGNORECASE,
)
"""How a user settles something; an assistant who says so only offers it."""
CHANGES = re.compile(
    r"(?<!since )(?<!when )(?<!after )"
    r"\b(?:I(?:['’]ve| have)?|we(?:['’]ve| have)?|now) (?:\w+ )?(?:added|changed|fixed|implemented|created|updated|"
    r"removed|refactored|moved|renamed|wrote|replaced|migrated|deployed|switched|patched|bumped|uploaded)\b"
    r"|\b(?:tests? (?:now )?pass|all green|now works(?! by| as| like))\b"
    r"|^(?:(?:it |that )?works|done\b[:,])|\bworks(?: now| again)?[.!]?$|^no (?:more )?(?:crash|error)"
    r"|추가했|추가해 두었|수정했|변경했|고쳤|구현했|만들었|만들어 두었|삭제했|바꿨|적용했|옮겼|교체했|배포했"
    r"|패치했|넣었|맞췄|통과|줄었|완료|안정적",
    re.IGNORECASE,
)
OPEN = re.compile(
    r"\b(?:todo|next steps?|still (?:need|have) to|not yet|left to do|open question|follow[- ]up|tomorrow|blocked)\b"
    r"|\bremain(?:s|ing)?(?=[:.]|$| (?:are|is|work|tasks?|steps?|items?)\b)"
    r"|남은|다음 ?(?:단계|주|번에)|미정|추후|내일|보류|해야 (?:함|해|합니다|돼|됩니다)",
    re.IGNORECASE,
)
ASKS = re.compile(
    r"[?？]\s*$"
    r"|\b(?:how (?:do|does|can|should|to)|can you|could you|please|help me|tell me|show me|I want|I need|I['’]d like)\b"
    r"|\bI(?:['’]m| am) (?:trying|having|struggling|not sure|looking)\b"
    r"|^(?:(?:and|so|but|ok(?:ay)?|now|then|also)[, ]+)?"
    r"(?:how|what|why|which|where|help|fix|add|make|write|implement|explain)\b"
    r"|(?:까(?!지)요?|나요|은지|는지|가요|줘|주세요|어때|하고 싶|싶어|해야|방법|왜|어떻게)",
    re.IGNORECASE,
)
TRIES = re.compile(r"\bI(?:['’]m| am) (?:trying|having|struggling|not sure|looking)\b|[?？]\s*$", re.IGNORECASE)
"""What tells of a wish or a doubt, and settles nothing."""
IS_WHOLE = re.compile(r"\A[^\\]*(?:[.!?…。？！)\]\"'”’`]|[다요죠네음함임됨줘지자까])\Z")
"""How a sentence ends, and a heading or a formula does not."""
