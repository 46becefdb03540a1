"""Which of an extraction's messages fit. Pure.

Messages are taken best first into the budget, and shown in the order of the talk. Two things are always there: the turn
that answers best, and the channel's last turn. Who wants to go on gets the end first, and the relevant turns before it
in what room is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from orchestrator.answer.delivery import MessageDict, Weigh, shortened, tokens_in

TurnMessages = Sequence[MessageDict]
"""The messages of a turn, in order."""

LONG_TURN = 6
"""A longer turn is shown by its question, its hits and its last answer."""
FIRST_SHARE, SHARE = 0.45, 0.25
"""So much of the budget a message of the best turn may take, and one of another; of a longer one passages are shown."""
END_SHARE = 0.6
"""So much of the room the end of a conversation may take that somebody wants to go on with."""
LEAST_TOKENS = 60


@dataclass(frozen=True, slots=True)
class Budget:
    """How many messages, and how many tokens of text."""

    messages: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Selection:
    """The messages in the order of the talk; how many of the ranked turns the next page need not look at: of the one
    behind them something that was found may be left."""

    messages: list[MessageDict]
    taken: int


class _Room:
    """What is chosen so far, and how much room is left."""

    def __init__(self, budget: Budget, weigh: Weigh) -> None:
        self._weigh = weigh
        self._budget = budget
        self.chosen: dict[int, MessageDict] = {}
        self._tokens = 0

    @property
    def left(self) -> int:
        """Tokens."""
        return self._budget.tokens - self._tokens

    def has_left(self, share: float) -> bool:
        """Whether more than that share of the tokens and of the messages is left."""
        messages = self._budget.messages - len(self.chosen)
        return self.left > share * self._budget.tokens and messages > share * self._budget.messages

    def take(self, turn: Iterable[MessageDict], most: int) -> bool:
        """Put a turn in, each message within `most` tokens; False if there is no room for it, and none of it goes in.

        The first turn of all goes in whatever its size, as far as it fits.
        """
        wanted = [message for message in turn if message["number"] not in self.chosen]
        is_first = not self.chosen
        taken: dict[int, MessageDict] = {}
        left = self.left
        for place, message in enumerate(wanted):
            is_full = len(self.chosen) + len(taken) >= self._budget.messages
            room = min(most, left // (len(wanted) - place) if is_first else left)
            if is_full or (not is_first and room < min(LEAST_TOKENS, tokens_in(message["text"]))):
                if is_first:
                    break
                return False
            text, full_length = shortened(message["text"], max(room, 1), self._weigh)
            marked = {"full_length": full_length} if full_length else {}
            taken[message["number"]] = {**message, "text": text, **marked}
            left -= tokens_in(text)
        self.chosen |= taken
        self._tokens = self._budget.tokens - left
        return True


def select(
    ranked: Sequence[TurnMessages],
    end: Sequence[TurnMessages],
    hits: Mapping[int, int],
    budget: Budget,
    weigh: Weigh,
    *,
    goes_on: bool,
    is_first_page: bool = True,
) -> Selection:
    """`ranked`: turns best first; `end`: the channel's last turns, in order; `hits`: of the messages found their places
    in the ranking, by number."""
    room = _Room(budget, weigh)
    first, most = int(FIRST_SHARE * budget.tokens), int(SHARE * budget.tokens)
    tail = [_essence(turn, hits) for turn in (end if goes_on else end[-1:])]
    if goes_on:
        _take_end(room, tail, first, leaving=1 - END_SHARE)
    else:
        if ranked:
            room.take(_found_first(_essence(ranked[0], hits), hits, budget), first)
        if tail and not room.take(tail[-1], most):
            room.take(tail[-1][-1:], most)
    taken = 0
    for one in ranked:
        is_whole = room.take(_found_first(_essence(one, hits), hits, budget), most)
        if not is_whole and is_first_page:  # it is remembered what that held, and not what later ones did
            _take_hits(room, one, hits, most)
        is_told = all(message["number"] in room.chosen for message in one if message["number"] in hits)
        if not (is_told and (is_whole or not taken)):
            break
        taken += 1
        if not is_whole:
            break
    if goes_on and taken == len(ranked):
        _take_end(room, tail, most)
    return Selection(sorted(room.chosen.values(), key=place_in_time), taken)


def _take_hits(room: _Room, turn: TurnMessages, hits: Mapping[int, int], most: int) -> None:
    """Of a turn for which there is no room, what was found in it, the best first, as far as it fits; the next page has
    the rest."""
    found = [message for message in turn if message["number"] in hits]
    for message in sorted(found, key=lambda one: hits[one["number"]]):
        if not room.take([message], most):
            return


def _take_end(room: _Room, end: Sequence[TurnMessages], most: int, leaving: float = 0.0) -> None:
    """The last turns, from the last one back, as long as more than that share of the room is left.

    Turns that run into each other are cut between any two of their messages: the next page goes on before the first
    message shown, and would miss an answer that was given behind it to an earlier question.
    """
    for turns in reversed(_overlapping(end)):
        parts = turns if len(turns) == 1 else [[message] for message in sorted(chain(*turns), key=place_in_time)]
        for part in reversed(parts):
            if not room.has_left(leaving) or not room.take(part, most):
                return


def _overlapping(turns: Iterable[TurnMessages]) -> list[list[TurnMessages]]:
    """The turns in order; those that were not over when the next one began together."""
    groups: list[list[TurnMessages]] = []
    over: tuple[str, int] = ("", 0)
    for turn in sorted(turns, key=lambda one: place_in_time(one[0])):
        if groups and place_in_time(turn[0]) < over:
            groups[-1].append(turn)
        else:
            groups.append([turn])
        over = max(over, place_in_time(turn[-1]))
    return groups


def whole(turns: Sequence[TurnMessages], budget: Budget) -> list[MessageDict] | None:
    """Everything, if it fits."""
    messages = [message for turn in turns for message in turn]
    fits = len(messages) <= budget.messages and sum(tokens_in(one["text"]) for one in messages) <= budget.tokens
    return sorted(messages, key=place_in_time) if fits else None


def _essence(turn: TurnMessages, hits: Mapping[int, int]) -> list[MessageDict]:
    """A turn; a long one (an agent's many steps) without what is neither question, hit, last answer nor end: what is
    left out stands between two that are shown, and is counted there."""
    if len(turn) <= LONG_TURN:
        return list(turn)
    answers = [message["number"] for message in turn if message["role"] == "assistant"]
    ends = {turn[0]["number"], *answers[-1:], turn[-1]["number"]}
    return [message for message in turn if message["number"] in hits or message["number"] in ends]


def _found_first(turn: TurnMessages, hits: Mapping[int, int], budget: Budget) -> TurnMessages:
    """Of a turn of more messages than the answer may have, whose end is cut, what was found before the rest."""
    if len(turn) <= budget.messages:
        return turn
    return sorted(turn, key=lambda message: hits.get(message["number"], len(hits)))


def place_in_time(message: Mapping[str, Any]) -> tuple[str, int]:
    """Where a message stands in its conversation: its time, and of the same time its number."""
    return message["timestamp"], message["number"]


def with_gaps(messages: Sequence[MessageDict], place: Callable[[int], int | None]) -> list[MessageDict]:
    """The messages, each told how many of the channel's stand unshown before it; `place`: of each of those, by seq."""
    told: list[MessageDict] = []
    before = -1
    for message in messages:
        found = place(message["seq"])
        at = before + 1 if found is None else found
        gap = at - before - 1
        told.append({**message, "gap_before": gap} if gap > 0 else message)
        before = max(at, before)
    return told
