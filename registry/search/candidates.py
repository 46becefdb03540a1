"""Choose candidates: the messages, and channel titles, in scope that hold most of the query's terms."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import Any

from sqlalchemy import ColumnElement, exists, or_, select

from registry.domain import Role
from registry.search.scope import (
    Scope,
    channel_conditions,
    channels_in,
    is_of_channels,
    message_conditions,
    messages_in_scope,
    time_conditions,
)
from registry.storage.conditions import given, given_conditions, is_in, is_one_of
from registry.storage.database import ReadTransaction
from registry.storage.index.message_index import COLUMNS, Groups, MessageIndex, channel_token, index_of, source_token
from registry.storage.tables import channel, conversation
from registry.text.ranking.scores import Candidate
from registry.text.ranking.term_weights import Term, best_first, sum_weights

CANDIDATES = 1000  # messages with the largest weights that are ranked
CANDIDATES_IN_CHANNEL = 2000
_FEW_CHANNELS = 20  # channels among all candidates, below which these are likely to hide the others

WEIGHT_UNIT = 1_000_000  # weights are summed as integers, so that both databases get the same sums

_CHANNELS_AS_TOKENS = 64  # a filter that leaves so many channels at most is put into the index look-up
_FEW_MESSAGES, _FEW_OF_A_TIME = 30_000, 5_000  # a filter that leaves so many messages at most is read before it

Conditions = Sequence[ColumnElement[bool]]


@dataclass(frozen=True, slots=True)
class Place:
    """A scope as the index understands it, for one search.

    An entry in scope carries a token of each of `groups` and none of `without`, and its message meets `conditions`.
    `allowed`: the messages that meet them, where they are few.
    """

    tx: ReadTransaction
    index: MessageIndex
    scope: Scope
    groups: Groups
    without: Sequence[str]
    conditions: Conditions
    allowed: AbstractSet[int] | None

    def holding(self, tokens: Sequence[str], among: Sequence[str]) -> dict[str, Collection[int]]:
        """Return, by token, the messages in scope that hold it and, if given, one of `among`."""
        groups = [*self.groups, among] if among else self.groups
        found = self.index.holders_of_each(self.tx, tokens, groups, self.without) if tokens else {}
        return {
            token: numbers if self.allowed is None else self.allowed & set(numbers) for token, numbers in found.items()
        }

    def read(self, numbers: Sequence[int]) -> dict[int, Sequence[Any]]:
        """Return the rows of those of these messages that are in scope."""
        return {row[0]: row for row in self.index.messages(self.tx, numbers, self.conditions)}

    def outside(self, channels: Collection[int]) -> Place:
        """Return the same place without some channels."""
        without = [*self.without, *map(channel_token, sorted(channels))]
        return replace(self, without=without)


def place_of(tx: ReadTransaction, scope: Scope) -> Place:
    """Translate a scope for the index."""
    groups, without, conditions = _narrowed(tx, scope)
    return Place(tx, index_of(tx), scope, groups, without, conditions, _few_messages(tx, scope) if conditions else None)


def find_candidates(place: Place, terms: Sequence[Term], budget: int) -> list[Candidate]:
    """Return the messages with the largest weights; if a few channels hold them all, also those of the others.

    `budget`: postings that are read of the rarer terms; commoner ones are looked up in messages with one of these.
    """
    if place.scope.channel_number is not None:
        return _best_candidates(place, terms, len(terms), CANDIDATES_IN_CHANNEL)
    rare = max(sum(so_far <= budget for so_far in accumulate(term.frequency for term in terms)), 1)
    found = _best_candidates(place, terms, rare, CANDIDATES)
    channels = {candidate.channel_id for candidate in found}
    is_crowded = len(found) >= CANDIDATES and len(channels) < _FEW_CHANNELS
    return [*found, *_best_candidates(place.outside(channels), terms, rare, CANDIDATES)] if is_crowded else found


def find_titles(place: Place, terms: Sequence[Term]) -> dict[int, int]:
    """Return the terms (bits, as `Candidate.held`) that the title of each channel in scope holds, by channel number.

    Nothing where only messages are asked for: of one role, without some words. The title of a channel in which every
    question only asks for another conversation does not count.
    """
    scope = place.scope
    is_of_one_side = scope.roles and not {Role.USER, Role.ASSISTANT}.issubset(scope.roles)
    if is_of_one_side or scope.without:
        return {}
    holding = place.index.titles_holding(place.tx, [term.token for term in terms])
    found: dict[int, int] = {}
    for bit, term in enumerate(terms):
        for number in holding.get(term.token, ()):
            found[-number] = found.get(-number, 0) | 1 << bit
    if scope.channel_number is not None:
        found = {number: held for number, held in found.items() if number == scope.channel_number}
    if not found:
        return {}
    conditions = [*channel_conditions(scope), *given_conditions((is_in, channel.c.source, scope.sources or None))]
    query = _TITLED.where(*conditions) if conditions else _TITLED
    inside = place.tx.execute(query, given(found)).scalars()
    return {number: found[number] for number in inside}


def _asked(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return the condition that a channel holds such a question."""
    return exists().where(
        conversation.c.channel_number == channel.c.number, conversation.c.role == Role.USER, *conditions
    )


