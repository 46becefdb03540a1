"""Select an extraction's messages within a budget. Pure.

Turns are taken best first and shown in chronological order. To continue a conversation, its end is taken first, then
relevant earlier turns in the tokens that are left.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from orchestrator.answer.delivery import MessageDict, TextWeight, shorten, tokens_in

MAX_OUTCOME_TOKENS = 60  # for each message of a conversation's outcome

TurnMessages = Sequence[MessageDict]  # the messages of a turn, in order


class Budget(NamedTuple):
    """Limits of an answer: messages, and tokens of text."""

    messages: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Selection:
    """The messages in chronological order, and the number of ranked turns (`taken`) that the next page may skip; the
    turn after these may be partly shown."""

    messages: list[MessageDict]
    taken: int


class _Chosen:
    """Collects messages within the budget."""

    def __init__(self, budget: Budget, weigh: TextWeight) -> None:
        self._weigh = weigh
        self._budget = budget
        self.messages: dict[int, MessageDict] = {}
        self.tokens = 0

    def leaves(self, share: float) -> bool:
        """Return True if more than this share of the tokens and of the messages is left."""
        messages = self._budget.messages - len(self.messages)
        tokens = self._budget.tokens - self.tokens
        return tokens > share * self._budget.tokens and messages > share * self._budget.messages

    def take(self, turn: Iterable[MessageDict], most: int) -> bool:
        """Add a turn, each message cut to `most` tokens; add nothing and return False if it does not fit.

        The first turn is always added, as far as it fits.
        """
        wanted = [message for message in turn if message["number"] not in self.messages]
        is_first = not self.messages
        taken: dict[int, MessageDict] = {}
        left = self._budget.tokens - self.tokens
        for at, message in enumerate(wanted):
            is_full = len(self.messages) + len(taken) >= self._budget.messages
            room = min(most, left // (len(wanted) - at) if is_first else left)
            if is_full or (not is_first and room < min(45, tokens_in(message["text"]))):
                if is_first:
                    break
                return False
            text, full_length = shorten(message["text"], max(room, 1), self._weigh)
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
    weigh: TextWeight,
    *,
    until: Sequence[float],
    outcome: TurnMessages = (),
    is_first_page: bool = True,
) -> Selection:
    """Take the last turns, then the best turns until one does not fit whole, then more of the last turns.

    `ranked`: turns, best first. `end`: the last turns in order, if the request is to continue. `hits`: rank of each
    message found, by number. `until`: for each turn of `ranked`, the tokens of the answer up to which it is added.
    `outcome`: messages to add after the best turn.
    """
    chosen = _Chosen(budget, weigh)
    most = int(0.45 * budget.tokens)  # for one message
    tail = [_essential_messages(turn, hits) for turn in end]
    _take_end(chosen, tail, most, leaving=0.4 if ranked else 0.0)
    taken = 0
    for turn, limit in zip(ranked, until, strict=True):
        if chosen.tokens >= limit:
            break
        is_whole = chosen.take(_hits_first(_essential_messages(turn, hits), hits, budget), most)
        found = [message for message in turn if message["number"] in hits and message["turn"] == turn[0]["turn"]]
        if not is_whole and is_first_page:  # the next page omits the messages of this one
            for message in sorted(found, key=lambda message: hits[message["number"]]):
                if not chosen.take([message], most):
                    break
        is_shown = all(message["number"] in chosen.messages for message in found)
        if is_shown and (is_whole or not taken):
            taken += 1
        if turn is ranked[0]:
            chosen.take(outcome, MAX_OUTCOME_TOKENS)
        if not (is_shown and is_whole):
            break
    if taken == len(ranked):
        _take_end(chosen, tail, most)
    return Selection(sorted(chosen.messages.values(), key=time_key), taken)


def _take_end(chosen: _Chosen, end: Sequence[TurnMessages], most: int, leaving: float = 0.0) -> None:
    """Take the last turns, going backwards, while more than the share `leaving` of the budget is left.

    Interleaved turns are taken message by message: the next page continues before the first message shown, and would
    miss a later answer to an earlier question.
    """
    for turns in reversed(_overlapping(end)):
        parts = turns if len(turns) == 1 else [[message] for message in sorted(chain(*turns), key=time_key)]
        for part in reversed(parts):
            if not chosen.leaves(leaving) or not chosen.take(part, most):
                return


def _overlapping(turns: Iterable[TurnMessages]) -> list[list[TurnMessages]]:
    """Return the turns in order; group those that overlap in time."""
    groups: list[list[TurnMessages]] = []
    over: tuple[str, int] = ("", 0)
    for turn in sorted(turns, key=lambda one: time_key(one[0])):
        if groups and time_key(turn[0]) < over:
            groups[-1].append(turn)
        else:
            groups.append([turn])
        over = max(over, time_key(turn[-1]))
    return groups


def select_all(turns: Sequence[TurnMessages], budget: Budget) -> list[MessageDict] | None:
    """Return everything, if it fits."""
    messages = [message for turn in turns for message in turn]
    fits = len(messages) <= budget.messages and sum(tokens_in(one["text"]) for one in messages) <= budget.tokens
    return sorted(messages, key=time_key) if fits else None


def _essential_messages(turn: TurnMessages, hits: Mapping[int, int]) -> list[MessageDict]:
    """Return a turn, or of a long one (an agent's many steps) its question, hits, last answer and last message."""
    if len(turn) <= 6:
        return list(turn)
    answers = [message["number"] for message in turn if message["role"] == "assistant"]
    ends = {turn[0]["number"], *answers[-1:], turn[-1]["number"]}
    return [message for message in turn if message["number"] in hits or message["number"] in ends]


def _hits_first(turn: TurnMessages, hits: Mapping[int, int], budget: Budget) -> TurnMessages:
    """Put the hits first in a turn with more messages than the budget, because its end is cut."""
    if len(turn) <= budget.messages:
        return turn
    of_turn = turn[0]["turn"]
    return sorted(turn, key=lambda message: (message["turn"] != of_turn, hits.get(message["number"], len(hits))))


def time_key(message: Mapping[str, Any]) -> tuple[str, int]:
    """Return the sort key of a message in its conversation: time, then number."""
    return message["timestamp"], message["number"]


def with_gaps(messages: Sequence[MessageDict], seqs: Sequence[int]) -> list[MessageDict]:
    """Mark each message with the number of messages left out before it; `seqs`: of all messages, in order."""
    indexes = {seq: index for index, seq in enumerate(seqs)}
    marked: list[MessageDict] = []
    before = -1
    for message in messages:
        at = indexes.get(message["seq"], before + 1)
        gap = at - before - 1
        marked.append({**message, "gap_before": gap} if gap > 0 else message)
        before = max(at, before)
    return marked
