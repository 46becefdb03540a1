"""The choosing of candidates: the messages, and channel titles, in scope that hold most of what is looked for.

What ranking does not get to see cannot be found, and what it sees it must pay for: hence the numbers below.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache, lru_cache
from itertools import accumulate, islice
from typing import Any

from sqlalchemy import ColumnElement, Select, TextClause, bindparam, exists, func, or_, select, text

from registry.domain import Role
from registry.search.scope import (
    Scope,
    channel_conditions,
    channels_in,
    is_of_channels,
    message_conditions,
    time_conditions,
)
from registry.storage.conditions import given, given_conditions, given_pairs, is_in, is_one_of, is_pair_of
from registry.storage.database import ReadTransaction
from registry.storage.index.engines import index_of
from registry.storage.index.index_entries import channel_token, month_tokens, role_token, source_token
from registry.storage.index.message_index import COLUMNS, Groups, MessageIndex
from registry.storage.safety.visibility import access_of, ask_all
from registry.storage.tables import channel, conversation
from registry.text.ranking.scores import FARTHEST, SEQ_BITS, Candidate, Title
from registry.text.ranking.term_weights import COMMON_TERMS, Term, best_first, sum_weights

CANDIDATES = 1000
CANDIDATES_IN_CHANNEL = 2000
"""How many of the messages with the largest weights are taken into ranking, inside a channel also of other wordings."""

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
FAR_MORE = 3
"""A term that so many times more messages hold is looked for in those that are in scope."""
LONG_LIST = 5_000
"""A list of so many postings is not walked if sets of terms can be asked for instead (`text.ranking.term_weights`)."""

Conditions = Sequence[ColumnElement[bool]]


@dataclass(frozen=True, slots=True)
class Place:
    """A scope as the index understands it, for one search: its wordings share their words and their messages.

    An entry of the index is in it that carries a token of each of `groups` and none of `without`; the rest is asked
    of the messages (`conditions`), or was: `allowed`. `holders`, `titles` and `rows` are what has been read so far.
    """

    tx: ReadTransaction
    index: MessageIndex
    scope: Scope
    groups: Groups
    without: Sequence[str]
    conditions: Conditions
    allowed: AbstractSet[int] | None
    holders: dict[str, Collection[int]] = field(default_factory=dict)
    titles: dict[str, Collection[int]] = field(default_factory=dict)
    rows: dict[int, Sequence[Any] | None] = field(default_factory=dict)

    def holding(self, tokens: Sequence[str], among: Sequence[str]) -> Mapping[str, Collection[int]]:
        """By token, the messages in scope that hold it and, where others are given, one of these, or more of them."""
        missing = [token for token in tokens if token not in self.holders]
        groups = [*self.groups, among] if among else self.groups
        found = self.index.holders_of_each(self.tx, missing, groups, self.without) if missing else {}
        inside = {token: self._within(numbers) for token, numbers in found.items()}
        if among:
            return {**self.holders, **inside}
        self.holders.update(inside)
        return self.holders

    def look_through(self, terms: Sequence[Term]) -> None:
        """Where few messages are in scope, have at once what they hold of the terms that far more messages hold."""
        many = FAR_MORE * len(self.allowed or ())
        common = [term.token for term in terms if term.frequency > many and term.token not in self.holders]
        if self.allowed and common:
            self.holders.update(self.index.held_among(self.tx, self.allowed, common, self.groups, self.without))

    def read_ahead(self, terms: Sequence[Term], k: int) -> None:
        """Have the lists that are walked whatever they hold: the rarest ones, up to the `k`-th message at the least."""
        is_inside = self.scope.channel_number is not None
        before = accumulate((term.frequency for term in terms), initial=0)
        sure = [
            term.token
            for term, so_far in zip(terms, before, strict=False)
            if is_inside or (so_far < k and term.frequency <= LONG_LIST)
        ]
        self.holding(sure, ())

    def _within(self, found: Collection[int]) -> Collection[int]:
        return found if self.allowed is None else self.allowed & set(found)

    def titled(self, terms: Sequence[Term]) -> Mapping[str, Collection[int]]:
        """The (negated) numbers of the channels whose titles hold them, by token."""
        if missing := [term.token for term in terms if term.token not in self.titles]:
            self.titles.update(self.index.titles_holding(self.tx, missing))
        return self.titles

    def newest(self, held: Sequence[str], absent: Sequence[str], limit: int) -> Collection[int]:
        """Of the messages that hold all of the first tokens and none of the second, so many of the newest."""
        groups = [*self.groups, *([token] for token in held)]
        return self.index.newest_holders(self.tx, groups, [*absent, *self.without], limit)

    def read(self, numbers: Sequence[int]) -> None:
        """Have the rows of these messages, None for one that is not in scope."""
        missing = [number for number in numbers if number not in self.rows]
        if missing:
            self.rows.update(dict.fromkeys(missing))
            self.rows.update({row[0]: row for row in self.index.messages(self.tx, missing, self.conditions)})

    def outside(self, channels: Collection[int]) -> Place:
        """The same without some channels."""
        without = [*self.without, *map(channel_token, sorted(channels))]
        return replace(self, without=without, holders={})


def place_of(tx: ReadTransaction, index: MessageIndex, scope: Scope, total: int) -> Place:
    """Where a scope lets look, in an index of about so many entries."""
    groups, without, conditions = _narrowed(tx, index, scope, total)
    return Place(tx, index, scope, groups, without, conditions, _few_messages(tx, scope) if conditions else None)


def find_candidates(place: Place, terms: Sequence[Term], most: int = CANDIDATES) -> list[Candidate]:
    """The messages with the largest weights; where those of a few channels hide all others, these are asked for too."""
    if place.scope.channel_number is not None:
        return _best_candidates(place, terms, max(most, CANDIDATES_IN_CHANNEL))
    found = _best_candidates(place, terms, most)
    latest = found
    for _ in range(LOOKS):
        channels = {candidate.channel_id for candidate in latest}
        if len(latest) < most or len(channels) >= LOUD_CHANNELS:
            break
        place = place.outside(channels)
        latest = _best_candidates(place, terms, most)
        found = [*found, *latest]
    return found


def find_titles(place: Place, terms: Sequence[Term]) -> dict[int, Title]:
    """What the title of each channel in scope holds of the terms, by channel number.

    A title is not asked what only a message can be: said by one of the two who talk, with a phrase, in one channel.
    That of a channel in which every question only asks for another conversation is no title of its own.
    """
    scope = place.scope
    if scope.channel_number is not None or _is_of_one_side(scope) or scope.carrying or scope.without:
        return {}
    titled = place.titled(terms)
    sums = sum_weights(_weights(terms), lambda _tokens, _among: titled, None)
    if not sums:
        return {}
    found = {-number: Title(*_weight_and_held(sums[number], len(terms))) for number in sums}
    conditions = [*channel_conditions(scope), *given_conditions((is_in, channel.c.source, scope.sources or None))]
    values = {**given(place.tx, found), "excluded": scope.exclude_channel or ""}
    statement = _titled(place.tx.dialect.name)
    inside = place.tx.execute(statement.where(*conditions) if conditions else statement, values).scalars()
    return {number: found[number] for number in inside}


@cache
def _titled(dialect: str) -> Select[int]:
    there = is_one_of(dialect, channel.c.number), channel.c.deleted.is_(False)
    is_told = or_(_asked(conversation.c.length > 0), ~_asked())
    return select(channel.c.number).where(*there, is_told, channel.c.name != bindparam("excluded"))


def _is_of_one_side(scope: Scope) -> bool:
    return bool(scope.roles) and not {Role.USER, Role.ASSISTANT}.issubset(scope.roles or ())


def _asked(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether a channel holds such a question."""
    return exists().where(
        conversation.c.channel_number == channel.c.number, conversation.c.role == Role.USER, *conditions
    )


