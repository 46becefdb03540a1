"""A long message by the passages of it that answer, in place of all of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from orchestrator.answer.size import tokens_in, within

Weigh = Callable[[str], float]
"""How much of the request a piece of text holds."""
GAP = "\n[…]\n"
LONGEST_PIECE = 600
"""Characters from which on a paragraph is taken apart at its sentences."""
LONGEST_CODE = 2_400
"""Characters from which on a block of code is taken apart at its lines."""
LONGEST_LINE = 800
"""Tokens from which on what has no end, such as a minified file, is taken apart between its words or wherever."""
_PARAGRAPHS = re.compile(r"\n\s*\n|\n(?=(?:[-*#>|]|\d+[.)])\s)")
_SENTENCES = re.compile(r"(?<=[.!?다요])\s+(?=\S)|(?<=[。！？])|\n")
_FENCE = re.compile(r"(```.*?```)", re.DOTALL)


class Shortened(NamedTuple):
    """A text as it is shown; `full_length` in characters where it is not all there, else 0."""

    text: str
    full_length: int = 0


def shortened(text: str, max_tokens: int, weigh: Weigh) -> Shortened:
    """The text if it fits, else its beginning, its best passages and its end, in order, with marks between them."""
    if tokens_in(text) <= max_tokens:
        return Shortened(text)
    pieces = _pieces(text)
    chosen = _chosen(pieces, max_tokens - tokens_in(GAP), weigh)
    if not chosen:
        return Shortened(within(text, max_tokens), len(text))
    return Shortened(_joined(pieces, chosen), len(text))


def _pieces(text: str) -> list[str]:
    """Blocks of code whole, else paragraphs and list items; what is still long, sentence by sentence."""
    pieces: list[str] = []
    for block in _FENCE.split(text):
        if block.startswith("```"):
            pieces += [block] if len(block) <= LONGEST_CODE else block.split("\n")
            continue
        for paragraph in _PARAGRAPHS.split(block):
            if len(paragraph) > LONGEST_PIECE:
                pieces += _SENTENCES.split(paragraph)
            else:
                pieces.append(paragraph)
    return [part for piece in pieces if piece.strip() for part in _cut(piece.strip("\n"))]


def _cut(piece: str) -> Iterator[str]:
    if tokens_in(piece) <= LONGEST_LINE:
        yield piece
        return
    at = 0
    while at < len(piece):
        end = at + LONGEST_PIECE
        space = piece.rfind(" ", at, end) + 1 if end < len(piece) else 0
        end = space if space > at else end
        yield piece[at:end]
        at = end


def _chosen(pieces: Sequence[str], max_tokens: int, weigh: Weigh) -> list[int]:
    """The first piece says what the text is; then the best for their length; then what stands around these."""
    weights = [weigh(piece) for piece in pieces]
    ranked = sorted(range(len(pieces)), key=lambda at: (-weights[at], at))
    best = [at for at in ranked if weights[at] > 0]
    around = [at + step for at in best for step in (1, -1) if 0 <= at + step < len(pieces)]
    chosen: set[int] = set()
    left = max_tokens
    for at in dict.fromkeys([*best[:1], 0, *best[1:], *around, len(pieces) - 1, *range(len(pieces))]):
        cost = tokens_in(pieces[at]) + 2
        if cost <= left:
            chosen.add(at)
            left -= cost
    return sorted(chosen)


def _joined(pieces: Sequence[str], chosen: Sequence[int]) -> str:
    text = "" if chosen[0] == 0 else GAP.lstrip("\n")
    for before, at in zip([None, *chosen], chosen, strict=False):
        if before is not None:
            text += "\n" if at == before + 1 else GAP
        text += pieces[at]
    return text if chosen[-1] == len(pieces) - 1 else text + GAP.rstrip("\n")
