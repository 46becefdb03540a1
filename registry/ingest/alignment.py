"""Align the messages or the turns of two conversations, to find which ones are the same. Pure.

Clients send the whole conversation every turn, or its last turns, with white space and timestamps changed on the way.
The sent messages are therefore compared with the stored ones as two sequences: they are a window of the conversation,
with the new messages at the end. Hashes alone would lose the third "continue". `best_chain` aligns both messages and
turns; these differ in their evidence and in `Penalties`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain
from typing import NamedTuple

from registry.domain import Role

Positions = list[int | None]
"""For each sent message the position of the stored message that it repeats, or None if it is new."""


class Utterance(NamedTuple):
    """A message for alignment: the digest of its role and words, the client's id, the time in ms if known.

    `is_long`: equal words are hardly chance.
    """

    role: str
    digest: bytes
    native_id: str | None = None
    instant: int | None = None
    is_long: bool = False


class Penalties(NamedTuple):
    """Penalties on the score of a chain of matches, in the unit of evidence: one equal message is 1."""

    new_before_old: float = 0.0  # a new message precedes a stored one, although new messages usually come last
    skipped_turn: float = 0.0  # the chain skips stored turns
    rewritten_end: float = 0.0  # instead of skipped_turn, if the chain begins with both first messages


MESSAGE_PENALTIES = Penalties(new_before_old=1.5, skipped_turn=1.5, rewritten_end=0.5)
TURN_PENALTIES = Penalties()


class _Chain(NamedTuple):
    """A linked list of matches: the last one (`stored`, `sent`), and the chain before it."""

    score: float
    stored: int
    sent: int
    before: _Chain | None
    is_whole: bool


class _BestChains:
    """The best chains by the stored position of their last match. A later position needs at least the same score."""

    def __init__(self) -> None:
        self._positions: list[int] = []
        self._chains: list[_Chain] = []

    def add(self, new: _Chain) -> None:
        at = bisect_left(self._positions, new.stored)
        is_dominated = self._positions[at : at + 1] == [new.stored] and self._chains[at].score >= new.score
        if is_dominated or (at and self._chains[at - 1].score > new.score):
            return
        end = at
        while end < len(self._chains) and self._chains[end].score < new.score:
            end += 1
        self._positions[at:end] = [new.stored]
        self._chains[at:end] = [new]

    def before(self, old: int) -> _Chain | None:
        at = bisect_left(self._positions, old)
        return self._chains[at - 1] if at else None


def best_chain(
    candidates: Sequence[Sequence[int]],
    evidence: Callable[[int, int], float],
    turns: Sequence[int],
    penalties: Penalties,
    *,
    may_be_whole: bool = True,
) -> list[tuple[int, int]]:
    """Return the matches (stored, sent) of the chain with the highest score, in order; none without a positive score.

    Args:
        candidates: for each sent item the stored positions with which it can match.
        evidence: returns the score of a match (stored, sent).
        turns: the number of turns begun before each stored position, and before the end.
        may_be_whole: the sent items may be the whole conversation, if the chain begins with both first items.
    """
    best: _Chain | None = None
    just_before, earlier = defaultdict[int, _BestChains](_BestChains), defaultdict[int, _BestChains](_BestChains)
    previous: list[_Chain] = []
    all_turns = -1  # the key of all turns together

    def extend(sent: int, old: int) -> _Chain:
        """Return the best chain that ends with this match."""
        start = -penalties.new_before_old if sent else 0.0
        options = [
            (found.score - penalty - penalties.skipped_turn * (turns[old] > turns[found.stored + 1]), found)
            for ends, penalty in ((just_before, 0.0), (earlier, penalties.new_before_old))
            for key in (turns[old], all_turns)
            if key in ends and (found := ends[key].before(old))
        ]
        score, before = max(options, key=lambda one: (one[0], one[1].stored), default=(start, None))
        if before is None or score < start:
            return _Chain(start + evidence(old, sent), old, sent, None, may_be_whole and sent == old == 0)
        return _Chain(score + evidence(old, sent), old, sent, before, before.is_whole)

    def finish(found: _Chain) -> _Chain:
        """Subtract the penalty for stored turns after the chain's end, if it ends before the last sent item."""
        if found.sent == len(candidates) - 1 or turns[-1] == turns[found.stored + 1]:
            return found
        penalty = penalties.rewritten_end if found.is_whole else penalties.skipped_turn
        return found._replace(score=found.score - penalty)

    for sent, positions in enumerate(candidates):
        new = [extend(sent, old) for old in positions]
        just_before = defaultdict(_BestChains)
        for ends, chains in ((earlier, previous), (just_before, new)):
            for one in chains:
                ends[turns[one.stored + 1]].add(one)
                ends[all_turns].add(one)
        previous = new
        endings = filter(None, (best, *map(finish, new)))
        best = max(endings, key=lambda one: (one.score, one.stored), default=None)
    pairs = []
    link = best if best and best.score > 0 else None
    while link:
        pairs.append((link.stored, link.sent))
        link = link.before
    return pairs[::-1]


