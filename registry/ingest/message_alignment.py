"""Recognising a conversation that is sent again (contract 2.1). Pure: sequences in, positions out.

Clients send the whole conversation every turn, or its last turns, with white space and timestamps changed
on the way. What came is therefore laid beside what is stored, as two sequences: it is a window of the
same conversation, and what is new stands at its end. A hash alone would lose the third "continue".
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import NamedTuple

SAME_WORDS = 1.0
"""Evidence of one message found again."""
TELLING_WORDS = 1.0
"""More evidence: there are enough words to be more than chance."""
SAME_INSTANT = 2.0
"""More evidence: it also carries the stored timestamp."""
NEW_BEFORE_OLD = 1.5
"""Doubt: a run of new messages stands before an old one, although new words come last."""
SKIPPED_TURN = 1.5
"""Doubt: stored turns are passed over."""
REWRITTEN_TURNS = 0.5
"""Less doubt: the first message sent is the first one stored, so it is the whole conversation with an end rewritten."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """What recognition looks at: `digest` of role and words, `instant` (ms) if known, user messages open a turn."""

    digest: bytes
    instant: int | None = None
    opens_turn: bool = False
    is_telling: bool = False


Positions = list[int | None]
"""For each message sent: the position of the stored message it repeats, or None for a new one."""


def overlap(stored: Sequence[bytes], sent: Sequence[bytes]) -> int:
    """How many of the first messages sent are, one by one, the last ones stored; the longest such run."""
    for length in range(min(len(stored), len(sent)), 0, -1):
        if sent[length - 1] == stored[-1] and list(sent[:length]) == list(stored[-length:]):
            return length
    return 0


def recognise(stored: Sequence[Utterance], sent: Sequence[Utterance]) -> Positions:
    """Which of the sent messages are stored already. `stored` is in conversation order."""
    found = _align(stored, sent)
    if None in found:
        # What was sent before is sent again, however unlikely it looks: it must never add a message.
        found = _within(stored, sent) or found
    return [None] * len(sent) if is_new_turn(stored, sent, found) else found


def _within(stored: Sequence[Utterance], sent: Sequence[Utterance]) -> Positions | None:
    """Where all that was sent stands in what is stored, in that order, as late as can be; None if it does not."""
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


def is_new_turn(stored: Sequence[Utterance], sent: Sequence[Utterance], found: Positions) -> bool:
    """Old words said again: every message matches, and every one is later than the newest stored (contract 2.1)."""
    newest = max((u.instant for u in stored if u.instant is not None), default=None)
    return newest is not None and None not in found and all(u.instant is not None and u.instant > newest for u in sent)


class _Chain(NamedTuple):
    """An alignment that ends by taking `sent` for `stored`; `before` is the rest of it.

    Chains compare by evidence first, then by the later place: a window is most often the end.
    """

    score: float
    stored: int
    sent: int
    before: _Chain | None
    is_whole: bool

    @property
    def rank(self) -> tuple[float, int]:
        """What chains are compared by."""
        return self[:2]


MOST_PAIRS = 20_000
"""So many possible matches are weighed against each other; where words repeat more, the nearest is taken."""


def _align(stored: Sequence[Utterance], sent: Sequence[Utterance]) -> Positions:
    """The best chain of matches, by the evidence above; none at all if there is more doubt than evidence."""
    places: dict[bytes, list[int]] = defaultdict(list)
    for index, utterance in enumerate(stored):
        places[utterance.digest].append(index)
    if sum(len(places.get(utterance.digest, ())) for utterance in sent) > MOST_PAIRS:
        same = _common_beginning(stored, sent)
        rest = _nearest(stored[same:], sent[same:])
        return [*range(same), *(None if place is None else place + same for place in rest)]
    newest = max((u.instant for u in stored if u.instant is not None), default=None)
    openers = list(accumulate((u.opens_turn for u in stored), initial=0))  # turns opened before each position
    chains = _Chains(openers)
    best: _Chain | None = None
    for index, utterance in enumerate(sent):
        row = []
        for place in places.get(utterance.digest, ()):
            evidence = _evidence(stored[place], utterance)
            before = chains.before(index, place)
            start = -NEW_BEFORE_OLD if index else 0.0
            if before is None or before[0] < start:
                is_whole = index == 0 == place and not _is_later(utterance, newest)
                row.append(_Chain(start + evidence, place, index, None, is_whole))
            else:
                score, chain = before
                row.append(_Chain(score + evidence, place, index, chain, chain.is_whole))
        chains.add(index, row)
        for ending in row:
            chain = ending
            if index < len(sent) - 1 and openers[-1] > openers[chain.stored + 1]:
                doubt = REWRITTEN_TURNS if chain.is_whole else SKIPPED_TURN
                chain = chain._replace(score=chain.score - doubt)
            if best is None or chain.rank > best.rank:
                best = chain
    return _positions(best if best and best.score > 0 else None, len(sent))


def _common_beginning(stored: Sequence[Utterance], sent: Sequence[Utterance]) -> int:
    pairs = zip(stored, sent, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0].digest == pair[1].digest, pairs))


def _nearest(stored: Sequence[Utterance], sent: Sequence[Utterance]) -> Positions:
    """From the end on, each sent message with the nearest stored one of the same words before the last match."""
    places: dict[bytes, list[int]] = defaultdict(list)
    for index, utterance in enumerate(stored):
        places[utterance.digest].append(index)
    found: Positions = []
    end = len(stored)
    for utterance in reversed(sent):
        candidates = places.get(utterance.digest, [])
        place = bisect_left(candidates, end) - 1
        end = candidates[place] if place >= 0 else end
        found.append(end if place >= 0 else None)
    return found[::-1]


def _evidence(old: Utterance, new: Utterance) -> float:
    is_same_instant = old.instant is not None and old.instant == new.instant
    return SAME_WORDS + TELLING_WORDS * new.is_telling + SAME_INSTANT * is_same_instant


def _is_later(new: Utterance, newest: int | None) -> bool:
    return newest is not None and new.instant is not None and new.instant > newest


def _positions(chain: _Chain | None, length: int) -> Positions:
    found: Positions = [None] * length
    while chain:
        found[chain.sent] = chain.stored
        chain = chain.before
    return found


class _Chains:
    """The chains so far, asked for the best one that a match may continue.

    Of each kind (ending at the message just before, or earlier) the best overall and the best inside the
    same stored turn are looked up, so that 10 000 messages against 10 000 stay far from 10^8 steps.
    """

    def __init__(self, openers: Sequence[int]) -> None:
        self._openers = openers
        self._row = -1
        self._last = _Ends(openers)
        self._earlier = _Ends(openers)

    def add(self, row: int, chains: Sequence[_Chain]) -> None:
        """Take in the chains that end at one sent message; rows come in order."""
        for chain in self._last.chains:
            self._earlier.add(chain)
        self._row, self._last = row, _Ends(self._openers)
        for chain in chains:
            self._last.add(chain)

    def before(self, index: int, place: int) -> tuple[float, _Chain] | None:
        """The best chain, with its score after doubts, that ends before this sent index and stored place."""
        options = []
        for ends, doubt in ((self._last, 0.0), (self._earlier, NEW_BEFORE_OLD)):
            for chain, skipped in ends.best_before(place):
                options.append((chain.score - doubt - SKIPPED_TURN * skipped, chain.stored, chain))
        if not options:
            return None
        score, _, chain = max(options, key=lambda option: option[:2])
        return score, chain


class _Ends:
    """Chains by the stored position where they end."""

    def __init__(self, openers: Sequence[int]) -> None:
        self._openers = openers
        self.chains: list[_Chain] = []
        self._all = _Best(len(openers))
        self._of_turn: dict[int, _Best] = {}

    def add(self, chain: _Chain) -> None:
        self.chains.append(chain)
        turn = self._openers[chain.stored + 1]
        self._all.add(chain)
        self._of_turn.setdefault(turn, _Best(len(self._openers))).add(chain)

    def best_before(self, place: int) -> list[tuple[_Chain, bool]]:
        """The best chain that ends before `place`, and the best of the same stored turn; with: is a turn skipped?"""
        turn = self._openers[place]
        in_turn = self._of_turn[turn].before(place) if turn in self._of_turn else None
        anywhere = self._all.before(place)
        options = [(in_turn, False)] if in_turn else []
        if anywhere:
            options.append((anywhere, turn > self._openers[anywhere.stored + 1]))
        return options


class _Best:
    """The best chain before any position: a Fenwick tree of maxima."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._tree: dict[int, _Chain] = {}

    def add(self, chain: _Chain) -> None:
        node = chain.stored + 1
        while node <= self._size:
            held = self._tree.get(node)
            if held is None or chain.rank > held.rank:
                self._tree[node] = chain
            node += node & -node

    def before(self, place: int) -> _Chain | None:
        best: _Chain | None = None
        node = place
        while node > 0:
            held = self._tree.get(node)
            if held is not None and (best is None or held.rank > best.rank):
                best = held
            node -= node & -node
        return best
