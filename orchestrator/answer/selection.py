"""Select an extraction's messages by tokens. Pure.

Turns are taken best first into the budget, and shown in the order of the talk. Who goes on with a conversation gets its
end first, and the relevant turns before it in the room that is left.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from orchestrator.answer.delivery import MessageDict, Weigh, shortened, tokens_in

TurnMessages = Sequence[MessageDict]
"""The messages of a turn, in order."""


class Budget(NamedTuple):
    """Limits of an answer: messages, and tokens of text."""

    messages: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Selection:
    """The messages in the order of the talk; how many of the ranked turns the next page need not look at: of the one
    behind them something that was found may be left."""

    messages: list[MessageDict]
    taken: int


class _Chosen:
    """The messages chosen so far, within the budget."""

    def __init__(self, budget: Budget, weigh: Weigh) -> None:
        self._weigh = weigh
        self._budget = budget
        self.messages: dict[int, MessageDict] = {}
        self.tokens = 0

    def leaves(self, share: float) -> bool:
        """Return True if more than that share of the tokens and of the messages is left."""
        messages = self._budget.messages - len(self.messages)
        tokens = self._budget.tokens - self.tokens
        return tokens > share * self._budget.tokens and messages > share * self._budget.messages

    def take(self, turn: Iterable[MessageDict], most: int) -> bool:
        """Add a turn, each message within `most` tokens; return False, and add nothing, if there is no room for it.

        The first turn of all goes in whatever its size, as far as it fits.
        """
        wanted = [message for message in turn if message["number"] not in self.messages]
        is_first = not self.messages
        taken: dict[int, MessageDict] = {}
        left = self._budget.tokens - self.tokens
        for place, message in enumerate(wanted):
            is_full = len(self.messages) + len(taken) >= self._budget.messages
            room = min(most, left // (len(wanted) - place) if is_first else left)
            if is_full or (not is_first and room < min(45, tokens_in(message["text"]))):
                if is_first:
                    break
                return False
            text, full_length = shortened(message["text"], max(room, 1), self._weigh)
            taken[message["number"]] = {
                **message,
                "text": text,
                **({"full_length": full_length} if full_length else {}),
            }
            left -= tokens_in(text)
        self.messages |= taken
        self.tokens = self._budget.tokens - left
        return True


def select(
    ranked: Sequence[TurnMessages],
    end: Sequence[TurnMessages],
    hits: Mapping[int, int],
    budget: Budget,
    weigh: Weigh,
    *,
    is_continuation: bool,
    until: Sequence[float],
    is_first_page: bool = True,
) -> Selection:
    """Select from `ranked` (turns best first) and, for who goes on, from `end` (the channel's last turns, in order).

    `hits` are the places in the ranking of the messages found, by number. `until`: for each turn of `ranked` the tokens
    of the answer below which it is taken.
    """
    chosen = _Chosen(budget, weigh)
    most = int(0.45 * budget.tokens)  # for one message
    tail = [_essence(turn, hits) for turn in end]
    if is_continuation:
        _take_end(chosen, tail, most, leaving=0.4 if ranked else 0.0)
    taken = 0
    for one, limit in zip(ranked, until, strict=True):
        if chosen.tokens >= limit:
            break
        is_whole = chosen.take(_found_first(_essence(one, hits), hits, budget), most)
        found = [message for message in one if message["number"] in hits and message["turn"] == one[0]["turn"]]
        if not is_whole and is_first_page:  # the next page leaves out what this one held, whatever of the turn it was
            for message in sorted(found, key=lambda message: hits[message["number"]]):
                if not chosen.take([message], most):
                    break
        is_shown = all(message["number"] in chosen.messages for message in found)
        if not (is_shown and (is_whole or not taken)):
            break
        taken += 1
        if not is_whole:
            break
    if is_continuation and taken == len(ranked):
        _take_end(chosen, tail, most)
    return Selection(sorted(chosen.messages.values(), key=place_in_time), taken)


def _take_end(chosen: _Chosen, end: Sequence[TurnMessages], most: int, leaving: float = 0.0) -> None:
    """Take the last turns, from the last one back, as long as more than that share of the room is left.

    Turns that run into each other are cut between any two of their messages: the next page goes on before the first
    message shown, and would miss an answer that was given behind it to an earlier question.
    """
    for turns in reversed(_overlapping(end)):
        parts = turns if len(turns) == 1 else [[message] for message in sorted(chain(*turns), key=place_in_time)]
        for part in reversed(parts):
            if not chosen.leaves(leaving) or not chosen.take(part, most):
                return


def _overlapping(turns: Iterable[TurnMessages]) -> list[list[TurnMessages]]:
    """Return the turns in order; those that were not over when the next one began stand together."""
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
    """Return everything, if it fits."""
    messages = [message for turn in turns for message in turn]
    fits = len(messages) <= budget.messages and sum(tokens_in(one["text"]) for one in messages) <= budget.tokens
    return sorted(messages, key=place_in_time) if fits else None


def _essence(turn: TurnMessages, hits: Mapping[int, int]) -> list[MessageDict]:
    """Return a turn; of a long one (an agent's many steps) its question, its hits, its last answer and its end."""
    if len(turn) <= 6:
        return list(turn)
    answers = [message["number"] for message in turn if message["role"] == "assistant"]
    ends = {turn[0]["number"], *answers[-1:], turn[-1]["number"]}
    return [message for message in turn if message["number"] in hits or message["number"] in ends]


def _found_first(turn: TurnMessages, hits: Mapping[int, int], budget: Budget) -> TurnMessages:
    """Put the hits first in a turn of more messages than the answer may have, whose end is cut."""
    if len(turn) <= budget.messages:
        return turn
    of_turn = turn[0]["turn"]
    return sorted(turn, key=lambda message: (message["turn"] != of_turn, hits.get(message["number"], len(hits))))


def place_in_time(message: Mapping[str, Any]) -> tuple[str, int]:
    """Return the sort key of a message in its conversation: its time, and of the same time its number."""
    return message["timestamp"], message["number"]


def with_gaps(messages: Sequence[MessageDict], places: Mapping[int, int]) -> list[MessageDict]:
    """Mark each message with how many of the channel's are left out before it; `places`: of messages, by their seq."""
    marked: list[MessageDict] = []
    before = -1
    for message in messages:
        at = places.get(message["seq"], before + 1)
        gap = at - before - 1
        marked.append({**message, "gap_before": gap} if gap > 0 else message)
        before = max(at, before)
    return marked
