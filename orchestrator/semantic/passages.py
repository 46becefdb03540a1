"""A message cut into passages: a vector says one thing, a long message several. Pure."""

from __future__ import annotations

LONGEST = 1_000
"""Characters of a passage: about what a small model reads of one text."""
MOST = 8
"""A message has no more passages; what comes behind them is found by its words."""
_ENDS = ("\n\n", "\n", ". ", "? ", "! ", "다 ", " ")


def passages(text: str) -> list[str]:
    """The passages of a message, in order, each ending where a paragraph, a line or a sentence does if it can."""
    rest, found = text.strip(), list[str]()
    while rest and len(found) < MOST:
        end = _end(rest)
        found.append(rest[:end].strip())
        rest = rest[end:].strip()
    return found


def _end(text: str) -> int:
    if len(text) <= LONGEST:
        return len(text)
    for mark in _ENDS:
        place = text.rfind(mark, LONGEST // 2, LONGEST)
        if place >= 0:
            return place + len(mark)
    return LONGEST
