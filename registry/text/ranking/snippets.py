"""The part of a message that shows why it was found, on one line, with the hits marked. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise

from registry.text.analysis.analyzer import IDENTIFIER_PREFIX, KEY_PREFIX, Kind, analyze, identifier_part_spans, words
from registry.text.ranking.matching import matching_tokens
from registry.text.request.query import ParsedQuery
from registry.text.request.request_words import as_typed

MARK = "**"
"""Stands before and after each hit; the message's own are taken out, so that they cannot be taken for ours."""
WIDTH = 240
_LEAD = 60
_LONGEST = 20_000

Range = tuple[int, int]

_CHUNK = re.compile(r"[^\s\W_](?:[\w./:\u00ad-]|[\u0300-\u036f])*|\w+")
_CJK = "\u1100-\u11ff\u3005-\u9fff\uac00-\ud7a3\uf900-\ufaff"
_PIECE = re.compile(f"[{_CJK}]+|[^{_CJK}]+")
_JOINER = "\u200d"


def snippet(text: str, query: ParsedQuery, phrases: Sequence[str] = (), width: int = WIDTH) -> str:
    """At most `width` characters of a text, and the marks, around what the query's words and phrases hit in it.

    Without a hit the text's beginning. Cut at spaces where there are some, never inside one visible character.
    """
    line = one_line(text)
    hits = _hits(line, query, phrases)
    start, end = _window(line, hits, width)
    shown = _marked(line, [hit for hit in hits if start <= hit[0] and hit[1] <= end], start, end)
    return ("…" if start else "") + shown + ("…" if end < len(line) else "")


def passage(text: str, query: ParsedQuery, phrases: Sequence[str] = (), width: int = WIDTH) -> str:
    """The same without marks. A text that is shown whole is not looked through for hits."""
    line = one_line(text)
    start, end = (0, len(line)) if len(line) <= width else _window(line, _hits(line, query, phrases), width)
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


def one_line(text: str) -> str:
    """The text composed, on one line, without marks of its own; a very long one without its end."""
    return " ".join(unicodedata.normalize("NFC", text[:_LONGEST]).replace(MARK, "").split())


# -- hits


def _hits(line: str, query: ParsedQuery, phrases: Sequence[str]) -> list[Range]:
    return _merged([*_word_hits(line, query), *_phrase_hits(line, phrases)])


def _phrase_hits(line: str, phrases: Iterable[str]) -> Iterator[Range]:
    for phrase in phrases:
        pattern = r"\s+".join(map(re.escape, one_line(phrase).split()))
        yield from (match.span() for match in re.finditer(pattern, line, re.IGNORECASE))


def _word_hits(line: str, query: ParsedQuery) -> Iterator[Range]:
    tokens = matching_tokens(query, line)
    at = 0
    for part in line.split(" ") if tokens else ():
        if not tokens.isdisjoint(_tokens_in_part(part)):  # of few
            for chunk in _CHUNK.finditer(part):
                for start, end in _chunk_hits(chunk[0], tokens):
                    yield at + chunk.start() + start, at + chunk.start() + end
        at += len(part) + 1


@lru_cache(10_000)
def _tokens_in_part(part: str) -> frozenset[str]:
    """Those of its chunks. Most of what stands between spaces stands there in several messages."""
    pieces = chain.from_iterable(map(_PIECE.findall, _CHUNK.findall(part)))
    return frozenset[str]().union(*map(_tokens_of, pieces))


def _chunk_hits(chunk: str, tokens: frozenset[str]) -> Iterator[Range]:
    for piece in _PIECE.finditer(chunk):
        for start, end in _piece_hits(piece[0], tokens):
            yield piece.start() + start, piece.start() + end


def _piece_hits(piece: str, tokens: frozenset[str]) -> Iterator[Range]:
    """A Korean word is hit where its bigrams are, an identifier in its parts or as a whole."""
    found = tokens & _tokens_of(piece)
    if not found:
        return
    kinds = {word.kind for word in words(piece)}
    if kinds <= {Kind.IDENTIFIER} and piece.isascii() and not any(map(_is_whole, found)):
        for start, end in identifier_part_spans(piece):
            if tokens & _tokens_of(piece[start:end]):
                yield start, end
    elif kinds <= {Kind.HANGUL, Kind.SPACELESS} and not any(token.startswith(KEY_PREFIX) for token in found):
        typed, found = as_typed(piece), frozenset(map(as_typed, found))
        yield from ((at, at + 2) for at in range(len(piece) - 1) if typed[at : at + 2] in found)
        yield from ((at, at + 1) for at in range(len(piece)) if len(piece) == 1 and typed in found)
    else:
        yield 0, len(piece)


@lru_cache(5_000)
def _tokens_of(piece: str) -> frozenset[str]:
    """Of some thousand pieces that one search looks at most stand in several messages."""
    return frozenset(analyze(piece))


def _is_whole(token: str) -> bool:
    return token.startswith(IDENTIFIER_PREFIX)


def _merged(hits: Iterable[Range]) -> list[Range]:
    """Overlapping and touching hits as one."""
    merged: list[Range] = []
    for start, end in sorted(hits):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


# -- the window


def _window(line: str, hits: Sequence[Range], width: int) -> Range:
    """Where most different hits stand close together, the earliest of such places."""
    if len(line) <= width:
        return 0, len(line)
    best, most = 0, 0
    for start, _ in hits:
        different = {line[a:b].casefold() for a, b in hits if start <= a and b <= start + width - _LEAD}
        if len(different) > most:
            best, most = start, len(different)
    start = _cut_before(line, max(best - _LEAD, 0), limit=best) if best > _LEAD else 0
    end = _cut_after(line, min(start + width, len(line)), limit=start)
    return start, end


def _cut_before(line: str, at: int, limit: int) -> int:
    """The first place from `at` on where a word begins, `limit` at the latest."""
    space = line.find(" ", at, limit)
    return space + 1 if space >= 0 else _whole_character(line, at)


def _cut_after(line: str, at: int, limit: int) -> int:
    """The last place until `at` where a word ends, if that does not cost half of it."""
    if at == len(line):
        return at
    space = line.rfind(" ", limit, at + 1)
    return space if space > limit + (at - limit) // 2 else _whole_character(line, at)


def _whole_character(line: str, at: int) -> int:
    """The place itself, or the one before the visible character that it would cut in two."""
    while 0 < at < len(line) and (_continues(line[at]) or line[at - 1] == _JOINER):
        at -= 1
    return at


def _continues(letter: str) -> bool:
    """Combining marks, joiners, variation selectors, skin tones, conjoining vowels and finals."""
    return (
        unicodedata.category(letter) in ("Mn", "Mc", "Me", "Cf")
        or "\U0001f3fb" <= letter <= "\U0001f3ff"
        or "\u1160" <= letter <= "\u11ff"
    )


def _marked(line: str, hits: Sequence[Range], start: int, end: int) -> str:
    places = [start, *(place for hit in hits for place in hit), end]
    return MARK.join(line[a:b] for a, b in pairwise(places))
