"""The order of what was found: a message's own score, what its neighbours add, and channels by both. Pure.

A request may come in several wordings. Each is scored by itself and divided by its best; the question counts whole,
each other wording half (`docs/decisions/0010-what-answers.md` has the measurements behind every constant here).
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, pairwise, repeat
from operator import add, itemgetter
from typing import NamedTuple

from registry.text.ranking.term_weights import Term, idf

_SATURATION = 1.2
_LENGTH_SHARE = 0.4
_ROLE_WEIGHTS = {"assistant": 0.65}
_FROM_PREVIOUS, _FROM_NEXT, _FROM_SECOND = 0.3, 0.4, 0.15
"""What a message gains from the one before it, behind it and two places away, as a share of their own scores."""
FARTHEST = 2
_FROM_SITTING = 0.6
"""What the messages of a sitting gain that holds most of the request."""
_RARE_HERE = 0.6
"""Inside one channel a term counts so much by how rare it is there, the rest by how rare it is in the registry."""
OTHER_WORDING = 0.5
BEST_MESSAGE = 0.5
"""A channel's score: so much its best message, the rest what all of it holds of the request."""
CLAIM = 0.25
"""So much of a wording one message speaks for when conversations are compared: one of key words alone holds them all,
and what is about something says it in several places. A term is never split, however short the wording."""
_DIGITS = 9  # of a score: sums of the same parts in another order give the same score


def rounded(scores: Iterable[float]) -> list[float]:
    """Return the scores rounded to _DIGITS."""
    return [round(score, _DIGITS) for score in scores]


class Candidate(NamedTuple):
    """A message that holds some terms of a wording, or stands beside one that does.

    `number` is its id in arrival order, `seq` its position inside its channel, `length` its number of tokens,
    `weight` the sum of the weights of the terms found in it, `turn` the seq of the message that opens its turn,
    `held` a bit for each of the terms.
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
    """A message with its score and what the score is made of (the two parts add up to it)."""

    candidate: Candidate
    score: float
    own: float
    neighbours: float


class RankedChannel(NamedTuple):
    """A channel with its score, 0 to 1 by words and more by meaning, and what it is by words: its best message, and all
    it holds of the request."""

    number: int
    score: float
    best: float
    whole: float


class Sittings(NamedTuple):
    """The parts of one channel that no long pause divides: at which places (seq) all but the first of them begin, and
    what the messages of each gain."""

    begins: Sequence[int]
    gains: Sequence[float]


def own_scores(
    candidates: Iterable[Candidate], average_length: float, weighed: Mapping[int, float] | None = None
) -> dict[int, float]:
    """By number, what each message scores by itself. `average_length` is in tokens; `weighed` are other weights than
    the messages' own, by what they hold."""
    norms, some = _Norms(average_length), list(candidates)
    scores = [
        (weighed[held] if weighed else weight) * norms[length] * _ROLE_WEIGHTS.get(role, 1.0)
        for _, _, _, role, length, weight, _, held in some
    ]
    return dict(zip(map(_number, some), rounded(scores), strict=True))


def weighed_inside(candidates: Iterable[Candidate], terms: Sequence[Term], total: int, size: int) -> dict[int, float]:
    """What messages of one channel weigh by how rare the terms are among its `size` messages, by what they hold.

    Who talks about one person all the time is not found by the name. `terms` are weighed for `total` messages.
    """
    alike = Counter(map(_held, candidates))
    weights = []
    for place, term in enumerate(terms):
        here = sum(count for held, count in alike.items() if held >> place & 1)
        weights.append(term.weight * (1 - _RARE_HERE + _RARE_HERE * idf(here, size) / idf(term.frequency, total)))
    return {held: weight_of(held, weights) for held in alike}


def claim_of(weights: Sequence[float], full: float) -> float:
    """The weight that one message may claim of a wording; `full` is that of a perfect answer."""
    return max(CLAIM * full, *weights, 0.0)


def claimed_scores(candidates: Iterable[Candidate], claim: float, average_length: float) -> dict[int, float]:
    """By number, what messages that have more weight than one may claim score with just that."""
    norms, some = _Norms(average_length), [one for one in candidates if one[5] > claim]  # by weight
    scores = [claim * norms[length] * _ROLE_WEIGHTS.get(role, 1.0) for _, _, _, role, length, _, _, _ in some]
    return dict(zip(map(_number, some), rounded(scores), strict=True))