def candidate_of(row: Sequence[Any], weight: float = 0.0, held: int = 0) -> Candidate:
    """The candidate of a row that `MessageIndex.messages` gave."""
    number, channel_number, seq, role, length, turn = row
    return Candidate(number, channel_number, seq, role, length, weight, turn, held)


def _best_candidates(place: Place, terms: Sequence[Term], most: int) -> list[Candidate]:
    """The messages in scope with the largest sums of term weights, these and the newest first."""
    is_wide = place.allowed is None and place.scope.channel_number is None
    common = min(sum(term.frequency > LONG_LIST for term in terms), COMMON_TERMS)
    # Conditions on the message itself may leave few of the best ones: then all are looked at.
    attempts = (4 * most, None) if place.conditions else (most,)
    place.look_through(terms)
    place.read_ahead(terms, attempts[0])
    found: list[Candidate] = []
    for stop_at in attempts:
        sums = sum_weights(_weights(terms), place.holding, stop_at, common, place.newest if is_wide else None)
        found = _read(place, sums, len(terms), most)
        if len(found) >= most or len(sums) < (stop_at or 0):
            break
    return found


def _read(place: Place, sums: dict[int, int], bits: int, most: int) -> list[Candidate]:
    """The best messages in scope, read in growing portions until there are enough."""
    ordered = best_first(sums, bits)
    found: list[Candidate] = []
    told = {total: _weight_and_held(total, bits) for total in {*sums.values()}}  # few, one for each set of terms
    portion = most
    while len(found) < most and (numbers := list(islice(ordered, portion))):
        place.read(numbers)
        for number, channel_number, seq, role, length, turn in filter(None, map(place.rows.__getitem__, numbers)):
            weight, held = told[sums[number]]
            found.append(Candidate(number, channel_number, seq, role, length, weight, turn, held))
        if not place.conditions:  # all are in scope
            break
        portion *= 4
    return found[:most]