def _limit_pairs(candidates: Sequence[Sequence[int]], size: int) -> Sequence[Sequence[int]]:
    """Limit the candidates to 20 000 pairs: those whose positions, counted from either end, differ least."""
    if sum(map(len, candidates)) <= 20_000:
        return candidates
    most, shift = max(1, 20_000 // len(candidates)), size - len(candidates)
    return [
        sorted(sorted(positions, key=lambda old: min(abs(old - at), abs(old - at - shift)))[:most])
        for at, positions in enumerate(candidates)
    ]


# -- messages


def recognise(stored: Sequence[Utterance], sent: Sequence[Utterance], *, is_whole: bool = True) -> Positions:
    """Match the sent messages with the stored ones, which are in conversation order.

    `is_whole`: `stored` is the whole conversation, not only its end.
    """
    positions = defaultdict[bytes, list[int]](list)
    for at, one in enumerate(stored):
        positions[one.digest].append(at)
    questions_before = list(accumulate((one.role == Role.USER for one in stored), initial=0))

    def evidence(old: int, new: int) -> float:
        is_same_instant = stored[old].instant is not None and stored[old].instant == sent[new].instant
        return 1.0 + sent[new].is_long + 2.0 * is_same_instant

    candidates = _limit_pairs([positions.get(one.digest, ()) for one in sent], len(stored))
    may_be_whole = is_whole and bool(sent) and not _is_later(sent[0], _newest(stored))
    found: Positions = [None] * len(sent)
    for old, new in best_chain(candidates, evidence, questions_before, MESSAGE_PENALTIES, may_be_whole=may_be_whole):
        found[new] = old
    if None in found:
        # a resend must never add a message, however low its score is
        found = latest_positions(stored, sent) or found
    return [None] * len(sent) if is_new_turn(stored, sent, found) else found


def is_new_turn(stored: Sequence[Utterance], sent: Sequence[Utterance], found: Positions) -> bool:
    """Return True if a new turn repeats old words: every message matches, but is later than all stored ones."""
    newest = _newest(stored)
    return newest is not None and None not in found and all(_is_later(each, newest) for each in sent)


def _newest(stored: Sequence[Utterance]) -> int | None:
    return max((each.instant for each in stored if each.instant is not None), default=None)


def _is_later(new: Utterance, newest: int | None) -> bool:
    return newest is not None and new.instant is not None and new.instant > newest


def latest_positions(stored: Sequence[Utterance], sent: Sequence[Utterance]) -> Positions | None:
    """Return the latest stored positions of all sent messages in order, with gaps allowed; None if one is missing."""
    positions: Positions = []
    at = len(stored)
    for utterance in reversed(sent):
        at -= 1
        while at >= 0 and stored[at].digest != utterance.digest:
            at -= 1
        if at < 0:
            return None
        positions.append(at)
    return positions[::-1]


# -- turns


@dataclass(slots=True)
class Turn:
    """A question and the replies up to the next question, as positions. The first turn has no question."""

    question: int | None
    key: bytes
    native_id: str | None = None
    replies: list[int] = field(default_factory=list)
    reply_digests: set[bytes] = field(default_factory=set)


Texts = Callable[[Sequence[int]], Mapping[int, str]]
"""Returns the texts of the messages at the given positions. Only few texts are needed, so they are read on demand."""


@dataclass(frozen=True)
class Transcript:
    """The messages of one side of a comparison, in order, and a function that returns their texts."""

    utterances: Sequence[Utterance]
    texts: Texts

    @cached_property
    def turns(self) -> list[Turn]:
        """Return the conversation split at its questions. The first turn has the messages before the first question."""
        turns = [Turn(None, b"")]
        for at, utterance in enumerate(self.utterances):
            if utterance.role == Role.USER:
                turns.append(Turn(at, utterance.digest, utterance.native_id))
            else:
                turns[-1].replies.append(at)
                turns[-1].reply_digests.add(utterance.digest)
        return turns

    def answers(self, turn: Turn) -> list[int]:
        """Return the positions of the assistant's messages in a turn, without tool output."""
        return [at for at in turn.replies if self.utterances[at].role == Role.ASSISTANT]

    def answer_texts(self, turns: Sequence[Turn]) -> list[list[str]]:
        """Read the assistant's texts of several turns at once."""
        answers = [self.answers(turn) for turn in turns]
        texts = self.texts(list(chain.from_iterable(answers)))
        return [[texts[at] for at in some] for some in answers]


def matching_turns(
    stored: Sequence[Turn], sent: Sequence[Turn], agreeing: Collection[tuple[int, int]] = ()
) -> list[tuple[int, int]]:
    """Return the positions (stored, sent) of turns with the same question, in order.

    `agreeing`: pairs of turns whose answers are known to be the same in other words.
    """

    def evidence(i: int, j: int) -> float:
        if (i, j) in agreeing:
            return 1.25
        are_last = i == len(stored) - 1 and j == len(sent) - 1  # a client that sends only a part sends the end
        return _turn_evidence(stored[i], sent[j]) + 0.28 * are_last + 0.01 * (i == j)

    return best_chain(candidate_turns(stored, sent), evidence, [0] * (len(stored) + 1), TURN_PENALTIES)


def _turn_evidence(old: Turn, new: Turn) -> float:
    if old.native_id and old.native_id == new.native_id:
        return 2.0
    if not (old.reply_digests and new.reply_digests):
        return 1.0  # one of the turns has no answer yet
    # without an equal answer, the answer was shortened, or the same question was asked another time
    return 1.25 if old.reply_digests & new.reply_digests else 0.4


def candidate_turns(stored: Sequence[Turn], sent: Sequence[Turn]) -> Sequence[Sequence[int]]:
    """Return for each sent turn the positions of the stored turns with the same question."""
    positions: dict[bytes, list[int]] = defaultdict(list)
    for i, turn in enumerate(stored[1:], 1):
        positions[turn.key].append(i)
    found = [[i for i in positions.get(turn.key, ()) if can_match(stored[i], turn)] for turn in sent]
    return _limit_pairs([(), *found[1:]], len(stored))


def can_match(old: Turn, new: Turn) -> bool:
    """Return False if both questions have ids and these differ."""
    return old.native_id is None or new.native_id is None or old.native_id == new.native_id
