"""Weigh terms by their rarity and their share of a word, and sum the weights by message. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
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


def sum_weights(terms: Sequence[tuple[str, int]], postings: Mapping[str, Collection[int]]) -> dict[int, int]:
    """Return the sum of the weights of the terms (token, weight) in each message; `postings`: messages of each token.

    A sum packs two values in one integer, so that a posting costs one addition: the weight in its upper part, the bits
    of its terms in its lower `len(terms)` bits.
    """
    bits = len(terms)
    sums: dict[int, int] = {}
    for position, (token, weight) in enumerate(terms):
        gain = weight << bits | 1 << position
        for number in postings[token]:
            sums[number] = sums.get(number, 0) + gain
    return sums


def best_first(sums: Mapping[int, int], bits: int) -> Iterator[int]:
    """Yield messages by descending sum; the newer one first if sums are equal.

    Many messages share few weights, so only the messages that are consumed get sorted.
    """
    numbers_by_weight: dict[int, list[int]] = defaultdict(list)
    for number, total in sums.items():
        numbers_by_weight[total >> bits].append(number)
    for weight in sorted(numbers_by_weight, reverse=True):
        yield from sorted(numbers_by_weight[weight], reverse=True)
