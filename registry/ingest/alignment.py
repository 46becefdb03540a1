"""Align two conversations, message by message or turn by turn, to find which are the same, in order. Pure.

Clients send the whole conversation every turn, or its last turns, with white space and timestamps changed on the way.
What came is therefore compared with what is stored as two sequences: it is a window of the same conversation, and what
is new stands at its end. A hash alone would lose the third "continue". `best_chain` is the one aligner; messages and
turns differ in their evidence and in `Doubts`.
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
"""For each message sent: the position of the stored message it repeats, or None for a new one."""


class Utterance(NamedTuple):
    """A message for recognition: `digest` of role and words, the client's id, `instant` (ms) if known.

    `is_long`: long enough that equal words are hardly chance.
    """

    role: str
    digest: bytes
    native_id: str | None = None
    instant: int | None = None
    is_long: bool = False


class Doubts(NamedTuple):
    """Costs of a chain of matches, in the unit of evidence: one equal message is 1."""

    new_before_old: float = 0.0  # new messages stand before an old one, although new words come last
    skipped_turn: float = 0.0  # stored turns are passed over
    rewritten_end: float = 0.0  # the same at the end, where the chain begins both: a conversation with another end


MESSAGES = Doubts(new_before_old=1.5, skipped_turn=1.5, rewritten_end=0.5)
TURNS = Doubts()


class _Chain(NamedTuple):
    """Matches in order: the last one takes `sent` for `stored`, `before` holds the others."""

    score: float
    stored: int
    sent: int
    before: _Chain | None
    is_whole: bool


class _Ends:
    """Chains by the stored place where they end: a later place is kept only with at least the same score."""

    def __init__(self) -> None:
        self._places: list[int] = []
        self._chains: list[_Chain] = []

    def add(self, new: _Chain) -> None:
        at = bisect_left(self._places, new.stored)
        is_held = self._places[at : at + 1] == [new.stored] and self._chains[at].score >= new.score
        if is_held or (at and self._chains[at - 1].score > new.score):
            return
        end = at
        while end < len(self._chains) and self._chains[end].score < new.score:
            end += 1
        self._places[at:end] = [new.stored]
        self._chains[at:end] = [new]

    def before(self, place: int) -> _Chain | None:
        at = bisect_left(self._places, place)
        return self._chains[at - 1] if at else None


def best_chain(
    candidates: Sequence[Sequence[int]],
    evidence: Callable[[int, int], float],
    turns: Sequence[int],
    doubts: Doubts,
    *,
    may_be_whole: bool = True,
) -> list[tuple[int, int]]:
    """Return the best matches in order, as (stored, sent); none if there is more doubt than evidence.

    Args:
        candidates: the stored places that each sent item may be.
        evidence: of a match (stored, sent).
        turns: how many turns were opened before each stored place, and at the end.
        may_be_whole: a chain that begins with both first items is the whole conversation again.
    """
    best: _Chain | None = None
    just_before, earlier = defaultdict[int, _Ends](_Ends), defaultdict[int, _Ends](_Ends)
    row: list[_Chain] = []
    anywhere = -1  # the key of all turns together

    def extended(sent: int, place: int) -> _Chain:
        start = -doubts.new_before_old if sent else 0.0
        options = [
            (found.score - doubt - doubts.skipped_turn * (turns[place] > turns[found.stored + 1]), found)
            for ends, doubt in ((just_before, 0.0), (earlier, doubts.new_before_old))
            for key in (turns[place], anywhere)
            if key in ends and (found := ends[key].before(place))
        ]
        score, before = max(options, key=lambda one: (one[0], one[1].stored), default=(start, None))
        if before is None or score < start:
            return _Chain(start + evidence(place, sent), place, sent, None, may_be_whole and sent == place == 0)
        return _Chain(score + evidence(place, sent), place, sent, before, before.is_whole)

    def ended(found: _Chain) -> _Chain:
        if found.sent == len(candidates) - 1 or turns[-1] == turns[found.stored + 1]:
            return found
        doubt = doubts.rewritten_end if found.is_whole else doubts.skipped_turn
        return found._replace(score=found.score - doubt)

    for sent, places in enumerate(candidates):
        new = [extended(sent, place) for place in places]
        for one in row:
            earlier[turns[one.stored + 1]].add(one)
            earlier[anywhere].add(one)
        just_before = defaultdict(_Ends)
        for one in new:
            just_before[turns[one.stored + 1]].add(one)
            just_before[anywhere].add(one)
        row = new
        endings = filter(None, (best, *map(ended, new)))
        best = max(endings, key=lambda one: (one.score, one.stored), default=None)
    pairs = []
    link = best if best and best.score > 0 else None
    while link:
        pairs.append((link.stored, link.sent))
        link = link.before
    return pairs[::-1]


def _nearest(candidates: Sequence[Sequence[int]], size: int) -> Sequence[Sequence[int]]:
    """Limit candidates to 20 000 pairs, of those nearest to the same position from either end."""
    if sum(map(len, candidates)) <= 20_000:
        return candidates
    most, shift = max(1, 20_000 // len(candidates)), size - len(candidates)
    return [
        sorted(sorted(places, key=lambda place: min(abs(place - at), abs(place - at - shift)))[:most])
        for at, places in enumerate(candidates)
    ]


# -- messages


def overlap(stored: Sequence[bytes], sent: Sequence[bytes]) -> int:
    """Return how many of the first messages sent are, one by one, the last ones stored; the longest such run."""
    for length in range(min(len(stored), len(sent)), 0, -1):
        if sent[length - 1] == stored[-1] and list(sent[:length]) == list(stored[-length:]):
            return length
    return 0


def recognise(stored: Sequence[Utterance], sent: Sequence[Utterance], *, is_whole: bool = True) -> Positions:
    """Return which of the sent messages are stored already.

    `stored`: in conversation order; only the end of the conversation, if not `is_whole`.
    """
    places = defaultdict[bytes, list[int]](list)
    for at, one in enumerate(stored):
        places[one.digest].append(at)
    opened = list(accumulate((one.role == Role.USER for one in stored), initial=0))

    def evidence(old: int, new: int) -> float:
        is_same_instant = stored[old].instant is not None and stored[old].instant == sent[new].instant
        return 1.0 + sent[new].is_long + 2.0 * is_same_instant

    candidates = _nearest([places.get(one.digest, ()) for one in sent], len(stored))
    may_be_whole = is_whole and bool(sent) and not _is_later(sent[0], _newest(stored))
    found: Positions = [None] * len(sent)
    for old, new in best_chain(candidates, evidence, opened, MESSAGES, may_be_whole=may_be_whole):
        found[new] = old
    if None in found:
        # what was sent before is sent again, however unlikely it looks: it must never add a message
        found = latest_places(stored, sent) or found
    return [None] * len(sent) if is_new_turn(stored, sent, found) else found


def is_new_turn(stored: Sequence[Utterance], sent: Sequence[Utterance], found: Positions) -> bool:
    """Return True for old words said again: every message matches, and every one is later than the newest stored."""
    newest = _newest(stored)
    return newest is not None and None not in found and all(_is_later(each, newest) for each in sent)


def _newest(stored: Sequence[Utterance]) -> int | None:
    return max((each.instant for each in stored if each.instant is not None), default=None)


def _is_later(new: Utterance, newest: int | None) -> bool:
    return newest is not None and new.instant is not None and new.instant > newest


def latest_places(stored: Sequence[Utterance], sent: Sequence[Utterance]) -> Positions | None:
    """Return the latest positions that hold all sent messages in order, with any others between them."""
    places: Positions = []
    at = len(stored)
    for utterance in reversed(sent):
        at -= 1
        while at >= 0 and stored[at].digest != utterance.digest:
            at -= 1
        if at < 0:
            return None
        places.append(at)
    return places[::-1]


# -- turns


@dataclass(slots=True)
class Turn:
    """A question and the replies until the next one, as positions. The first turn has no question."""

    question: int | None
    key: bytes
    native_id: str | None = None
    replies: list[int] = field(default_factory=list)
    reply_digests: set[bytes] = field(default_factory=set)


Texts = Callable[[Sequence[int]], Mapping[int, str]]
"""Returns the texts of the messages at some positions: only few are needed."""


@dataclass(frozen=True)
class Transcript:
    """A conversation as one side has it, the registry or the sender: its messages in order, and their texts."""

    utterances: Sequence[Utterance]
    texts: Texts

    @cached_property
    def turns(self) -> list[Turn]:
        """Return the conversation cut at its questions; what comes before the first one is a turn without."""
        turns = [Turn(None, b"")]
        for at, utterance in enumerate(self.utterances):
            if utterance.role == Role.USER:
                turns.append(Turn(at, utterance.digest, utterance.native_id))
            else:
                turns[-1].replies.append(at)
                turns[-1].reply_digests.add(utterance.digest)
        return turns

    def answers(self, turn: Turn) -> list[int]:
        """Return the positions of the assistant's messages in a turn; tool output is no answer."""
        return [at for at in turn.replies if self.utterances[at].role == Role.ASSISTANT]

    def answer_texts(self, turns: Sequence[Turn]) -> list[list[str]]:
        """Return the assistant's texts of some turns, read at once."""
        answers = [self.answers(turn) for turn in turns]
        texts = self.texts(list(chain.from_iterable(answers)))
        return [[texts[at] for at in some] for some in answers]


