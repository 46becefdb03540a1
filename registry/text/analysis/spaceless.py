"""Split a run of Japanese, Chinese or Thai text without spaces into pieces to search for. Pure.

Such a run is a sentence, not a word, so each piece is matched separately.
"""

import re
from collections.abc import Iterator

_HIRAGANA, _KATAKANA = "\u3041-\u309f", "\u30a0-\u30ff"
# Chinese function words, which separate content words, as hiragana do in Japanese
_FUNCTION_CHARACTERS = "的了吗嗎呢吧们們她它么麼我你他这這那哪什怎是在很请請"
_PIECE = re.compile(rf"(?P<loan>[{_KATAKANA}]+)|[^{_HIRAGANA}{_KATAKANA}{_FUNCTION_CHARACTERS}]+")
_PAIR, _LONGEST = 2, 4  # characters of an index token, and of the longest piece that may be one word
# weight of a pair: words have about two characters, so half of the pairs span two words
PAIR_SHARE = 0.5


def split_run(run: str) -> list[tuple[str, float]]:
    """Return the pieces to search for, each with its weight relative to a word."""
    found = [piece for match in _PIECE.finditer(run) for piece in _split_match(run, match)]
    return found or list(_pairs(run))


def _split_match(run: str, match: re.Match[str]) -> Iterator[tuple[str, float]]:
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