# -- messages that hold no word themselves

SAID_THEN = 500
"""So many of the newest messages of a date are taken."""


def neighbours(
    tx: ReadTransaction, best: Sequence[Candidate], known: Iterable[Candidate], read: Iterable[Candidate], scope: Scope
) -> list[Candidate]:
    """The messages in scope that stand up to `FARTHEST` places from these in their channels, without those known.

    What was `read` before is taken from there.
    """
    steps = [step for step in range(-FARTHEST, FARTHEST + 1) if step]
    beside = {one[1] << SEQ_BITS | one[2] + step for one in best for step in steps if one[2] + step >= 0}
    beside.difference_update([one[1] << SEQ_BITS | one[2] for one in known])
    found = [one for one in read if one[1] << SEQ_BITS | one[2] in beside]
    places = sorted(beside.difference([one[1] << SEQ_BITS | one[2] for one in found]))
    statement = _standing(tx.dialect.name, tuple(message_conditions(scope)))
    rows = tx.execute(statement, given_pairs(tx, places, SEQ_BITS)).all() if places else ()
    return [*found, *map(candidate_of, rows)]


@lru_cache(maxsize=64)
def _standing(dialect: str, conditions: tuple[ColumnElement[bool], ...]) -> Select[Any]:
    here = is_pair_of(dialect, conversation.c.channel_number, conversation.c.seq, SEQ_BITS)
    return select(*COLUMNS).where(here, *conditions, conversation.c.deleted.is_(False))


def messages_said(tx: ReadTransaction, scope: Scope) -> list[Candidate]:
    """The newest messages in a scope that is bound in time, of those that are searched at all."""
    conditions = [*message_conditions(scope), conversation.c.deleted.is_(False), conversation.c.length > 0]
    if scope.channel_number is not None:
        conditions.append(conversation.c.channel_number == scope.channel_number)
    elif channel_conditions(scope):
        conditions.append(conversation.c.channel_number.in_(channels_in(scope)))
    if scope.exclude_channel is not None:
        conditions.append(conversation.c.channel != scope.exclude_channel)
    query = select(*COLUMNS).where(*conditions).order_by(conversation.c.number.desc()).limit(SAID_THEN)
    return [candidate_of(row) for row in tx.execute(query)]


def messages_numbered(tx: ReadTransaction, numbers: Sequence[int]) -> list[Candidate]:
    """Messages by their numbers, as far as they are there."""
    return list(map(candidate_of, index_of(tx).messages(tx, numbers, ()))) if numbers else []


def channel_lengths(tx: ReadTransaction, numbers: Collection[int]) -> dict[int, int]:
    """The tokens of some channels."""
    return {number: count for number, count in tx.execute(_lengths(tx.dialect.name), given(tx, numbers)).all()}


@cache
def _lengths(dialect: str) -> Select[int, int]:
    return select(channel.c.number, channel.c.token_count).where(is_one_of(dialect, channel.c.number))


