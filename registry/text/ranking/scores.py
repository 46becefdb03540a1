"""Score messages and conversations. Pure. The constants, and what each is for, are in `weights`."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from registry.text.ranking import weights

K1, B = 1.2, 0.4  # BM25's saturation and length share
SEQ_BITS = 40  # low bits of a position as one number: channel number << SEQ_BITS | seq
_DIGITS = 9  # scores are rounded, so that the order of additions does not matter


class Candidate(NamedTuple):
    """A message that contains some of the terms, or is next to one that does.

    `number` is its id in arrival order, `seq` its position in its channel, `length` its number of tokens, `weight` the
    sum of the weights of its terms, `turn` the seq of the message that opens its turn, `term_bits` a bit for each term.
    """

    number: int
    channel_id: int
    seq: int
    role: str
    length: int
    weight: float
    turn: int = 0
    term_bits: int = 0


class Ranked(NamedTuple):
    """A message with its score, which is the sum of its base score and what its neighbours add."""

    candidate: Candidate
    score: float
    base_score: float
    neighbour_score: float


class RankedChannel(NamedTuple):
    """A channel with its score."""

    number: int
    score: float


def length_norm(length: float, average: float) -> float:
    """Return BM25's length factor: 1 for the average length, less for a longer one."""
    relative = length / max(average, 1.0)
    return (1 + K1) / (1 + K1 * (1 - B + B * relative))


def bm25_scores(candidates: Iterable[Candidate], average_length: float) -> dict[int, float]:
    """Return each message's BM25 score by number, without term frequency, which is noise in chats."""
    return {one.number: round(one.weight * length_norm(one.length, average_length), _DIGITS) for one in candidates}


def rank(base_scores: Mapping[int, float], messages: Iterable[Candidate]) -> list[Ranked]:
    """Order messages by (-score, -number), including those whose score comes from neighbours only."""
    candidates = list(messages)
    score_at = {one.channel_id << SEQ_BITS | one.seq: base_scores.get(one.number, 0.0) for one in candidates}
    ranked = []
    for one in candidates:
        position, score = one.channel_id << SEQ_BITS | one.seq, base_scores.get(one.number, 0.0)
        next_to_it = score_at.get(position - 1, 0.0) + score_at.get(position + 1, 0.0)
        two_away = score_at.get(position - 2, 0.0) + score_at.get(position + 2, 0.0)
        gain = weights.NEIGHBOUR * (next_to_it + two_away / 3)
        if score + gain > 0:
            ranked.append(Ranked(one, round(score + gain, _DIGITS), score, gain))
    return sorted(ranked, key=lambda one: (-one.score, -one.candidate.number))


def channel_word_scores(ranked: Iterable[Ranked], channel_scores: Mapping[int, float]) -> dict[int, float]:
    """Return each channel's score by words (0 to 1): the mean of its best message's score and its BM25 score."""
    best: dict[int, float] = {}
    for one in ranked:
        number = one.candidate.channel_id
        best[number] = max(best.get(number, 0.0), one.score)
    best_message, best_channel = (max(one.values(), default=0.0) or 1.0 for one in (best, channel_scores))
    return {n: (score / best_message + channel_scores.get(n, 0.0) / best_channel) / 2 for n, score in best.items()}


def rank_channels(
    word_scores: Mapping[int, float],
    coverage: float,
    title_shares: Mapping[int, float],
    similarity_shares: Mapping[int, float],
) -> list[RankedChannel]:
    """Order channels, best first; the newer one if scores are equal.

    `word_scores`: from `channel_word_scores`. `coverage`: the best channel's share of the request, so that the model
    decides if the words match little. `title_shares`, `similarity_shares`: 0 to 1, what a title and the model add.
    """
    scores = {
        number: coverage * word_scores.get(number, 0.0)
        + weights.TITLE * title_shares.get(number, 0.0)
        + weights.MODEL * similarity_shares.get(number, 0.0)
        for number in word_scores.keys() | title_shares.keys() | similarity_shares.keys()
    }
    channels = (RankedChannel(number, round(score, _DIGITS)) for number, score in scores.items())
    return sorted(channels, key=lambda one: (-one.score, -one.number))


def channel_bm25_scores(
    candidates: Iterable[Candidate], term_weights: Sequence[float], lengths: Mapping[int, int]
) -> dict[int, float]:
    """Return each channel's BM25 score; a term's frequency is the number of different messages that contain it.

    `term_weights` are in the order of the bits of `Candidate.term_bits`, `lengths` are the channels' tokens.
    """
    average = sum(lengths.values()) / max(len(lengths), 1)
    distinct_messages: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for one in candidates:  # messages of the same text count once
        distinct_messages[one.channel_id].add((one.term_bits, one.length))
    scores = {}
    for number, messages in distinct_messages.items():
        norm = K1 * (1 - B + B * lengths.get(number, 0) / max(average, 1.0))
        counts = _term_counts((term_bits for term_bits, _ in messages), len(term_weights))
        scores[number] = sum(
            weight * count * (1 + K1) / (count + norm)
            for weight, count in zip(term_weights, counts, strict=True)
            if count
        )
    return scores


def _term_counts(bitmasks: Iterable[int], terms: int) -> list[int]:
    counts = [0] * terms
    for bits in bitmasks:
        while bits:
            bit = bits & -bits
            counts[bit.bit_length() - 1] += 1
            bits ^= bit
    return counts


def total_weight(term_bits: int, term_weights: Sequence[float]) -> float:
    """Return the sum of the weights of the terms whose bits are set."""
    total = 0.0
    while term_bits:
        bit = term_bits & -term_bits
        total += term_weights[bit.bit_length() - 1]
        term_bits ^= bit
    return total
