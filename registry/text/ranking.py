"""The order of what was found: each message's own score, and what its neighbours and its session add. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_SATURATION = 1.2
_LENGTH_SHARE = 0.75
_ROLE_WEIGHTS = {"assistant": 0.65}
_PREVIOUS_SHARE = 0.3
_NEXT_SHARE = 0.4
_SESSION_SHARE = 0.4
_SESSION_BEST = (1.0, 0.5)
_DIGITS = 9
_ENOUGH_OF_A_CHANNEL = 50


class Candidate(NamedTuple):
    """A message that holds some terms.

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
    """A candidate with its score and what the score is made of (the three parts add up to it)."""

    candidate: Candidate
    score: float
    own: float
    neighbours: float
    session: float


def rank(
    candidates: Iterable[Candidate], average_length: float, keep: int = 300, *, dialogue: bool = True
) -> list[Ranked]:
    """Order the best `keep` candidates by (-score, -number).

    With `dialogue` a message also gains from its neighbours and from the best messages of its channel;
    switch it off for imported documents. `average_length` is in tokens.
    """
    scored = [(_own_score(candidate, average_length), candidate) for candidate in candidates]
    best = _spread(sorted(scored, key=lambda pair: (-pair[0], -pair[1].number)), keep)
    neighbours = _from_neighbours(best) if dialogue else [0.0] * len(best)
    with_neighbours = [own + gained for (own, _), gained in zip(best, neighbours, strict=True)]
    sessions = _from_sessions(best, with_neighbours) if dialogue else {}
    ranked = []
    for (own, candidate), gained in zip(best, neighbours, strict=True):
        session = sessions.get(candidate.channel_id, 0.0)
        ranked.append(Ranked(candidate, round(own + gained + session, _DIGITS), own, gained, session))
    return sorted(ranked, key=lambda one: (-one.score, -one.candidate.number))


# -- scores


def _own_score(candidate: Candidate, average_length: float) -> float:
    relative = candidate.length / max(average_length, 1.0)
    norm = (1 + _SATURATION) / (1 + _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * relative))
    return round(candidate.weight * norm * _ROLE_WEIGHTS.get(candidate.role, 1.0), _DIGITS)


def _spread(ordered: list[tuple[float, Candidate]], keep: int) -> list[tuple[float, Candidate]]:
    """The best, in order; where they are too many, no channel takes the places of others before it has enough."""
    if len(ordered) <= keep:
        return ordered
    taken: Counter[int] = Counter()
    first: list[tuple[float, Candidate]] = []
    rest: list[tuple[float, Candidate]] = []
    for pair in ordered:
        taken[pair[1].channel_id] += 1
        (first if taken[pair[1].channel_id] <= _ENOUGH_OF_A_CHANNEL else rest).append(pair)
    chosen = [*first, *rest][:keep]
    return sorted(chosen, key=lambda pair: (-pair[0], -pair[1].number))


def _from_neighbours(best: Sequence[tuple[float, Candidate]]) -> list[float]:
    """What each message gains from those just before and just after it in its channel."""
    own = {(candidate.channel_id, candidate.seq): score for score, candidate in best}
    return [
        _PREVIOUS_SHARE * own.get((candidate.channel_id, candidate.seq - 1), 0.0)
        + _NEXT_SHARE * own.get((candidate.channel_id, candidate.seq + 1), 0.0)
        for _, candidate in best
    ]


def _from_sessions(best: Sequence[tuple[float, Candidate]], scores: Sequence[float]) -> dict[int, float]:
    """What the messages of each channel gain from its two best ones."""
    by_channel: dict[int, list[float]] = defaultdict(list)
    for (_, candidate), score in zip(best, scores, strict=True):
        by_channel[candidate.channel_id].append(score)
    return {channel_id: _from_session(of_channel) for channel_id, of_channel in by_channel.items()}


def _from_session(scores: Iterable[float]) -> float:
    best = sorted(scores, reverse=True)
    return _SESSION_SHARE * sum(share * score for share, score in zip(_SESSION_BEST, best, strict=False))
