"""Recognising a conversation that is sent again (docs/recognition.md). Pure: sequences in, positions out.

Clients send the whole conversation every turn, or its last turns, with white space and timestamps changed
on the way. What came is therefore laid beside what is stored, as two sequences: it is a window of the
same conversation, and what is new stands at its end. A hash alone would lose the third "continue".
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, takewhile

from registry.ingest.alignment import BestChains, Chain, Positions, Utterance

SAME_WORDS = 1.0
"""Evidence of one message found again."""
LONG_WORDS = 1.0
"""More evidence: there are enough words to be more than chance."""
SAME_INSTANT = 2.0
"""More evidence: it also carries the stored timestamp."""
NEW_BEFORE_OLD = 1.5
"""Doubt: a run of new messages stands before an old one, although new words come last."""
SKIPPED_TURN = 1.5
"""Doubt: stored turns are passed over."""
REWRITTEN_TURNS = 0.5
"""Less doubt: the first message sent is the first one stored, so it is the whole conversation with an end rewritten."""
MOST_PAIRS = 20_000
"""So many possible matches are weighed against each other; where words repeat more, the nearest is taken."""


def overlap(stored: Sequence[bytes], sent: Sequence[bytes]) -> int:
    """Return how many of the first messages sent are, one by one, the last ones stored; the longest such run."""
    for length in range(min(len(stored), len(sent)), 0, -1):
        if sent[length - 1] == stored[-1] and list(sent[:length]) == list(stored[-length:]):
            return length
    return 0


def recognise(stored: Sequence[Utterance], sent: Sequence[Utterance]) -> Positions:
    """Which of the sent messages are stored already. `stored` is in conversation order."""
    found = _best_chain(stored, sent)
    if None in found:
        # What was sent before is sent again, however unlikely it looks: it must never add a message.
        found = _within(stored, sent) or found
    return [None] * len(sent) if is_new_turn(stored, sent, found) else found


def is_new_turn(stored: Sequence[Utterance], sent: Sequence[Utterance], found: Positions) -> bool:
    """Old words said again: every message matches, and every one is later than the newest stored."""
    newest = _newest(stored)
    return newest is not None and None not in found and all(_is_later(each, newest) for each in sent)


def _within(stored: Sequence[Utterance], sent: Sequence[Utterance]) -> Positions | None:
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


def _best_chain(stored: Sequence[Utterance], sent: Sequence[Utterance]) -> Positions:
    """The best chain of matches, by the evidence above; none at all if there is more doubt than evidence."""
    places = _places(stored)
    if sum(len(places.get(utterance.digest, ())) for utterance in sent) > MOST_PAIRS:
        return _nearest_behind_the_beginning(stored, sent)
    chains = _Chains(stored, len(sent))
    for index, utterance in enumerate(sent):
        chains.extend(index, utterance, places.get(utterance.digest, ()))
    found: Positions = [None] * len(sent)
    if chains.best and chains.best.score > 0:
        for place, index in chains.best.pairs():
            found[index] = place
    return found


def _places(stored: Sequence[Utterance]) -> Mapping[bytes, Sequence[int]]:
    places: dict[bytes, list[int]] = defaultdict(list)
    for index, utterance in enumerate(stored):
        places[utterance.digest].append(index)
    return places


def _nearest_behind_the_beginning(stored: Sequence[Utterance], sent: Sequence[Utterance]) -> Positions:
    """The beginning that both share, one by one; of the rest each with the nearest."""
    pairs = zip(stored, sent, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0].digest == pair[1].digest, pairs))
    rest = _nearest(stored[same:], sent[same:])
    return [*range(same), *(None if place is None else place + same for place in rest)]


def _nearest(stored: Sequence[Utterance], sent: Sequence[Utterance]) -> Positions:
    """From the end on, each sent message with the nearest stored one of the same words before the last match."""
    places = _places(stored)
    found: Positions = []
    end = len(stored)
    for utterance in reversed(sent):
        candidates = places.get(utterance.digest, ())
        place = bisect_left(candidates, end) - 1
        end = candidates[place] if place >= 0 else end
        found.append(end if place >= 0 else None)
    return found[::-1]


def _evidence(old: Utterance, new: Utterance) -> float:
    is_same_instant = old.instant is not None and old.instant == new.instant
    return SAME_WORDS + LONG_WORDS * new.is_long + SAME_INSTANT * is_same_instant


def _newest(stored: Iterable[Utterance]) -> int | None:
    return max((each.instant for each in stored if each.instant is not None), default=None)


def _is_later(new: Utterance, newest: int | None) -> bool:
    return newest is not None and new.instant is not None and new.instant > newest


def _rank(chain: Chain) -> tuple[float, int]:
    """By evidence first, then by the later place: a window is most often the end."""
    return chain.score, chain.stored


class _Chains:
    """The chains so far, message by message, and the `best` of them with the doubts about where it ends.

    Of each kind (ending at the message just before, or earlier) the best overall and the best inside the
    same stored turn are looked up, so that 10 000 messages against 10 000 stay far from 10^8 steps.
    """

    def __init__(self, stored: Sequence[Utterance], sent_count: int) -> None:
        self.best: Chain | None = None
        self._stored = stored
        self._last_index = sent_count - 1
        self._newest = _newest(stored)
        # The turns opened before each position.
        self._openers = list(accumulate((each.opens_turn for each in stored), initial=0))
        self._last = _Ends(self._openers)
        self._earlier = _Ends(self._openers)

    def extend(self, index: int, utterance: Utterance, places: Sequence[int]) -> None:
        """Take in the next message sent, which may be the stored one at any of these places."""
        row = [self._chain(index, utterance, place) for place in places]
        for chain in self._last.chains:
            self._earlier.add(chain)
        self._last = _Ends(self._openers)
        for chain in row:
            self._last.add(chain)
        endings = (self._ending(index, chain) for chain in row)
        self.best = max(filter(None, (self.best, *endings)), key=_rank, default=None)

    def _chain(self, index: int, utterance: Utterance, place: int) -> Chain:
        """The best chain that ends with this match: one that goes on, or a new one."""
        evidence = _evidence(self._stored[place], utterance)
        before = self._before(place)
        start = -NEW_BEFORE_OLD if index else 0.0
        if before is not None and before[0] >= start:
            score, chain = before
            return Chain(score + evidence, place, index, chain, chain.is_whole)
        is_whole = index == 0 == place and not _is_later(utterance, self._newest)
        return Chain(start + evidence, place, index, None, is_whole)

    def _before(self, place: int) -> tuple[float, Chain] | None:
        """The best chain, with its score after doubts, that ends before this stored place."""
        options = [
            (chain.score - doubt - SKIPPED_TURN * is_skipping, chain)
            for ends, doubt in ((self._last, 0.0), (self._earlier, NEW_BEFORE_OLD))
            for chain, is_skipping in ends.best_before(place)
        ]
        return max(options, key=lambda option: (option[0], option[1].stored), default=None)

    def _ending(self, index: int, chain: Chain) -> Chain:
        if index == self._last_index or self._openers[-1] == self._openers[chain.stored + 1]:
            return chain
        return chain._replace(score=chain.score - (REWRITTEN_TURNS if chain.is_whole else SKIPPED_TURN))


class _Ends:
    """Chains by the stored position where they end."""

    def __init__(self, openers: Sequence[int]) -> None:
        self._openers = openers
        self.chains: list[Chain] = []
        self._all = self._none_yet()
        self._of_turn: dict[int, BestChains] = {}

    def _none_yet(self) -> BestChains:
        return BestChains(len(self._openers), _rank)

    def add(self, chain: Chain) -> None:
        self.chains.append(chain)
        self._all.add(chain)
        turn = self._openers[chain.stored + 1]
        if turn not in self._of_turn:
            self._of_turn[turn] = self._none_yet()
        self._of_turn[turn].add(chain)

    def best_before(self, place: int) -> list[tuple[Chain, bool]]:
        """The best chain that ends before `place`, and the best of the same stored turn; with: is a turn skipped?"""
        turn = self._openers[place]
        in_turn = self._of_turn[turn].before(place) if turn in self._of_turn else None
        anywhere = self._all.before(place)
        options = [(in_turn, False)] if in_turn else []
        if anywhere:
            options.append((anywhere, turn > self._openers[anywhere.stored + 1]))
        return options
