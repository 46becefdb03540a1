"""Select candidates: the messages and channel titles in scope that contain the most query terms, by weight."""

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
    has_channel_conditions,
    message_conditions,
    searchable_message_conditions,
    select_channels,
    time_conditions,
)
from registry.storage.conditions import given_conditions, is_in, is_one_of
from registry.storage.database import ReadTransaction
from registry.storage.index.message_index import COLUMNS, Groups, MessageIndex, channel_token, index_of, source_token
from registry.storage.tables import channel, conversation
from registry.text.ranking.scores import Candidate, total_weight
from registry.text.ranking.term_weights import Term, best_first, terms_by_message

CANDIDATES = 1000  # messages that are ranked, those with the largest weights
CANDIDATES_IN_CHANNEL = 2000
_MIN_DISTINCT_CHANNELS = 20  # if the candidates come from fewer channels, search again without these channels

_CHANNELS_AS_TOKENS = 64  # a filter that matches at most this many channels becomes tokens of the index query
# A filter that matches at most this many messages is evaluated before the index query.
_SMALL_SCOPE, _SMALL_TIME_SCOPE = 30_000, 5_000

Conditions = Sequence[ColumnElement[bool]]


@dataclass(frozen=True, slots=True)
class IndexScope:
    """A scope translated to index tokens and SQL conditions, for one search.

    An index entry in scope has a token of each of `groups` and none of `excluded_tokens`, and its message meets
    `conditions`. `allowed_messages`: the messages that meet them, if these are few; else None.
    """

    tx: ReadTransaction
    index: MessageIndex
    scope: Scope
    groups: Groups
    excluded_tokens: Sequence[str]
    conditions: Conditions
    allowed_messages: AbstractSet[int] | None

    def messages_by_token(self, tokens: Sequence[str], among: Sequence[str]) -> dict[str, Collection[int]]:
        """Return the messages in scope that contain each token and, if `among` is given, also one of those tokens."""
        groups = [*self.groups, among] if among else self.groups
        found = self.index.match_each(self.tx, tokens, groups, self.excluded_tokens) if tokens else {}
        return {
            token: numbers if self.allowed_messages is None else self.allowed_messages & set(numbers)
            for token, numbers in found.items()
        }

    def rows(self, numbers: Sequence[int]) -> dict[int, Sequence[Any]]:
        """Return the rows of these messages by number, without those out of scope."""
        return {row[0]: row for row in self.index.messages(self.tx, numbers, self.conditions)}

    def without_channels(self, channels: Collection[int]) -> IndexScope:
        """Return the same scope without some channels."""
        excluded_tokens = [*self.excluded_tokens, *map(channel_token, sorted(channels))]
        return replace(self, excluded_tokens=excluded_tokens)


def resolve_scope(tx: ReadTransaction, scope: Scope) -> IndexScope:
    """Translate a scope to index tokens and SQL conditions."""
    groups, excluded_tokens, conditions = _index_conditions(tx, scope)
    allowed = _messages_of_small_scope(tx, scope) if conditions else None
    return IndexScope(tx, index_of(tx), scope, groups, excluded_tokens, conditions, allowed)


def find_candidates(index_scope: IndexScope, terms: Sequence[Term], budget: int) -> list[Candidate]:
    """Return the messages with the largest weights; if few channels contain them all, also messages of other channels.

    `budget`: postings to read for the rarer terms. Commoner terms are only looked up in messages with a rarer one.
    """
    if index_scope.scope.channel_number is not None:
        return _best_candidates(index_scope, terms, len(terms), CANDIDATES_IN_CHANNEL)
    rare = max(sum(so_far <= budget for so_far in accumulate(term.frequency for term in terms)), 1)
    found = _best_candidates(index_scope, terms, rare, CANDIDATES)
    channels = {candidate.channel_id for candidate in found}
    is_crowded = len(found) >= CANDIDATES and len(channels) < _MIN_DISTINCT_CHANNELS
    others = _best_candidates(index_scope.without_channels(channels), terms, rare, CANDIDATES) if is_crowded else []
    return [*found, *others]


def find_titles(index_scope: IndexScope, terms: Sequence[Term]) -> dict[int, int]:
    """Return the terms in the title of each channel in scope, by channel number (bits as in `Candidate.term_bits`).

    Return nothing if the request filters messages by role or by excluded words. Ignore the title of a channel in which
    every question only asks for another conversation.
    """
    scope = index_scope.scope
    is_of_one_role = scope.roles and not {Role.USER, Role.ASSISTANT}.issubset(scope.roles)
    if is_of_one_role or scope.excluded_tokens:
        return {}
    channels_by_token = index_scope.index.match_titles(index_scope.tx, [term.token for term in terms])
    found: dict[int, int] = {}
    for bit, term in enumerate(terms):
        for number in channels_by_token.get(term.token, ()):
            found[-number] = found.get(-number, 0) | 1 << bit
    if scope.channel_number is not None:
        found = {number: term_bits for number, term_bits in found.items() if number == scope.channel_number}
    if not found:
        return {}
    in_scope = [*channel_conditions(scope), *given_conditions((is_in, channel.c.source, scope.sources or None))]
    has_content = or_(_has_question(conversation.c.length > 0), ~_has_question())
    titled = is_one_of(channel.c.number, found), channel.c.deleted.is_(False), has_content
    query = select(channel.c.number).where(*titled, *in_scope)
    return {number: found[number] for number in index_scope.tx.execute(query).scalars()}


