"""Cut messages into passages: one vector stands for one thing, and a long message says several. Pure."""

from __future__ import annotations

LONGEST = 1_000
"""Characters of a passage: about what a small model reads of a text."""
MOST = 8
"""Passages of a message; what follows is found by its words only."""
_ENDS = ("\n\n", "\n", ". ", "? ", "! ", "다 ", " ")


def passages(text: str) -> list[str]:
    """Return the passages of a message, each ending at a paragraph, line or sentence if possible."""
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
