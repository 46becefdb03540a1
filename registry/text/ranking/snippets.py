"""Make snippets: the part of a message with the most matches, on one line, with the matches marked. Pure."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise

from registry.text.analysis.analyzer import IDENTIFIER_PREFIX, Kind, analyze, identifier_part_spans, words
from registry.text.ranking.matching import matching_tokens
from registry.text.request.query import ParsedQuery

MARK = "**"  # before and after each match; marks in the message itself are removed
WIDTH = 240
_CONTEXT_BEFORE = 60
_MAX_TEXT = 20_000

Range = tuple[int, int]

_CHUNK = re.compile(r"[^\s\W_](?:[\w./:\u00ad-]|[\u0300-\u036f])*|\w+")
_CJK = "\u1100-\u11ff\u3005-\u9fff\uac00-\ud7a3\uf900-\ufaff"
_PIECE = re.compile(f"[{_CJK}]+|[^{_CJK}]+")
_JOINER = "\u200d"


def snippet(text: str, query: ParsedQuery, width: int = WIDTH) -> str:
    """Return at most `width` characters of a text around its matches, which are marked.

    Return the beginning of a text without matches. Cut at spaces if possible, never inside a visible character.
    """
    line = one_line(text)
    hits = _merge_ranges(_word_hits(line, query))
    start, end = _window(line, hits, width)
    shown = _mark_hits(line, [hit for hit in hits if start <= hit[0] and hit[1] <= end], start, end)
    return ("…" if start else "") + shown + ("…" if end < len(line) else "")


def passage(text: str, query: ParsedQuery, width: int = WIDTH) -> str:
    """Return a snippet without marks; the whole text if it fits."""
    line = one_line(text)
    start, end = (0, len(line)) if len(line) <= width else _window(line, _merge_ranges(_word_hits(line, query)), width)
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


def one_line(text: str) -> str:
    """Return the text (or its first 20 000 characters) in NFC, on one line, without marks."""
    return " ".join(unicodedata.normalize("NFC", text[:_MAX_TEXT]).replace(MARK, "").split())


def _word_hits(line: str, query: ParsedQuery) -> Iterator[Range]:
    tokens = matching_tokens(query, line)
    at = 0
    for part in line.split(" ") if tokens else ():
        if not tokens.isdisjoint(_tokens_in_part(part)):  # a part has few tokens
            yield from ((at + start, at + end) for start, end in _hits_in_part(part, tokens))
        at += len(part) + 1


@lru_cache(1_000)
def _hits_in_part(part: str, tokens: frozenset[str]) -> tuple[Range, ...]:
    """Cached because a list of results repeats the query's words."""
    return tuple(
        (chunk.start() + start, chunk.start() + end)
        for chunk in _CHUNK.finditer(part)
        for start, end in _chunk_hits(chunk[0], tokens)
    )


@lru_cache(10_000)
def _tokens_in_part(part: str) -> frozenset[str]:
    """Cached because most parts occur in several messages."""
    pieces = chain.from_iterable(map(_PIECE.findall, _CHUNK.findall(part)))
    return frozenset[str]().union(*map(_tokens_of, pieces))


def _chunk_hits(chunk: str, tokens: frozenset[str]) -> Iterator[Range]:
    for piece in _PIECE.finditer(chunk):
        for start, end in _piece_hits(piece[0], tokens):
            yield piece.start() + start, piece.start() + end


def _piece_hits(piece: str, tokens: frozenset[str]) -> Iterator[Range]:
    """Yield the matches: bigrams of a Korean word, parts of an identifier or all of it."""
    found = tokens & _tokens_of(piece)
    if not found:
        return
    kinds = {word.kind for word in words(piece)}
    if kinds <= {Kind.IDENTIFIER} and piece.isascii() and not any(one.startswith(IDENTIFIER_PREFIX) for one in found):
        for start, end in identifier_part_spans(piece):
            if tokens & _tokens_of(piece[start:end]):
                yield start, end
    elif kinds <= {Kind.HANGUL, Kind.SPACELESS}:
        yield from ((at, at + 2) for at in range(len(piece) - 1) if piece[at : at + 2] in found)
        yield from ((at, at + 1) for at in range(len(piece)) if len(piece) == 1 and piece in found)
    else:
        yield 0, len(piece)


@lru_cache(5_000)
def _tokens_of(piece: str) -> frozenset[str]:
    return frozenset(analyze(piece))


def _merge_ranges(hits: Iterable[Range]) -> list[Range]:
    """Join overlapping and adjacent ranges."""
    merged: list[Range] = []
    for start, end in sorted(hits):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


# -- the window


def _window(line: str, hits: Sequence[Range], width: int) -> Range:
    """Return the first window with the most different matches."""
    if len(line) <= width:
        return 0, len(line)
    best, most = 0, 0
    for start, _ in hits:
        different = {line[a:b].casefold() for a, b in hits if start <= a and b <= start + width - _CONTEXT_BEFORE}
        if len(different) > most:
            best, most = start, len(different)
    start = _cut_before(line, max(best - _CONTEXT_BEFORE, 0), limit=best) if best > _CONTEXT_BEFORE else 0
    end = _cut_after(line, min(start + width, len(line)), limit=start)
    return start, end


def _cut_before(line: str, at: int, limit: int) -> int:
    """Return the start of the first word between `at` and `limit`."""
    space = line.find(" ", at, limit)
    return space + 1 if space >= 0 else _whole_character(line, at)


def _cut_after(line: str, at: int, limit: int) -> int:
    """Return the end of the last word before `at`, unless that drops half of the window."""
    if at == len(line):
        return at
    space = line.rfind(" ", limit, at + 1)
    return space if space > limit + (at - limit) // 2 else _whole_character(line, at)


def _whole_character(line: str, at: int) -> int:
    """Return the position, moved to the beginning of the visible character that it is in."""
    while 0 < at < len(line) and (_continues(line[at]) or line[at - 1] == _JOINER):
        at -= 1
    return at


def _continues(letter: str) -> bool:
    """Return True for combining marks, joiners, variation selectors, skin tones, conjoining vowels and finals."""
    return (
        unicodedata.category(letter) in ("Mn", "Mc", "Me", "Cf")
        or "\U0001f3fb" <= letter <= "\U0001f3ff"
        or "\u1160" <= letter <= "\u11ff"
    )


def _mark_hits(line: str, hits: Sequence[Range], start: int, end: int) -> str:
    ends = [start, *(end_of_hit for hit in hits for end_of_hit in hit), end]
    return MARK.join(line[a:b] for a, b in pairwise(ends))
