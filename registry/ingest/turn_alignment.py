"""Two conversations laid beside each other by their questions: the turns that ask the same. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from registry.domain import Role
from registry.ingest.alignment import BestChains, Chain, Utterance

SAME_ID = 2.0
"""Evidence of the same question by its client's own id."""
SHARED_ANSWER = 1.25
"""Evidence of an equal question whose turns also share an answer, word for word."""
OPEN_ANSWER = 1.0
"""The same, where one of the turns has no answer yet."""
OTHER_ANSWER = 0.4
"""The same, where the answers differ: shortened, or another time that the same was asked."""
SAME_PLACE = 0.01
BOTH_LAST = 0.28
"""More evidence: both turns are the last ones. Who sends only a part sends the end."""
MOST_PAIRS = 20_000


@dataclass(slots=True)
class Turn:
    """A question, by its position, and the positions of what was said until the next one. The first has no question."""

    question: int | None
    key: bytes
    native_id: str | None = None
    replies: list[int] = field(default_factory=list)
    reply_digests: set[bytes] = field(default_factory=set)


Texts = Callable[[Sequence[int]], Mapping[int, str]]
"""Gives the texts of the messages at some positions: only few are needed."""


@dataclass(frozen=True)
class Transcript:
    """A conversation as one side has it, the registry or who sends: its messages in order, and a way to their texts."""

    utterances: Sequence[Utterance]
    texts: Texts

    @cached_property
    def turns(self) -> list[Turn]:
        """The conversation cut at its questions; what comes before the first one, if anything, is a turn without."""
        turns = [Turn(None, b"")]
        for at, utterance in enumerate(self.utterances):
            if utterance.opens_turn:
                turns.append(Turn(at, utterance.digest, utterance.native_id))
            else:
                turns[-1].replies.append(at)
                turns[-1].reply_digests.add(utterance.digest)
        return turns

    def answers(self, turn: Turn) -> list[int]:
        """The positions of what the assistant said in a turn; what tools said is no answer."""
        return [at for at in turn.replies if self.utterances[at].role == Role.ASSISTANT]

    def answer_texts(self, turns: Sequence[Turn]) -> list[list[str]]:
        """Return the assistant's texts of some turns, read at once."""
        answers = [self.answers(turn) for turn in turns]
        texts = self.texts(list(chain.from_iterable(answers)))
        return [[texts[at] for at in some] for some in answers]


def matching_turns(
    stored: Sequence[Turn], sent: Sequence[Turn], agreeing: Collection[tuple[int, int]] = ()
) -> list[tuple[int, int]]:
    """Which turns ask the same, as pairs of positions in both, in order: the best such chain.

    `agreeing`: pairs of turns that are known to share an answer in other words.
    """
    chains = BestChains(len(stored), _score)
    best: Chain | None = None
    # Turns sent come in order, and each from its last place to its first: no chain of the same turn is in reach.
    for j, i in possible_pairs(stored, sent):
        before = chains.before(i)
        weight = SHARED_ANSWER if (i, j) in agreeing else _weight(stored, sent, i, j)
        ending = Chain(weight + (before.score if before else 0.0), i, j, before)
        chains.add(ending)
        if best is None or ending.score > best.score:
            best = ending
    return best.pairs() if best else []


def _score(chain: Chain) -> float:
    return chain.score


def possible_pairs(stored: Sequence[Turn], sent: Sequence[Turn]) -> list[tuple[int, int]]:
    """All (sent, stored) that ask the same, in the order in which chains grow; of too many the nearest."""
    places: dict[bytes, list[int]] = defaultdict(list)
    for i, turn in enumerate(stored[1:], 1):
        places[turn.key].append(i)
    found = [[i for i in places.get(turn.key, ()) if may_be(stored[i], turn)] for turn in sent]
    if sum(map(len, found)) > MOST_PAIRS:
        found = _nearest_only(found, len(stored) - len(sent))
    return [(j, i) for j, some in enumerate(found) if j for i in reversed(some)]


def may_be(old: Turn, new: Turn) -> bool:
    """Return whether the questions have no ids by which they are different ones."""
    return old.native_id is None or new.native_id is None or old.native_id == new.native_id


def _nearest_only(found: Sequence[Sequence[int]], shift: int) -> list[list[int]]:
    most = max(1, MOST_PAIRS // len(found))
    return [_nearest(some, (j, j + shift), most) for j, some in enumerate(found)]


def _nearest(places: Sequence[int], wanted: Sequence[int], most: int) -> list[int]:
    return sorted(sorted(places, key=lambda place: min(abs(place - at) for at in wanted))[:most])


def _weight(stored: Sequence[Turn], sent: Sequence[Turn], i: int, j: int) -> float:
    old, new = stored[i], sent[j]
    weight = OTHER_ANSWER
    if old.native_id and old.native_id == new.native_id:
        weight = SAME_ID
    elif not (old.reply_digests and new.reply_digests):
        weight = OPEN_ANSWER
    elif old.reply_digests & new.reply_digests:
        weight = SHARED_ANSWER
    if i == len(stored) - 1 and j == len(sent) - 1:
        weight += BOTH_LAST
    return weight + SAME_PLACE * (i == j)