def matching_turns(
    stored: Sequence[Turn], sent: Sequence[Turn], agreeing: Collection[tuple[int, int]] = ()
) -> list[tuple[int, int]]:
    """Return the turns that ask the same, as positions (stored, sent) in order.

    `agreeing`: pairs of turns that are known to share an answer in other words.
    """

    def evidence(i: int, j: int) -> float:
        if (i, j) in agreeing:
            return 1.25
        are_last = i == len(stored) - 1 and j == len(sent) - 1  # who sends only a part sends the end
        return _evidence_of(stored[i], sent[j]) + 0.28 * are_last + 0.01 * (i == j)

    return best_chain(possible_turns(stored, sent), evidence, [0] * (len(stored) + 1), TURNS)


def _evidence_of(old: Turn, new: Turn) -> float:
    if old.native_id and old.native_id == new.native_id:
        return 2.0
    if not (old.reply_digests and new.reply_digests):
        return 1.0  # one has no answer yet
    # without a shared answer it was shortened, or the same was asked another time
    return 1.25 if old.reply_digests & new.reply_digests else 0.4


def possible_turns(stored: Sequence[Turn], sent: Sequence[Turn]) -> Sequence[Sequence[int]]:
    """Return for each sent turn the stored ones that ask the same."""
    places: dict[bytes, list[int]] = defaultdict(list)
    for i, turn in enumerate(stored[1:], 1):
        places[turn.key].append(i)
    found: list[Sequence[int]] = [[i for i in places.get(turn.key, ()) if may_be(stored[i], turn)] for turn in sent]
    return _nearest([(), *found[1:]], len(stored))


def may_be(old: Turn, new: Turn) -> bool:
    """Return False if the questions have ids that differ."""
    return old.native_id is None or new.native_id is None or old.native_id == new.native_id