PAUSE = timedelta(hours=2)
"""After a longer one a conversation is taken up again, and may be about something else."""
# From one message to the last within the length of a pause, or else the next: a few looks into an index for each hour
# that was talked, however many messages. SQLite's times are compared as texts, by whole seconds.
_TAKEN_UP_AGAIN = """
SELECT seq FROM (
    WITH RECURSIVE met (at, is_pause) AS (
        SELECT min(timestamp), 0 FROM conversation WHERE channel_number = :channel
        UNION ALL
        SELECT coalesce(({last}), ({next})), CASE WHEN ({last}) IS NULL THEN 1 ELSE 0 END
        FROM met WHERE met.at IS NOT NULL)
    SELECT (
        SELECT seq FROM conversation WHERE channel_number = :channel AND timestamp = met.at ORDER BY number LIMIT 1
    ) AS seq FROM met WHERE is_pause = 1 AND met.at IS NOT NULL) AS begun
"""
_NEXT = "SELECT min(timestamp) FROM conversation WHERE channel_number = :channel AND timestamp > met.at"
_WITHIN = {
    "sqlite": "timestamp < strftime('%Y-%m-%d %H:%M:%S', met.at, :pause)",
    "postgresql": "timestamp <= met.at + CAST(:pause AS interval)",
}
_LONGEST = {
    "sqlite": f"+{PAUSE // timedelta(seconds=1) + 1} seconds",
    "postgresql": f"{PAUSE // timedelta(seconds=1)} seconds",
}


def taken_up_again(tx: ReadTransaction, channel_number: int) -> list[int]:
    """The places (seq) at which a channel was taken up again after a long pause, in order."""
    name = tx.dialect.name
    return sorted(ask_all(tx, _begun(name), {"channel": channel_number, "pause": _LONGEST[name]}).scalars())


@cache
def _begun(dialect: str) -> TextClause:
    last = f"{_NEXT} AND {_WITHIN[dialect]}".replace("min(", "max(")
    return text(_TAKEN_UP_AGAIN.format(last=last, next=_NEXT))


# -- weights as whole numbers


def _weights(terms: Sequence[Term]) -> list[tuple[str, int]]:
    return [(term.token, round(term.weight * WEIGHT_UNIT)) for term in terms]


def _weight_and_held(total: int, bits: int) -> tuple[float, int]:
    return (total >> bits) / WEIGHT_UNIT, total & ((1 << bits) - 1)


# -- a scope as the index understands it


def _narrowed(
    tx: ReadTransaction, index: MessageIndex, scope: Scope, total: int
) -> tuple[Groups, Sequence[str], Conditions]:
    """A scope as a condition on tokens, and what of it must be asked of the messages themselves."""
    groups, without = list(scope.carrying), [*scope.without, *map(channel_token, scope.exclude_numbers)]
    if scope.exclude_channel is not None:
        number = tx.execute(select(channel.c.number).where(channel.c.name == scope.exclude_channel)).scalar()
        without += [] if number is None else [channel_token(number)]
    if scope.channel_number is not None:
        groups.append([channel_token(scope.channel_number)])
    of_roles, of_others = _of_roles(tx, index, scope, total)
    sources = [source_token(source) for source in scope.sources]
    groups += [group for group in (sources, of_roles, _months(tx, scope)) if group]
    without += of_others
    conditions = message_conditions(replace(scope, roles=None))
    if not channel_conditions(scope):
        return groups, without, conditions
    chosen = channels_in(scope)
    numbers = tx.execute(chosen.limit(FEW_CHANNELS + 1)).scalars().all()
    if len(numbers) <= FEW_CHANNELS:
        groups.append([channel_token(number) for number in numbers] or ["zznone"])
    elif is_of_channels(scope):
        conditions.append(conversation.c.channel_number.in_(chosen))
    return groups, without, conditions


def _of_roles(
    tx: ReadTransaction, index: MessageIndex, scope: Scope, total: int
) -> tuple[Sequence[str], Sequence[str]]:
    """The tokens of which a message of the roles asked for carries one, or those of which it carries none.

    Each look-up may walk their lists: so those that fewer messages carry. In one channel more than one role is most.
    """
    if not scope.roles:
        return (), ()
    roles = scope.roles
    wanted = [role_token(role) for role in roles]
    others = [role_token(role) for role in Role if role not in roles]
    if scope.channel_number is not None and len(wanted) > 1:
        return (), others
    if access_of(tx):  # to count what a token may see takes longer
        return wanted, ()
    is_most = 2 * sum(index.frequencies(tx, wanted, total).values()) > total
    return ((), others) if is_most else (wanted, ())


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
