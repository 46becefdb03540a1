"""A later message that takes an earlier one back ("use sessions instead of JWT"), where words alone can tell. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

SHARED = 2
"""So many significant tokens of the earlier message stand in the one that takes it back."""
_TAKES_BACK = re.compile(
    r"""\b(?:instead(?:\ of)?|actually|after\ all|no\ longer|not\ anymore|any\ ?more|changed?\ (?:my|our)\ minds?
        |scrap(?:ped)?(?:\ that)?|ditch(?:ed|ing)?|abandon(?:ed|ing)?
        |(?:kick|rip|throw|thrown|threw|take|took|pull)(?:ed|ped|ing)?\ (?:\w+\ )?out|g[eo]t(?:ting)?\ rid\ of
        |(?:go|going|went)\ back\ to|back\ to\ \w+\ (?:then|again)
        |switch(?:ed|ing)?\ (?:back\ |over\ )?(?:to|from)|move[ds]?\ (?:away|off|over|back)?\ ?(?:from|to)
        |swap(?:ped)?\ (?:\w+\ )?(?:for|out)|migrat(?:e|ed|ing)\ (?:\w+\ )?(?:from|to|off)
        |revert(?:ed|ing)?|roll(?:ed)?\ back|postpone[sd]?|push(?:ed)?\ back
        |drop(?:ped|ping)?\ (?:the|that)|forget\ (?:the|that|about)|rather\ than|reconsider(?:ed)?|replac(?:e|ed|ing)
        |called?\ (?:it\ )?off|cancel(?:led|ed|ling)?|undo|turn(?:s|ed)\ out|wrong\ about|you\ were\ right|correction)\b
      | 대신|말고|바꾸|바꿨|바꿔|바꿀|변경하|취소|철회|되돌|번복|안\ ?하기로|않기로|없던
      | 결국|접고|접었|버리고|버렸|걷어내
      | 옮기|옮겼|옮긴|미루|미뤘|미룬|전환하|전환했|갈아타|갈아탔
      | 다시\ 생각|생각해\ ?보니|사실은|알고\ ?보니|그만두|포기|접기로|물렀""",
    re.VERBOSE | re.IGNORECASE,
)


_SENTENCES = re.compile(r"(?<=[.!?。])\s+|\n")


class Said(NamedTuple):
    """A message found: its id, its place in time, its text, and the significant tokens of the request it holds."""

    id: str
    place: tuple[str, int]
    text: str
    tokens: Collection[str]


def sentences_that_take_back(text: str) -> list[str]:
    """The sentences of a text that speak of something else than before."""
    return [sentence for sentence in _SENTENCES.split(text) if _TAKES_BACK.search(sentence)]


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