_TITLED = select(channel.c.number).where(
    is_one_of(channel.c.number), channel.c.deleted.is_(False), or_(_asked(conversation.c.length > 0), ~_asked())
)


def candidate_of(row: Sequence[Any]) -> Candidate:
    """Return the candidate of a row of `MessageIndex.messages`, without terms."""
    number, channel_number, seq, role, length, turn = row
    return Candidate(number, channel_number, seq, role, length, 0.0, turn)


def _best_candidates(place: Place, terms: Sequence[Term], rare: int, most: int) -> list[Candidate]:
    """Return the messages in scope with the largest sums of term weights, of equal ones the newest."""
    tokens = [term.token for term in terms]
    held = place.holding(tokens[:rare], ()) | place.holding(tokens[rare:], tokens[:rare])
    sums = sum_weights(
        [(token, round(term.weight * WEIGHT_UNIT)) for token, term in zip(tokens, terms, strict=True)], held
    )
    ordered = best_first(sums, len(terms))
    mask = (1 << len(terms)) - 1
    found: list[Candidate] = []
    portion = most
    while len(found) < most and (numbers := list(islice(ordered, portion))):
        rows = place.read(numbers)
        for number, channel_number, seq, role, length, turn in filter(None, map(rows.get, numbers)):
            total = sums[number]
            weight = (total >> len(terms)) / WEIGHT_UNIT
            found.append(Candidate(number, channel_number, seq, role, length, weight, turn, total & mask))
        portion *= 4  # conditions on the message itself may leave few of the best ones
    return found[:most]


# -- messages that hold no word themselves


def messages_said(tx: ReadTransaction, scope: Scope) -> list[Candidate]:
    """Return the newest 500 searchable messages in a scope that is bound in time."""
    conditions = messages_in_scope(scope)
    query = select(*COLUMNS).where(*conditions).order_by(conversation.c.number.desc()).limit(500)
    return [candidate_of(row) for row in tx.execute(query)]


def channel_sizes(tx: ReadTransaction, numbers: Collection[int]) -> dict[int, tuple[int, int]]:
    """Return the number of messages and of tokens of some channels."""
    rows = tx.execute(_SIZES, given(numbers)) if numbers else ()
    return {number: (messages, tokens) for number, messages, tokens in rows}


_SIZES = select(channel.c.number, channel.c.message_count, channel.c.token_count).where(is_one_of(channel.c.number))


# -- scopes


def _narrowed(tx: ReadTransaction, scope: Scope) -> tuple[Groups, Sequence[str], Conditions]:
    """Return a scope as conditions on tokens (groups, without), and those that the messages themselves must meet."""
    groups: list[Sequence[str]] = []
    without = [*scope.without, *map(channel_token, scope.exclude_numbers)]
    if scope.channel_number is not None:
        groups.append([channel_token(scope.channel_number)])
    if scope.sources:
        groups.append([source_token(source) for source in scope.sources])
    conditions = message_conditions(scope)
    if not channel_conditions(scope):
        return groups, without, conditions
    chosen = channels_in(scope)
    numbers = tx.execute(chosen.limit(_CHANNELS_AS_TOKENS + 1)).scalars().all()
    if len(numbers) <= _CHANNELS_AS_TOKENS:
        groups.append([channel_token(number) for number in numbers] or ["zznone"])
    elif is_of_channels(scope):
        conditions.append(conversation.c.channel_number.in_(chosen))
    return groups, without, conditions


def _few_messages(tx: ReadTransaction, scope: Scope) -> set[int] | None:
    """Return the messages of the times and channels in scope, by the tables' own indexes; None if they are many."""
    conditions = time_conditions(scope)
    if is_of_channels(scope):
        conditions.append(conversation.c.channel_number.in_(channels_in(scope)))
    if not conditions:
        return None
    few = _FEW_MESSAGES if is_of_channels(scope) else _FEW_OF_A_TIME
    numbers = tx.execute(select(conversation.c.number).where(*conditions).limit(few + 1)).scalars().all()
    return set(numbers) if len(numbers) <= few else None
