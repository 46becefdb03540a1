"""The choosing of candidates: the messages, and channel titles, in scope that hold most of what is looked for.

What ranking does not get to see cannot be found, and what it sees it must pay for: hence the numbers below.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice
from operator import eq
from typing import Any

from sqlalchemy import ColumnElement, func, select

from registry.search.scope import (
    Scope,
    channel_conditions,
    channels_in,
    is_of_channels,
    message_conditions,
    time_conditions,
)
from registry.storage.conditions import given_conditions
from registry.storage.database import ReadTransaction
from registry.storage.index_entries import channel_token, month_tokens, role_token, source_token
from registry.storage.message_index import Groups, MessageIndex
from registry.storage.tables import channel, conversation
from registry.text.ranking import Candidate, Title
from registry.text.term_weights import COMMON_TERMS, Term
from registry.text.top_k import sum_weights, top_k

CANDIDATES = 1000
CANDIDATES_IN_CHANNEL = 300
"""How many of the messages with the largest weights are taken into ranking."""

LOUD_CHANNELS = 20
"""Fewer channels than these among all that was found have hidden the others."""
LOOKS = 3
"""So many times more the others are asked for."""

WEIGHT_UNIT = 1_000_000
"""Weights are summed as whole numbers, so that both databases come to the very same sums."""

FEW_CHANNELS = 64
"""A filter that leaves no more channels than these is put into the look-up, so that it costs next to nothing."""
FEW_MESSAGES = 30_000
"""A filter that leaves no more messages than these is read before the look-up: its cost is theirs."""
FEW_OF_A_TIME = 5_000
"""The same for filters of time alone, which the tokens of months narrow as well."""
LONG_LIST = 5_000
"""A list of so many postings is not walked if sets of terms can be asked for instead (`text.top_k`)."""

Conditions = Sequence[ColumnElement[bool]]


def find_candidates(tx: ReadTransaction, index: MessageIndex, terms: Sequence[Term], scope: Scope) -> list[Candidate]:
    """The messages with the largest weights; where those of a few channels hide all others, these are asked for too."""
    found = _best_candidates(tx, index, terms, scope)
    latest = found
    for _ in range(LOOKS):
        channels = {candidate.channel_id for candidate in latest}
        if scope.channel_number is not None or len(latest) < CANDIDATES or len(channels) >= LOUD_CHANNELS:
            break
        scope = replace(scope, without=[*scope.without, *map(channel_token, sorted(channels))])
        latest = _best_candidates(tx, index, terms, scope)
        found = [*found, *latest]
    return found


def find_titles(tx: ReadTransaction, index: MessageIndex, terms: Sequence[Term], scope: Scope) -> dict[int, Title]:
    """What the title of each channel in scope holds of the terms, by channel number.

    A title is not asked what only a message can be: said by somebody, with a phrase, inside one channel.
    """
    if scope.channel_number is not None or scope.roles or scope.carrying or scope.without:
        return {}
    sums = sum_weights(_weights(terms), lambda token, _: index.titles_holding(tx, token), None)
    found = {-number: Title(*_weight_and_held(sums[number], len(terms))) for number in sums}
    conditions = [*channel_conditions(scope), *given_conditions((eq, channel.c.source, scope.source))]
    query = select(channel.c.number).where(channel.c.number.in_(found), channel.c.deleted.is_(False), *conditions)
    inside = tx.execute(query.where(channel.c.name != (scope.exclude_channel or ""))).scalars() if found else ()
    return {number: found[number] for number in inside}


def candidate_of(row: Sequence[Any], weight: float = 0.0, held: int = 0) -> Candidate:
    """The candidate of a row that `MessageIndex.messages` gave."""
    number, channel_number, seq, role, length, turn = row
    return Candidate(number, channel_number, seq, role, length, weight, turn, held)


def _best_candidates(tx: ReadTransaction, index: MessageIndex, terms: Sequence[Term], scope: Scope) -> list[Candidate]:
    """The messages in scope with the largest sums of term weights, these and the newest first."""
    groups, without, conditions = _narrowed(tx, index, scope)
    allowed = _few_messages(tx, scope) if conditions else None
    most = CANDIDATES if scope.channel_number is None else CANDIDATES_IN_CHANNEL

    def look_up(token: str, among: Sequence[str]) -> Collection[int]:
        found = index.holders(tx, [*groups, [token], *([among] if among else [])], without)
        return found if allowed is None else allowed.intersection(found)

    def newest(held: Sequence[str], absent: Sequence[str], limit: int) -> Collection[int]:
        return index.newest_holders(tx, [*groups, *([token] for token in held)], [*absent, *without], limit)

    is_wide = allowed is None and scope.channel_number is None
    common = min(sum(term.frequency > LONG_LIST for term in terms), COMMON_TERMS)
    # Conditions on the message itself may leave few of the best ones: then all are looked at.
    attempts = (4 * most, None) if conditions else (most,)
    found: list[Candidate] = []
    for stop_at in attempts:
        sums = sum_weights(_weights(terms), look_up, stop_at, common, newest if is_wide else None)
        found = _read(tx, index, sums, len(terms), conditions, most)
        if len(found) >= most or len(sums) < (stop_at or 0):
            break
    return found


def _read(
    tx: ReadTransaction, index: MessageIndex, sums: dict[int, int], bits: int, conditions: Conditions, most: int
) -> list[Candidate]:
    """The best messages that meet the conditions, read in growing portions until there are enough."""
    ordered = iter(top_k(sums, None if conditions else most, bits))
    found: list[Candidate] = []
    portion = most
    while len(found) < most and (numbers := list(islice(ordered, portion))):
        rows = {row[0]: row for row in index.messages(tx, numbers, conditions)}
        found += [
            candidate_of(rows[number], *_weight_and_held(sums[number], bits)) for number in numbers if number in rows
        ]
        portion *= 4
    return found[:most]


# -- weights as whole numbers


def _weights(terms: Sequence[Term]) -> list[tuple[str, int]]:
    return [(term.token, round(term.weight * WEIGHT_UNIT)) for term in terms]


def _weight_and_held(total: int, bits: int) -> tuple[float, int]:
    return (total >> bits) / WEIGHT_UNIT, total & ((1 << bits) - 1)


# -- a scope as the index understands it


def _narrowed(tx: ReadTransaction, index: MessageIndex, scope: Scope) -> tuple[Groups, Sequence[str], Conditions]:
    """A scope as a condition on tokens, and what of it must be asked of the messages themselves."""
    groups, without = list(scope.carrying), list(scope.without)
    if scope.exclude_channel is not None:
        number = tx.execute(select(channel.c.number).where(channel.c.name == scope.exclude_channel)).scalar()
        without += [] if number is None else [channel_token(number)]
    if scope.channel_number is not None:
        groups.append([channel_token(scope.channel_number)])
    groups += _scope_groups(tx, index, scope)
    conditions = message_conditions(scope)
    if not channel_conditions(scope):
        return groups, without, conditions
    chosen = channels_in(scope)
    numbers = tx.execute(chosen.limit(FEW_CHANNELS + 1)).scalars().all()
    if len(numbers) <= FEW_CHANNELS:
        groups.append([channel_token(number) for number in numbers] or ["zznone"])
    elif is_of_channels(scope):
        conditions.append(conversation.c.channel_number.in_(chosen))
    return groups, without, conditions


def _scope_groups(tx: ReadTransaction, index: MessageIndex, scope: Scope) -> Groups:
    """What the tokens of every message say of a scope; nothing where an older version indexed some of them."""
    if not (scope.source or scope.roles or scope.from_ or scope.to) or not index.is_scoped(tx):
        return []
    sources = [source_token(scope.source)] if scope.source else []
    groups = (sources, [role_token(role) for role in scope.roles or ()], _months(tx, scope))
    return [group for group in groups if group]


def _months(tx: ReadTransaction, scope: Scope) -> list[str]:
    """The months in which something in scope may have been said, where it is bound in time."""
    if scope.from_ is None and scope.to is None:
        return []
    # One by one: asked together SQLite reads all of them.
    ends = (select(end(conversation.c.timestamp)).scalar_subquery() for end in (func.min, func.max))
    first, last = tx.execute(select(*ends)).one()
    return [] if first is None else month_tokens(max(first, scope.from_ or first), min(last, scope.to or last))


def _few_messages(tx: ReadTransaction, scope: Scope) -> set[int] | None:
    """The messages of the times and channels in scope, by the tables' own indexes; None if they are many."""
    conditions = time_conditions(scope)
    if is_of_channels(scope):
        conditions.append(conversation.c.channel_number.in_(channels_in(scope)))
    if not conditions:
        return None
    few = FEW_MESSAGES if is_of_channels(scope) else FEW_OF_A_TIME
    numbers = tx.execute(select(conversation.c.number).where(*conditions).limit(few + 1)).scalars().all()
    return set(numbers) if len(numbers) <= few else None
