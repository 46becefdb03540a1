"""Tell which words of a query a message contains, from its text or from the terms that it was found by. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from registry.text.analysis.analyzer import held_of
from registry.text.ranking.term_weights import Term
from registry.text.request.query import ParsedQuery, QueryWord

_MOSTLY = 2 / 3  # of a word's tokens


def matched_words(query: ParsedQuery, text: str) -> tuple[str, ...]:
    """Return the query words that a text contains: most of their tokens, or another spelling."""
    tokens = held_of(_tokens_of(query), text)
    return tuple(word.text for word in query.words if _is_matched(word, tokens))


def matching_tokens(query: ParsedQuery, text: str) -> frozenset[str]:
    """Return the tokens of a text by which it contains the query's words (see `matched_words`)."""
    tokens = held_of(_tokens_of(query), text)
    return tokens.intersection(token for word in query.words if _is_matched(word, tokens) for token in word.tokens)


@lru_cache(32)
def _tokens_of(query: ParsedQuery) -> frozenset[str]:
    return frozenset(query.tokens)


def _is_matched(word: QueryWord, tokens: frozenset[str]) -> bool:
    found = sum(token in tokens for token in word.exact)
    return found >= _MOSTLY * len(word.exact) or not tokens.isdisjoint(word.others)


def matched_by(query: ParsedQuery, terms: Sequence[Term]) -> Callable[[int], bool]:
    """Return a test of `Candidate.held`: whether it contains a word of the query, as `matched_words` would find."""
    bit = {term.token: 1 << place for place, term in enumerate(terms)}
    ways = [way for word in query.words for way in _ways(word, bit)]
    return lambda held: any((held & mask).bit_count() >= least for mask, least in ways)


def _ways(word: QueryWord, bit: Mapping[str, int]) -> Iterator[tuple[int, float]]:
    """Yield the sets of terms by which a message may contain a word, and how many of each it must hold."""
    exact = [bit[token] for token in word.exact if token in bit]
    if exact:
        yield sum(exact), max(_MOSTLY * len(word.exact) if len(exact) == len(word.exact) else len(exact), 1)
    yield from ((bit[token], 1) for token in word.others if token in bit)
