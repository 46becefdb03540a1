"""Weigh terms by their rarity and their share of a word, and order messages by the terms they contain. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import log, sqrt

from registry.text.analysis.analyzer import IDENTIFIER_PREFIX
from registry.text.request.query import ParsedQuery, QueryWord
from registry.text.request.request_words import is_generic_word

COMMON_TERMS = 4  # terms beyond the budget that are still looked up, in messages with a rarer term


@dataclass(frozen=True, slots=True)
class Term:
    """A token to look up, with its weight and its document frequency."""

    token: str
    weight: float
    frequency: int


def weighted_terms(
    query: ParsedQuery, frequencies: Mapping[str, int], total: int, budget: int
) -> tuple[list[Term], list[Term]]:
    """Return the terms to look up, rarest first, and those beyond the budget.

    `budget`: postings; the next `COMMON_TERMS` terms are looked up too. `frequencies`: document frequency of each token
    among `total` messages; a missing token occurs nowhere.
    """
    shares: dict[str, float] = {}
    for word in query.words:
        _merge_largest(shares, _word_shares(word))
    found = ((token, share, frequencies[token]) for token, share in shares.items() if frequencies.get(token))
    known = (Term(token, share * idf(frequency, total), frequency) for token, share, frequency in found)
    return _within_budget(sorted(known, key=lambda term: (term.frequency, -term.weight, term.token)), budget)


def full_weight(query: ParsedQuery, frequencies: Mapping[str, int], total: int, skipped: Collection[str] = ()) -> float:
    """Return the weight of a message that contains every query word exactly, without the `skipped` tokens.

    The unknown part of a word counts at most as one token of frequency 0, however many bigrams it has. A generic word
    ("decide") that occurs nowhere does not count.
    """
    shares: dict[str, float] = {}
    unknown = 0.0
    for word in query.words:
        if is_generic_word(word.text.lower()) and not occurs_at_all(word, frequencies):
            continue
        exact = _exact_shares(word)
        known = {token: share for token, share in exact.items() if frequencies.get(token)}
        _merge_largest(shares, known)
        unknown += min(sum(exact.values()) - sum(known.values()), word.share)
    counted = sum(share * idf(frequencies[token], total) for token, share in shares.items() if token not in skipped)
    return counted + unknown * idf(0, total)


def idf(frequency: int, total: int) -> float:
    """Return the inverse document frequency of a token; positive in tiny registries too."""
    return log(1 + (max(total - frequency, 0) + 0.5) / (frequency + 0.5))


def occurs_at_all(word: QueryWord, frequencies: Mapping[str, int]) -> bool:
    """Return True if a part or a variant of a word occurs."""
    return any(map(frequencies.get, word.tokens))


# -- the shares of a word


def _word_shares(word: QueryWord) -> dict[str, float]:
    shares = _exact_shares(word)
    _merge_largest(shares, dict.fromkeys(word.variants, word.share))
    return shares


def _exact_shares(word: QueryWord) -> dict[str, float]:
    """Return the share of each token: 1/sqrt(n) of the word's for each of n parts, all of it for a whole identifier."""
    wholes = [token for token in word.exact if token.startswith(IDENTIFIER_PREFIX)]
    parts = [token for token in word.exact if token not in wholes]
    return dict.fromkeys(wholes, word.share) | dict.fromkeys(parts, word.share / sqrt(max(len(parts), 1)))


def _merge_largest(shares: dict[str, float], more: Mapping[str, float]) -> None:
    for token, share in more.items():
        shares[token] = max(share, shares.get(token, 0.0))


def _within_budget(terms: Sequence[Term], budget: int) -> tuple[list[Term], list[Term]]:
    spent = accumulate(term.frequency for term in terms)
    count = sum(so_far <= budget for so_far in spent) + COMMON_TERMS
    return list(terms[:count]), list(terms[count:])


# -- the messages with the largest sums


def terms_by_message(postings: Iterable[Collection[int]]) -> dict[int, int]:
    """Return the bits of the terms in each message; `postings`: the messages of each term, in the order of the bits."""
    term_bits: dict[int, int] = {}
    for position, numbers in enumerate(postings):
        for number in numbers:
            term_bits[number] = term_bits.get(number, 0) | 1 << position
    return term_bits


def best_first(term_bits: Mapping[int, int], weight_of: Mapping[int, float]) -> Iterator[int]:
    """Yield messages by descending weight of their terms; the newer one first if weights are equal.

    Many messages share few weights, so only the messages that are consumed get sorted.
    """
    numbers_by_weight: dict[float, list[int]] = defaultdict(list)
    for number, bits in term_bits.items():
        numbers_by_weight[weight_of[bits]].append(number)
    for weight in sorted(numbers_by_weight, reverse=True):
        yield from sorted(numbers_by_weight[weight], reverse=True)
