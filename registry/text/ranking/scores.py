"""The scores of messages and of conversations. Pure.

A message scores the weights of the terms it holds, less if it is long (BM25 without term frequency, which is noise in
chats), and gains from its neighbours. A conversation scores the sum of its best message, of what all its messages hold
(BM25 where the frequency of a term is the number of messages that hold it), each divided by the largest, and of its
title. `benchmarks/RESULTS.md` has what each part gains.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

SATURATION, LENGTH_SHARE = 1.2, 0.4
"""BM25's k1 and b."""
FROM_PREVIOUS, FROM_NEXT, FROM_SECOND = 0.3, 0.4, 0.15
"""The share of its neighbours' own scores that a message gains: one place before, one behind, two places away."""
FARTHEST = 2  # places
FROM_SITTING = 0.6  # gain of the messages of the sitting that holds most of the request
TITLE = 0.5  # gain of a conversation whose title holds the whole request
SEQ_BITS = 40  # a place in a channel as one number: the channel's number above so many bits of the sequence
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


class Title(NamedTuple):
    """What a channel's title holds of the terms: `weight` and `held` as a candidate's."""

    weight: float
    held: int


class Ranked(NamedTuple):
    """A message with its score and the two parts that add up to it."""

    candidate: Candidate
    score: float
    own: float
    neighbours: float


class RankedChannel(NamedTuple):
    """A channel with its score and its parts: best message and whole conversation (0 to 1)."""

    number: int
    score: float
    best: float
    whole: float


class Sittings(NamedTuple):
    """The parts of one channel between long pauses: the places (seq) at which all but the first begin, and what the
    messages of each gain."""

    begins: Sequence[int]
    gains: Sequence[float]


def length_norm(length: float, average: float) -> float:
    """Return what a length does to a score: 1 for the average one, less for a longer one."""
    relative = length / max(average, 1.0)
    return (1 + SATURATION) / (1 + SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * relative))


def own_scores(candidates: Iterable[Candidate], average_length: float) -> dict[int, float]:
    """Return what each message scores by itself, by number. `average_length` is in tokens."""
    return {one.number: round(one.weight * length_norm(one.length, average_length), _DIGITS) for one in candidates}


def rank(own: Mapping[int, float], messages: Iterable[Candidate], sittings: Sittings | None = None) -> list[Ranked]:
    """Order messages by (-score, -number): those that score by themselves, and those that only gain from neighbours."""
    known = list(messages)
    at = {one.channel_id << SEQ_BITS | one.seq: own.get(one.number, 0.0) for one in known}
    ranked = []
    for one in known:
        place, score = one.channel_id << SEQ_BITS | one.seq, own.get(one.number, 0.0)
        gain = FROM_PREVIOUS * at.get(place - 1, 0.0) + FROM_NEXT * at.get(place + 1, 0.0)
        gain += FROM_SECOND * (at.get(place - 2, 0.0) + at.get(place + 2, 0.0))
        if sittings and score + gain > 0:
            gain += sittings.gains[bisect_right(sittings.begins, one.seq)]
        if score + gain > 0:
            ranked.append(Ranked(one, round(score + gain, _DIGITS), score, gain))
    return sorted(ranked, key=lambda one: (-one.score, -one.candidate.number))


def rank_channels(
    ranked: Iterable[Ranked], wholes: Mapping[int, float], titles: Mapping[int, float]
) -> list[RankedChannel]:
    """Order the channels of some ranked messages, best first, of equal ones the newer.

    `wholes` from `whole_scores`; `titles`: the share of the request that a channel's title holds.
    """
    best: dict[int, float] = {}
    for one in ranked:
        number = one.candidate.channel_id
        best[number] = max(best.get(number, 0.0), one.score)
    most, fullest = max(best.values(), default=0.0) or 1.0, max(wholes.values(), default=0.0) or 1.0
    channels = []
    for number in best.keys() | titles.keys():
        of_best, of_whole = best.get(number, 0.0) / most, wholes.get(number, 0.0) / fullest
        score = (of_best + of_whole) / 2 + TITLE * titles.get(number, 0.0)
        channels.append(RankedChannel(number, round(score, _DIGITS), of_best, of_whole))
    return sorted(channels, key=lambda one: (-one.score, -one.number))


def with_gains(channels: Iterable[RankedChannel], gains: Mapping[int, float]) -> list[RankedChannel]:
    """Return the channels, and those that only gain, with what each gains; the best first, of equal ones the newer."""
    known = {number: RankedChannel(number, 0.0, 0.0, 0.0) for number in gains} | {one.number: one for one in channels}
    changed = (one._replace(score=round(one.score + gains.get(one.number, 0.0), _DIGITS)) for one in known.values())
    return sorted(changed, key=lambda one: (-one.score, -one.number))


def whole_scores(
    candidates: Iterable[Candidate], weights: Sequence[float], lengths: Mapping[int, int]
) -> dict[int, float]:
    """Return what all messages of each channel together hold. `weights` are those of the terms, `lengths` the channels'
    tokens."""
    average = sum(lengths.values()) / max(len(lengths), 1)
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for one in candidates:
        counts[one.channel_id][one.held] += 1
    scores = {}
    for number, alike in counts.items():
        norm = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * lengths.get(number, 0) / max(average, 1.0))
        frequencies = _frequencies(alike, len(weights))
        scores[number] = sum(
            weight * count * (1 + SATURATION) / (count + norm)
            for weight, count in zip(weights, frequencies, strict=True)
            if count
        )
    return scores


def _frequencies(alike: Mapping[int, int], terms: int) -> list[int]:
    """Return how many messages hold each term; `alike` counts messages by what they hold."""
    counts = [0] * terms
    for held, count in alike.items():
        while held:
            bit = held & -held
            counts[bit.bit_length() - 1] += count
            held ^= bit
    return counts


def sittings_from(
    begins: Sequence[int], size: int, candidates: Iterable[Candidate], weights: Sequence[float]
) -> Sittings:
    """Return a channel's sittings, scored by what all their messages hold: each term once, shorter ones more.

    `size`: how many messages the channel has.
    """
    held: dict[int, int] = defaultdict(int)
    for one in candidates:
        held[bisect_right(begins, one.seq)] |= one.held
    lengths = [end - begin for begin, end in pairwise([0, *begins, max(size, *begins, 1)])]
    average = size / len(lengths)
    scores = [weight_of(held[at], weights) * length_norm(length, average) for at, length in enumerate(lengths)]
    most = max(scores) or 1.0
    return Sittings(begins, [FROM_SITTING * score / most for score in scores])


def weight_of(held: int, weights: Sequence[float]) -> float:
    """Return the sum of the weights of the terms whose bits are set."""
    total = 0.0
    while held:
        bit = held & -held
        total += weights[bit.bit_length() - 1]
        held ^= bit
    return total
