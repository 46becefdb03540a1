"""Sentences without spaces: the pieces of a Japanese, Chinese or Thai run that are looked for one by one. Pure.

Such a run is a sentence and not a word, so no text needs to hold most of it: each piece counts by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_HIRAGANA, _KATAKANA = "\u3041-\u309f", "\u30a0-\u30ff"
_LITTLE = "的了吗嗎呢吧们們她它么麼我你他这這那哪什怎是在很请請"
"""Chinese says with these what Japanese says in hiragana: how the words belong together."""
_PIECE = re.compile(rf"(?P<loan>[{_KATAKANA}]+)|[^{_HIRAGANA}{_KATAKANA}{_LITTLE}]+")
_PAIR, _LONGEST = 2, 4
"""Characters of what the index holds, and of a piece that may be one word."""
PAIR_SHARE = 0.5
"""A word has about two characters, so half of the pairs of characters stand across two words."""


def pieces(run: str) -> list[tuple[str, float]]:
    """What of a run is looked for, each with what it counts beside a word."""
    found = [piece for match in _PIECE.finditer(run) for piece in _cut(run, match)]
    return found or list(_pairs(run))


def _cut(run: str, match: re.Match[str]) -> Iterator[tuple[str, float]]:
    piece = match[0]
    if len(piece) == 1:
        begin = max(min(match.start(), len(run) - _PAIR), 0)
        yield run[begin : begin + _PAIR], PAIR_SHARE
    elif match["loan"] or len(piece) <= _LONGEST:
        yield piece, 1.0
    else:
        yield from _pairs(piece)


def _pairs(run: str) -> Iterator[tuple[str, float]]:
    if len(run) <= _PAIR:
        yield run, 1.0
        return
    for at in range(len(run) - 1):
        yield run[at : at + _PAIR], PAIR_SHARE