def combined(scored: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """The scores of all wordings together, the question's first; each is divided by its best."""
    total: dict[int, float] = {}
    for place, scores in enumerate(scored):
        best = max(scores.values(), default=0.0)
        share = OTHER_WORDING if place else 1.0
        told = {number: share * score / best for number, score in scores.items()} if best > 0 else {}
        told.update([(number, total[number] + told[number]) for number in total.keys() & told])
        total = {**total, **told} if total else told
    return total


def rank(
    own: Mapping[int, float],
    messages: Iterable[Candidate],
    *,
    dialogue: bool = True,
    sittings: Sittings | None = None,
) -> list[Ranked]:
    """Order messages by (-score, -number): those scored, and those that only gain from their neighbours.

    Without `dialogue` nothing is gained from neighbours: imported documents have none. `sittings`: those of the channel
    whose messages all of them are.
    """
    newest_first = sorted(messages, key=_number, reverse=True)
    scores = list(map(own.get, map(_number, newest_first), repeat(0.0)))
    gains = _gains([one[1] << SEQ_BITS | one[2] for one in newest_first], scores) if dialogue else [0.0] * len(scores)
    if sittings:  # a sitting gives only to who has something
        begins, given = sittings
        told = zip(newest_first, scores, gains, strict=True)
        gains = [gain + given[bisect_right(begins, one[2])] if score + gain > 0 else gain for one, score, gain in told]
    totals = list(map(add, scores, gains))
    rated = zip(newest_first, rounded(totals), scores, gains, strict=True)
    ranked = map(Ranked._make, compress(rated, [total > 0 for total in totals]))
    return sorted(ranked, key=itemgetter(1), reverse=True)  # by score; of equal ones the order stays


_number, _held = itemgetter(0), itemgetter(7)


def best_scores(scores: Sequence[float], messages: Sequence[Candidate]) -> dict[int, float]:
    """By channel, the score of the message that would be ranked first of these, which score so much by themselves."""
    best: dict[int, float] = {}
    gains = _gains([one[1] << SEQ_BITS | one[2] for one in messages], scores)
    for one, total in zip(messages, map(add, scores, gains), strict=True):
        if total > best.get(one[1], 0.0):
            best[one[1]] = total
    return dict(zip(best, rounded(best.values()), strict=True))


SEQ_BITS = 40
"""A place in a channel as one number: the channel's above so many bits, so that those of two are never close."""


def _gains(places: Sequence[int], scores: Sequence[float]) -> list[float]:
    """What each of the messages at these places gains from those around it, by what these score by themselves."""
    beside = dict(zip(places, scores, strict=True)).get
    return [
        _FROM_PREVIOUS * beside(place - 1, 0.0)
        + _FROM_NEXT * beside(place + 1, 0.0)
        + _FROM_SECOND * beside(place - 2, 0.0)
        + _FROM_SECOND * beside(place + 2, 0.0)
        for place in places
    ]


def rank_channels(
    best: Mapping[int, float], wholes: Sequence[Mapping[int, float]], titles: Mapping[int, float]
) -> list[RankedChannel]:
    """The channels of what was ranked, best first, of equal ones the newer.

    `best`: what the best message of each scores (`best_scores`); `wholes`: for each wording what each channel holds of
    it (`whole_scores`); `titles` what their titles add to that.
    """
    whole = combined(wholes)
    most, fullest = max(best.values(), default=0.0), max(whole.values(), default=0.0)
    numbers = sorted(best.keys() | titles.keys(), reverse=True)
    by_best = [best.get(number, 0.0) / most if most else 0.0 for number in numbers]
    by_whole = [whole.get(number, 0.0) / fullest if fullest else 0.0 for number in numbers]
    scores = [
        BEST_MESSAGE * of_best + (1 - BEST_MESSAGE) * of_whole + titles.get(number, 0.0)
        for number, of_best, of_whole in zip(numbers, by_best, by_whole, strict=True)
    ]
    channels = map(RankedChannel._make, zip(numbers, rounded(scores), by_best, by_whole, strict=True))
    return sorted(channels, key=itemgetter(1), reverse=True)  # by score; of equal ones the order stays


def gaining(channels: Iterable[RankedChannel], gains: Mapping[int, float]) -> list[RankedChannel]:
    """The channels of a ranking, and those that only gain, with what each gains; the best first, then the newer."""
    known = {number: RankedChannel(number, 0.0, 0.0, 0.0) for number in gains} | {one.number: one for one in channels}
    changed = (one._replace(score=round(one.score + gains.get(one.number, 0.0), _DIGITS)) for one in known.values())
    return sorted(changed, key=lambda one: (-one.score, -one.number))


def whole_scores(
    candidates: Iterable[Candidate],
    weights: Sequence[float],
    claim: float,
    average_length: float,
    lengths: Mapping[int, int],
    average_channel: float,
) -> dict[int, float]:
    """By channel, what all its messages together hold of a wording: each term once, shorter channels more.

    A term counts as the shortest message holds it, and little in one far above `average_length`, or a list of
    everything would be about everything; and no message tells of more than it may claim. `weights` are those of the
    terms, `lengths` the channels' tokens.
    """
    scores: dict[int, float] = defaultdict(float)
    seen: dict[int, int] = {}
    shortest_first = _shortest_first(candidates)
    norms, weighed = _Norms(average_length), _Weighed(weights)
    shares = {length: min(1.0, norms[length]) ** 2 for length in {one[4] for one in shortest_first}}
    for _, channel_id, _, _, length, _, _, held in shortest_first:
        before = seen.get(channel_id, 0)
        if new := held & ~before:
            seen[channel_id] = before | new
            told = weighed[new] * shares[length]
            scores[channel_id] += told if told < claim else claim
    of_channels = _length_norms(map(lengths.get, scores, repeat(0)), average_channel)
    return {
        number: score * norm if norm < 1.0 else score
        for (number, score), norm in zip(scores.items(), of_channels, strict=True)
    }


def _shortest_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Of equal ones the older first. Two sorts by one number are quicker than one by two."""
    return sorted(sorted(candidates, key=itemgetter(0)), key=itemgetter(4))


def sittings_from(
    begins: Sequence[int], size: int, wordings: Iterable[tuple[Iterable[Candidate], Sequence[float]]]
) -> Sittings:
    """A channel's sittings, each by what all of its messages hold of the wordings: each term once, shorter ones more.

    `size`: how many messages the channel has; `wordings`: the candidates of each, and the weights of its terms.
    """
    lengths = [end - begin for begin, end in pairwise([0, *begins, max(size, *begins, 1)])]
    norms = [1 - _LENGTH_SHARE + _LENGTH_SHARE * length * len(lengths) / max(size, 1) for length in lengths]
    scored = []
    for candidates, weights in wordings:
        held: dict[int, int] = defaultdict(int)
        for _, _, seq, _, _, _, _, bits in candidates:
            held[bisect_right(begins, seq)] |= bits
        scored.append({place: weight_of(bits, weights) / norms[place] for place, bits in held.items()})
    whole = combined(scored)
    return Sittings(begins, [_FROM_SITTING * whole.get(place, 0.0) for place in range(len(lengths))])


def weight_of(held: int, weights: Sequence[float]) -> float:
    """The sum of the weights of the terms whose bits are set."""
    return sum(weight for place, weight in enumerate(weights) if held >> place & 1)


class _Weighed(dict[int, float]):
    """`weight_of` what is held; messages are many, and few sets of terms."""

    def __init__(self, weights: Sequence[float]) -> None:
        super().__init__()
        self._weights = weights

    def __missing__(self, held: int) -> float:
        self[held] = weight_of(held, self._weights)
        return self[held]


class _Norms(dict[int, float]):
    """What a length does to a message's score; of lengths there are few, too."""

    def __init__(self, average_length: float) -> None:
        super().__init__()
        self._average_length = average_length

    def __missing__(self, length: int) -> float:
        (self[length],) = _length_norms([length], self._average_length)
        return self[length]


def _length_norms(lengths: Iterable[int], average_length: float) -> list[float]:
    average = max(average_length, 1.0)
    return [
        (1 + _SATURATION) / (1 + _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * (length / average)))
        for length in lengths
    ]
