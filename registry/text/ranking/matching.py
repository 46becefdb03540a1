"""Decide which query words a message contains, from its text or from its matched terms. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from registry.text.analysis.analyzer import tokens_in_text
from registry.text.ranking.term_weights import Term
from registry.text.request.query import ParsedQuery, QueryWord

_MIN_TOKEN_SHARE = 2 / 3  # of a word's tokens


def matched_words(query: ParsedQuery, text: str) -> tuple[str, ...]:
    """Return the query words that a text contains: at least two thirds of their tokens, or a variant."""
    tokens = tokens_in_text(_tokens_of(query), text)
    return tuple(word.text for word in query.words if _is_matched(word, tokens))


def matching_tokens(query: ParsedQuery, text: str) -> frozenset[str]:
    """Return the tokens of a text that are part of its matched query words (see `matched_words`)."""
    tokens = tokens_in_text(_tokens_of(query), text)
    return tokens.intersection(token for word in query.words if _is_matched(word, tokens) for token in word.tokens)


@lru_cache(32)
def _tokens_of(query: ParsedQuery) -> frozenset[str]:
    return frozenset(query.tokens)


def _is_matched(word: QueryWord, tokens: frozenset[str]) -> bool:
    found = sum(token in tokens for token in word.exact)
    return found >= _MIN_TOKEN_SHARE * len(word.exact) or not tokens.isdisjoint(word.variants)


def match_test(query: ParsedQuery, terms: Sequence[Term]) -> Callable[[int], bool]:
    """Return a function of `Candidate.term_bits`: True if `matched_words` would find a query word."""
    bit = {term.token: 1 << index for index, term in enumerate(terms)}
    conditions = [condition for word in query.words for condition in _match_conditions(word, bit)]
    return lambda term_bits: any((term_bits & mask).bit_count() >= least for mask, least in conditions)


def _match_conditions(word: QueryWord, bit: Mapping[str, int]) -> Iterator[tuple[int, float]]:
    """Yield (bits of terms, how many of them a message must contain) for each way to match a word."""
    exact = [bit[token] for token in word.exact if token in bit]
    if exact:
        yield sum(exact), max(_MIN_TOKEN_SHARE * len(word.exact) if len(exact) == len(word.exact) else len(exact), 1)
    yield from ((bit[token], 1) for token in word.variants if token in bit)
