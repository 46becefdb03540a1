"""Patterns of requests to continue a conversation, in English, Korean and Japanese. Pure."""

from __future__ import annotations

import re

GOES_ON = re.compile(
    r"""^\s*(?:(?:please|can\ (?:you|we)|could\ (?:you|we)|shall\ we|let['’]?s|let\ us|i\ want\ to|i['’]d\ like\ to
              |we\ should|ok,?|hey,?|now|so|and)\ )*
        (?:continu(?:e|ing)(?!\ (?:statement|keyword|command|button|label|flag|block|clause|token|inside|vs\.?|versus
            |or\ break|and\ break|on\ error|in\ an?|integration)\b)
          |resume(?!\ (?:template|parser|parsing|builder|format|pdf|writing|review|for)\b)
          |carry\ on|pick(?:ing)?\ (?:(?:it|this|that)\ )?(?:back\ )?up(?!\ lines?)
          |go\ on(?!\ (?:vacation|holiday|a|an)\b)
          |keep\ going|(?:(?:get|go)\ )?back\ (?:to|on)|take\ up)\b
      | \b(?:pick\ up|continue|carry\ on|go\ on)\ (?:from\ )?where\ (?:we|i|you)\b
      | \bwhere\ (?:did\ )?(?:were\ )?(?:we|i)\ (?:left|leave|stopped|stop|ended|end)(?:\ off|\ up|\ it)?\b
      | \bwhere\ (?:(?:were|was)\ (?:we|i)|(?:we|i)\ (?:were|was))\b
      | [;,.:]\ (?:please\ |let['’]?s\ |i\ want\ to\ |can\ we\ )?
          (?:continue|resume|carry\ on|go\ on|pick\ (?:it\ |this\ |that\ )?(?:back\ )?up)
          (?:\ (?:it|this|that|there|with\ (?:it|this|that)))?\s*(?:please)?\s*[.!]?$
      | [;,.]\ (?:let['’]?s|i\ want\ to|can\ we)\ (?:continue|resume|carry\ on|go\ on)\b
      | (?:^|[,;.?!])\s*what(?:['’]s|\ is|\ was)\ (?:next|left|still\ open|open)(?:\ to\ do)?
          (?:\ (?:on|with|for|in)\b|\s*\??$)
      | 이어서\s*(?:하자|해\s*줘|해|가자|진행|계속|작업|하고|할게|할래|부탁)?\s*[.!?~]*$
      | 이어\s*(?:가|나가|하)(?:자|기|줘|고|볼까) | 이어\s*(?:줘|주세요|보자) | 이어\s*받아
      | 이어서\s*(?:하자|해\s*줘|가자|진행|계속|작업|하고|할게|할래|부탁|볼까|보자|봐)
      | (?:계속|마저)\s*(?:하자|해\s*줘|해|할게|하고|진행|가자|이어)?\s*[.!?~]*$
      | (?:계속|마저)\s*(?:진행|작업)\s*(?:하자|해|할)
      | 어디\s*까지\s*(?:했|하다|얘기|이야기|진행|작업|왔) | (?:대화|작업|얘기)로\s*(?:다시\s*)?돌아가
      | 続き(?:から|を|に|は|で|$) | 続け(?:て|よう|たい) | 再開(?:し|する|$)
    """,
    re.VERBOSE | re.IGNORECASE,
)
# the same to the end of its word
GOING_ON = re.compile(rf"(?:{GOES_ON.pattern})[가-힣]*", re.VERBOSE | re.IGNORECASE)
# names the conversation between its words
LOADS = re.compile(
    r"\b(?:load|open|fetch|get|pull|bring|find|restore)\b.*"
    r"\b(?:and(?: then)?|so (?:that )?(?:i|we) can) (?:continue|resume|carry on|go on)\b",
    re.IGNORECASE,
)
