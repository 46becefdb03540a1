"""Two conversations laid beside each other by their questions: the turns that ask the same. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from registry.domain import Role

SAME_NAME = 2.0
"""Evidence of the same question by its client's own name."""
SHARED_ANSWER = 1.25
"""Evidence of an equal question whose turns also share an answer, word for word."""
OPEN_ANSWER = 1.0
"""The same, where one of the turns has no answer yet."""
OTHER_ANSWER = 0.4
"""The same, where the answers differ: shortened, or another time that the same was asked."""
SAME_PLACE = 0.01
BOTH_LAST = 0.28
"""More evidence: both turns are the last ones. Who tells only a part tells the end."""
MOST_PAIRS = 20_000


class Line(NamedTuple):
    """One message: its role, the digest of its words, and its client's own name for it, if it has one."""

    role: str
    digest: bytes
    name: str | None = None


@dataclass(slots=True)
class Turn:
    """A question, by its position, and the positions of what was said until the next one. The first has no question."""

    question: int | None
    key: bytes
    name: str | None = None
    answers: list[int] = field(default_factory=list)
    said: set[bytes] = field(default_factory=set)


def turns_of(lines: Sequence[Line]) -> list[Turn]:
    """The conversation cut at its questions; what comes before the first one, if anything, is a turn without."""
    turns = [Turn(None, b"")]
    for at, line in enumerate(lines):
        if line.role == Role.USER:
            turns.append(Turn(at, line.digest, line.name))
        else:
            turns[-1].answers.append(at)
            turns[-1].said.add(line.digest)
    return turns


def matching_turns(
    stored: Sequence[Turn], sent: Sequence[Turn], agreeing: Collection[tuple[int, int]] = ()
) -> list[tuple[int, int]]:
    """Which turns ask the same, as pairs of positions in both, in order: the best such chain.

    `agreeing`: pairs of turns that are known to share an answer in other words.
    """
    chains = _BestChains(len(stored))
    best: _Chain | None = None
    for j, i in possible_pairs(stored, sent):
        before = chains.before(i)
        weight = SHARED_ANSWER if (i, j) in agreeing else _weight(stored, sent, i, j)
        score = weight + (before.score if before else 0.0)
        chain = _Chain(score, i, j, before)
        chains.add(chain)
        if best is None or chain.score > best.score:
            best = chain
    found = []
    while best:
        found.append((best.stored, best.sent))
        best = best.before
    return found[::-1]


def possible_pairs(stored: Sequence[Turn], sent: Sequence[Turn]) -> list[tuple[int, int]]:
    """All (sent, stored) that ask the same, in the order in which chains grow; of too many the nearest."""
    places: dict[bytes, list[int]] = defaultdict(list)
    for i, turn in enumerate(stored[1:], 1):
        places[turn.key].append(i)
    found = [[i for i in places.get(turn.key, ()) if may_be(stored[i], turn)] for turn in sent]
    if sum(map(len, found)) > MOST_PAIRS:
        most = max(1, MOST_PAIRS // len(sent))
        shift = len(stored) - len(sent)
        found = [_nearest(some, (j, j + shift), most) for j, some in enumerate(found)]
    return [(j, i) for j, some in enumerate(found) if j for i in reversed(some)]


def may_be(old: Turn, new: Turn) -> bool:
    """Whether the questions are not named as different ones."""
    return old.name is None or new.name is None or old.name == new.name


def _nearest(places: Sequence[int], wanted: Sequence[int], most: int) -> list[int]:
    return sorted(sorted(places, key=lambda place: min(abs(place - at) for at in wanted))[:most])


def _weight(stored: Sequence[Turn], sent: Sequence[Turn], i: int, j: int) -> float:
    old, new = stored[i], sent[j]
    weight = OTHER_ANSWER
    if old.name and old.name == new.name:
        weight = SAME_NAME
    elif not (old.said and new.said):
        weight = OPEN_ANSWER
    elif old.said & new.said:
        weight = SHARED_ANSWER
    if i == len(stored) - 1 and j == len(sent) - 1:
        weight += BOTH_LAST
    return weight + SAME_PLACE * (i == j)


class _Chain(NamedTuple):
    score: float
    stored: int
    sent: int
    before: _Chain | None


class _BestChains:
    """The best chain that ends before a stored turn: a Fenwick tree of maxima.

    Rows (turns sent) come in order, and each from its last place to its first: no chain of the same row is in reach.
    """

    def __init__(self, size: int) -> None:
        self._tree: list[_Chain | None] = [None] * (size + 1)

    def add(self, chain: _Chain) -> None:
        node = chain.stored + 1
        while node < len(self._tree):
            held = self._tree[node]
            if held is None or chain.score > held.score:
                self._tree[node] = chain
            node += node & -node

    def before(self, place: int) -> _Chain | None:
        best: _Chain | None = None
        node = place
        while node > 0:
            held = self._tree[node]
            if held is not None and (best is None or held.score > best.score):
                best = held
            node -= node & -node
        return best
