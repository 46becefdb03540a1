"""Which words of a query a message contains: told by its text, or by the terms it was found by. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from registry.text.analysis.analyzer import LATIN_KEY_PREFIX, analyze
from registry.text.ranking.term_weights import Term
from registry.text.request.query import ParsedQuery, QueryWord

_MOSTLY = 2 / 3
_SIGNIFICANT_KEY = len(LATIN_KEY_PREFIX) + 4
"""A three-letter key is shared by chance too often (Germany, 재미난) to mean anything to a reader."""


def matched_words(query: ParsedQuery, text: str) -> tuple[str, ...]:
    """The query words a text contains: as asked (two thirds of a word's tokens), by another name or by sound."""
    tokens = frozenset(analyze(text))
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
    tokens = frozenset(analyze(text))
    wanted = (token for word in query.words if _is_matched(word, tokens) for token in _matching(word, tokens))
    return tokens.intersection(wanted)


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
