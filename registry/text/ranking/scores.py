"""Score messages and conversations. Pure. The constants, and what each is for, are in `weights`."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from registry.text.ranking import weights

K1, B = 1.2, 0.4  # BM25's saturation and length share
SEQ_BITS = 40  # a position in a channel as one number: the channel's number above so many bits of the sequence
_DIGITS = 9  # sums of the same parts in another order give the same score


class Candidate(NamedTuple):
    """A message that holds some of the terms, or stands beside one that does.

    `number` is its id in arrival order, `seq` its position inside its channel, `length` its number of tokens,
    `weight` the sum of the weights of the terms in it, `turn` the seq of the message that opens its turn, `held` a bit
    for each of the terms.
    """

    number: int
    channel_id: int
    seq: int
    role: str
    length: int
    weight: float
    turn: int = 0
    held: int = 0


class Ranked(NamedTuple):
    """A message with its score and the two parts that add up to it."""

    candidate: Candidate
    score: float
    own: float
    neighbours: float


class RankedChannel(NamedTuple):
    """A channel with its score."""

    number: int
    score: float


def length_norm(length: float, average: float) -> float:
    """Return BM25's length factor: 1 for the average length, less for a longer one."""
    relative = length / max(average, 1.0)
    return (1 + K1) / (1 + K1 * (1 - B + B * relative))


def own_scores(candidates: Iterable[Candidate], average_length: float) -> dict[int, float]:
    """Return each message's own score by number: BM25 without term frequency, which is noise in chats."""
    return {one.number: round(one.weight * length_norm(one.length, average_length), _DIGITS) for one in candidates}


def rank(own: Mapping[int, float], messages: Iterable[Candidate]) -> list[Ranked]:
    """Order messages by (-score, -number), including those that only gain from their neighbours."""
    known = list(messages)
    at = {one.channel_id << SEQ_BITS | one.seq: own.get(one.number, 0.0) for one in known}
    ranked = []
    for one in known:
        place, score = one.channel_id << SEQ_BITS | one.seq, own.get(one.number, 0.0)
        near = at.get(place - 1, 0.0) + at.get(place + 1, 0.0) + (at.get(place - 2, 0.0) + at.get(place + 2, 0.0)) / 3
        gain = weights.NEIGHBOUR * near
        if score + gain > 0:
            ranked.append(Ranked(one, round(score + gain, _DIGITS), score, gain))
    return sorted(ranked, key=lambda one: (-one.score, -one.candidate.number))


def word_scores(ranked: Iterable[Ranked], wholes: Mapping[int, float]) -> dict[int, float]:
    """Return each channel's score by words (0 to 1): its best message and its whole (`whole_scores`), half and half."""
    best: dict[int, float] = {}
    for one in ranked:
        number = one.candidate.channel_id
        best[number] = max(best.get(number, 0.0), one.score)
    most, fullest = max(best.values(), default=0.0) or 1.0, max(wholes.values(), default=0.0) or 1.0
    return {number: (score / most + wholes.get(number, 0.0) / fullest) / 2 for number, score in best.items()}


def rank_channels(
    words: Mapping[int, float], covered: float, titles: Mapping[int, float], similar: Mapping[int, float]
) -> list[RankedChannel]:
    """Order channels, best first, of equal ones the newer.

    `words`: from `word_scores`. `covered`: the share of the request that the best of them holds, so that words that
    say little leave the choice to the model. `titles`, `similar`: shares (0 to 1) of what a title and the model add.
    """
    scores = {
        number: covered * words.get(number, 0.0)
        + weights.TITLE * titles.get(number, 0.0)
        + weights.MODEL * similar.get(number, 0.0)
        for number in words.keys() | titles.keys() | similar.keys()
    }
    channels = (RankedChannel(number, round(score, _DIGITS)) for number, score in scores.items())
    return sorted(channels, key=lambda one: (-one.score, -one.number))


def whole_scores(
    candidates: Iterable[Candidate], term_weights: Sequence[float], lengths: Mapping[int, int]
) -> dict[int, float]:
    """Return each channel's BM25 score, the frequency of a term being the number of different messages that hold it.

    `term_weights` in the order of the bits of `Candidate.held`, `lengths` the channels' tokens.
    """
    average = sum(lengths.values()) / max(len(lengths), 1)
    alike: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for one in candidates:  # of the same text several times one is counted
        alike[one.channel_id].add((one.held, one.length))
    scores = {}
    for number, messages in alike.items():
        norm = K1 * (1 - B + B * lengths.get(number, 0) / max(average, 1.0))
        counts = _counts((held for held, _ in messages), len(term_weights))
        scores[number] = sum(
            weight * count * (1 + K1) / (count + norm)
            for weight, count in zip(term_weights, counts, strict=True)
            if count
        )
    return scores


def _counts(held: Iterable[int], terms: int) -> list[int]:
    counts = [0] * terms
    for bits in held:
        while bits:
            bit = bits & -bits
            counts[bit.bit_length() - 1] += 1
            bits ^= bit
    return counts


def weight_of(held: int, term_weights: Sequence[float]) -> float:
    """Return the sum of the weights of the terms whose bits are set."""
    total = 0.0
    while held:
        bit = held & -held
        total += term_weights[bit.bit_length() - 1]
        held ^= bit
    return total