def _has_question(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return the condition that a channel contains a question that is not deleted and meets the conditions."""
    return exists().where(
        conversation.c.channel_number == channel.c.number,
        conversation.c.role == Role.USER,
        conversation.c.deleted.is_(False),
        *conditions,
    )


def candidate_of(row: Sequence[Any]) -> Candidate:
    """Convert a row of `MessageIndex.messages` to a candidate without terms."""
    number, channel_number, seq, role, length, turn = row
    return Candidate(number, channel_number, seq, role, length, 0.0, turn)


def _best_candidates(index_scope: IndexScope, terms: Sequence[Term], rare: int, most: int) -> list[Candidate]:
    """Return the messages in scope with the largest sums of term weights; the newer one if sums are equal."""
    tokens = [term.token for term in terms]
    postings = index_scope.messages_by_token(tokens[:rare], ())
    postings |= index_scope.messages_by_token(tokens[rare:], tokens[:rare])
    term_bits = terms_by_message(postings[token] for token in tokens)
    weights = [term.weight for term in terms]
    weight_of = {bits: round(total_weight(bits, weights), 6) for bits in {*term_bits.values()}}  # equal sums are ties
    ordered = best_first(term_bits, weight_of)
    found: list[Candidate] = []
    portion = most
    while len(found) < most and (numbers := list(islice(ordered, portion))):
        rows = index_scope.rows(numbers)
        for number, channel_number, seq, role, length, turn in filter(None, map(rows.get, numbers)):
            bits = term_bits[number]
            found.append(Candidate(number, channel_number, seq, role, length, weight_of[bits], turn, bits))
        portion *= 4  # SQL conditions may remove most of the best messages
    return found[:most]


# -- messages that contain no query word


def newest_messages(tx: ReadTransaction, scope: Scope) -> list[Candidate]:
    """Return the newest 500 searchable messages in a scope that is limited in time."""
    conditions = searchable_message_conditions(scope)
    query = select(*COLUMNS).where(*conditions).order_by(conversation.c.number.desc()).limit(500)
    return [candidate_of(row) for row in tx.execute(query)]


def channel_sizes(tx: ReadTransaction, numbers: Collection[int]) -> dict[int, tuple[int, int]]:
    """Return (messages, tokens) of each of these channels."""
    columns = channel.c.number, channel.c.message_count, channel.c.token_count
    rows = tx.execute(select(*columns).where(is_one_of(channel.c.number, numbers))) if numbers else ()
    return {number: (messages, tokens) for number, messages, tokens in rows}


# -- scopes


def _index_conditions(tx: ReadTransaction, scope: Scope) -> tuple[Groups, Sequence[str], Conditions]:
    """Return a scope as required token groups, excluded tokens, and SQL conditions on messages."""
    groups: list[Sequence[str]] = []
    excluded_tokens = [*scope.excluded_tokens, *map(channel_token, scope.exclude_numbers)]
    if scope.channel_number is not None:
        groups.append([channel_token(scope.channel_number)])
    if scope.sources:
        groups.append([source_token(source) for source in scope.sources])
    conditions = message_conditions(scope)
    if not channel_conditions(scope):
        return groups, excluded_tokens, conditions
    chosen = select_channels(scope)
    numbers = tx.execute(chosen.limit(_CHANNELS_AS_TOKENS + 1)).scalars().all()
    if len(numbers) <= _CHANNELS_AS_TOKENS:
        groups.append([channel_token(number) for number in numbers] or ["zznone"])
    elif has_channel_conditions(scope):
        conditions.append(conversation.c.channel_number.in_(chosen))
    return groups, excluded_tokens, conditions


def _messages_of_small_scope(tx: ReadTransaction, scope: Scope) -> set[int] | None:
    """Return the messages of the times and channels in scope from the database's own indexes; None if they are many."""
    conditions = time_conditions(scope)
    if has_channel_conditions(scope):
        conditions.append(conversation.c.channel_number.in_(select_channels(scope)))
    if not conditions:
        return None
    most = _SMALL_SCOPE if has_channel_conditions(scope) else _SMALL_TIME_SCOPE
    numbers = tx.execute(select(conversation.c.number).where(*conditions).limit(most + 1)).scalars().all()
    return set(numbers) if len(numbers) <= most else None
