"""What a message has of a search: which words, told by its text or by the terms it was found by; and whether it has
what must stand there, and nothing that must not. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial

from registry.text.analysis.analyzer import (
    IDENTIFIER_PREFIX,
    KEY_PREFIX,
    LATIN_KEY_PREFIX,
    Kind,
    Word,
    held_of,
    identifier_parts,
    stem,
    words,
)
from registry.text.analysis.analyzer import word_tokens as tokens_of
from registry.text.ranking.term_weights import Term
from registry.text.request.query import ParsedQuery, QueryWord
from registry.text.request.syntax import Search

_MOSTLY = 2 / 3
_SIGNIFICANT_KEY = len(LATIN_KEY_PREFIX) + 4
"""A three-letter key is shared by chance too often (Germany, 재미난) to mean anything to a reader."""


def matched_words(query: ParsedQuery, text: str) -> tuple[str, ...]:
    """The query words a text contains: as asked (two thirds of a word's tokens), by another name or by sound."""
    tokens = held_of(_asked_for(query), text)
    return tuple(word.text for word in query.words if _is_matched(word, tokens))


def matched_by(query: ParsedQuery, terms: Sequence[Term]) -> Callable[[int], bool]:
    """Whether `Candidate.held` means that a message contains a word of the query, as `matched_words` would find.

    Told by the terms that were looked up, without reading a text. A term of no word (the beginning of one) is
    a match by itself.
    """
    bit = {term.token: 1 << place for place, term in enumerate(terms)}
    alone = sum(bit[token] for token in bit.keys() - set(query.tokens))
    ways = [way for word in query.words for way in _ways(word, bit)]

    def is_matched(held: int) -> bool:
        return bool(held & alone) or any((held & mask).bit_count() >= least for mask, least in ways)

    return is_matched


def words_held(query: ParsedQuery, terms: Sequence[Term]) -> Callable[[int], int]:
    """How many words of the query `Candidate.held` means that a message contains; joined, that several do."""
    bit = {term.token: 1 << place for place, term in enumerate(terms)}
    ways = [list(_ways(word, bit)) for word in query.words]

    def count(held: int) -> int:
        return sum(any((held & mask).bit_count() >= least for mask, least in some) for some in ways)

    return count


def _ways(word: QueryWord, bit: Mapping[str, int]) -> Iterator[tuple[int, float]]:
    """The sets of terms by which a message may contain a word, and how many of each it must hold."""
    exact = [bit[token] for token in word.exact if token in bit]
    if exact:
        yield sum(exact), max(_MOSTLY * len(word.exact) if len(exact) == len(word.exact) else len(exact), 1)
    for synonym in word.synonyms:
        if all(token in bit for token in synonym):
            yield sum(bit[token] for token in set(synonym)), len(set(synonym))
    for key in word.keys:
        if len(key) >= _SIGNIFICANT_KEY and key in bit:
            yield bit[key], 1


def matching_tokens(query: ParsedQuery, text: str) -> frozenset[str]:
    """The tokens of a text by which it contains the query's words (see `matched_words`)."""
    tokens = held_of(_asked_for(query), text)
    wanted = (token for word in query.words if _is_matched(word, tokens) for token in _matching(word, tokens))
    return tokens.intersection(wanted)


@lru_cache(32)
def _asked_for(query: ParsedQuery) -> frozenset[str]:
    return frozenset(query.tokens)


def _matching(word: QueryWord, tokens: frozenset[str]) -> Iterator[str]:
    yield from word.exact
    yield from (key for key in word.keys if len(key) >= _SIGNIFICANT_KEY)
    yield from (token for synonym in word.synonyms if tokens.issuperset(synonym) for token in synonym)


def _is_matched(word: QueryWord, tokens: frozenset[str]) -> bool:
    found = sum(token in tokens for token in word.exact)
    return (
        found >= _MOSTLY * len(word.exact)
        or any(tokens.issuperset(synonym) for synonym in word.synonyms)
        or any(key in tokens for key in word.keys if len(key) >= _SIGNIFICANT_KEY)
    )


# -- what the index cannot know: phrases, prefixes and exclusions. It has no positions and no unstemmed words, so it is
# asked for a few messages too many, and the text decides.

_SHORTEST_STEM = 3
_CJK = "\u1100-\u11ff\u3005-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
_STARTS = rf"(?<![^\W_{_CJK}])"
_ENDS = rf"(?![^\W_{_CJK}])"
_IS_CJK = re.compile(f"[{_CJK}]").match

Groups = list[list[str]]


def post_filter(search: Search) -> Callable[[str], bool] | None:
    """The test a message's text must pass; None if the index knows all there is to know."""
    wanted = [*map(_phrase, search.phrases), *map(_prefix, search.prefixes)]
    unwanted = [_phrase(word) for word in search.excluded if not _excluded_token(word)]
    return partial(_passes, wanted, unwanted) if wanted or unwanted else None


def _passes(wanted: Iterable[re.Pattern[str]], unwanted: Iterable[re.Pattern[str]], text: str) -> bool:
    plain = _plain(text)
    return all(one.search(plain) for one in wanted) and not any(one.search(plain) for one in unwanted)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _phrase(text: str) -> re.Pattern[str]:
    """The words as they stand. A Korean word goes on with its particles, an English one has ended."""
    plain = _plain(text)
    starts = _STARTS if plain[0].isalnum() and not _IS_CJK(plain[0]) else ""
    ends = _ENDS if plain[-1].isalnum() and not _IS_CJK(plain[-1]) else ""
    return re.compile(starts + re.escape(plain) + ends)


def _prefix(text: str) -> re.Pattern[str]:
    return re.compile(r"(?<![^\W_])" + re.escape(_plain(text)))


def carried(search: Search) -> Groups:
    """Of each group a message carries one token, or it has not the search's phrases and prefixes."""
    groups: Groups = []
    for phrase in search.phrases:
        groups += (group for word in words(phrase) for group in _whole_word(word))
    for prefix in search.prefixes:
        *before, last = words(prefix)
        groups += (group for word in before for group in _whole_word(word))
        groups.append(_prefix_tokens(last))
    return groups


def left_out(search: Search) -> list[str]:
    """The tokens that no message may carry."""
    return [token for token in map(_excluded_token, search.excluded) if token]


def _excluded_token(text: str) -> str:
    """A plain English word is excluded with its inflections; anything else as it stands in the text."""
    found = words(text)
    if len(found) != 1 or found[0].kind is not Kind.IDENTIFIER or found[0].text != text:
        return ""
    parts = identifier_parts(text)
    return stem(parts[0]) if len(parts) == 1 and text.isalpha() else ""


def _whole_word(word: Word) -> Groups:
    """The tokens that every text with this word carries. A syllable alone may stand inside any bigram."""
    tokens = [token for token in tokens_of(word.text) if not token.startswith((IDENTIFIER_PREFIX, KEY_PREFIX))]
    if word.kind is not Kind.IDENTIFIER:
        return [[token] for token in tokens if len(token) > 1]
    parts = identifier_parts(word.text)
    if len(parts) == 1 and len(parts[0]) > 1:
        return [[*tokens, IDENTIFIER_PREFIX + parts[0]]]
    return [[token] for token in tokens]


def _prefix_tokens(word: Word) -> list[str]:
    """The tokens, or beginnings of tokens (`migrat*`), of any word that begins like this one."""
    if word.kind is Kind.HANGUL or word.kind is Kind.SPACELESS:
        return [word.text[:2] if len(word.text) > 1 else f"{word.text}*"]
    if word.kind is Kind.OTHER:
        return [f"{word.text.casefold().lower()}*"]
    last = identifier_parts(word.text)[-1:] or [""]
    # A stem may be shorter than the prefix (connections* is connect) or end otherwise (happy* is happi).
    begins = last[0][:-1] if len(last[0]) > _SHORTEST_STEM else last[0]
    return [f"{begins}*", *(last[0][:end] for end in range(_SHORTEST_STEM, len(begins)))]
