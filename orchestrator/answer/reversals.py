"""A later message that takes an earlier one back ("use sessions instead of JWT"), where words alone can tell. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

SHARED = 2
"""So many significant tokens of the earlier message stand in the one that takes it back."""
_TAKES_BACK = re.compile(
    r"""\b(?:instead(?:\ of)?|actually|after\ all|no\ longer|not\ anymore|any\ ?more|changed?\ (?:my|our)\ minds?
        
        |scrap(?:\ that)?
        |switch(?:ed|ing)?\ (?:back\ )?(?:to|from)|move[ds]?\ (?:away|off)\ from|revert(?:ed|ing)?|roll(?:ed)?\ back
        |drop(?:ped|ping)?\ (?:the|that)|forget\ (?:the|that|about)|rather\ than|reconsider(?:ed)?|replac(?:e|ed|ing)
        |called?\ (?:it\ )?off|cancel(?:led|ed|ling)?|undo|turn(?:s|ed)\ out|wrong\ about|correction)\b
      | 대신|말고|바꾸|바꿨|바꿔|변경하|취소|철회|되돌|번복|안\ ?하기로|않기로|없던
      | 다시\ 생각|생각해\ ?보니|사실은|알고\ ?보니|그만두|포기|접기로|물렀""",
    re.VERBOSE | re.IGNORECASE,
)


class Said(NamedTuple):
    """A message found: its id, its place in time, its text, and the significant tokens of the request it holds."""

    id: str
    place: tuple[str, int]
    text: str
    tokens: Collection[str]


def taken_back(messages: Sequence[Said]) -> dict[str, str]:
    """For the id of a message the id of the later one that takes it back; the latest such one."""
    found: dict[str, str] = {}
    ordered = sorted(messages, key=lambda said: said.place)
    for at, later in enumerate(ordered):
        if not _TAKES_BACK.search(later.text):
            continue
        for earlier in ordered[:at]:
            if len(set(earlier.tokens) & set(later.tokens)) >= SHARED:
                found[earlier.id] = later.id
    return found
