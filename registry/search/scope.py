"""Define the scope of a search, and read from it without the index: messages by time, channels awaiting an answer."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import ge, le
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, func, select

from registry.storage.conditions import given_conditions, is_in, is_none_of, is_of_project, is_tagged
from registry.storage.database import ReadTransaction
from registry.storage.index.message_index import RECALL, UNINDEXED
from registry.storage.paging import ItemsOf, Page, read_page
from registry.storage.tables import channel, conversation
from registry.text.request.phrases import is_recall_request, normalise_request
from registry.text.request.syntax import Search


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of the registry to search; None means no filter. Times are instants, both ends included.

    A message in scope contains none of `excluded_tokens`.
    """

    channel_number: int | None = None
    sources: Sequence[str] = ()
    project: str | None = None
    tags: Sequence[str] = ()
    roles: Sequence[str] | None = None
    from_: datetime | None = None
    to: datetime | None = None
    exclude_numbers: Sequence[int] = ()
    excluded_tokens: Sequence[str] = ()


def narrow_scope(scope: Scope, search: Search) -> Scope:
    """Narrow a scope by the filters of a search, whose source and project override those of the scope."""
    return replace(
        scope,
        sources=[search.source] if search.source else scope.sources,
        project=search.project or scope.project,
        tags=[*scope.tags, *search.tags],
        roles=search.roles or scope.roles,
        from_=max((at for at in (scope.from_, search.from_) if at), default=None),
        to=min((at for at in (scope.to, search.to) if at), default=None),
    )


def message_conditions(scope: Scope) -> list[ColumnElement[bool]]:
    """Return the conditions on a message itself."""
    sources, roles = scope.sources or None, scope.roles
    of_origin = given_conditions((is_in, conversation.c.source, sources), (is_in, conversation.c.role, roles))
    return [*of_origin, *time_conditions(scope)]


def time_conditions(scope: Scope) -> list[ColumnElement[bool]]:
    """Return the conditions on a message's time."""
    return given_conditions((ge, conversation.c.timestamp, scope.from_), (le, conversation.c.timestamp, scope.to))


def channel_conditions(scope: Scope) -> list[ColumnElement[bool]]:
    """Return the conditions on a channel; its time must overlap that of the scope."""
    return given_conditions(
        (is_of_project, channel.c.project_path, scope.project),
        *((is_tagged, channel.c.number, name) for name in scope.tags),
        (is_none_of, channel.c.number, scope.exclude_numbers or None),
        (ge, channel.c.updated_at, scope.from_),
        (le, channel.c.created_at, scope.to),
    )


def has_channel_conditions(scope: Scope) -> bool:
    """Return True if the scope has conditions on channels for which the index has no tokens."""
    return scope.project is not None or bool(scope.tags)


def select_channels(scope: Scope) -> Select[int]:
    return select(channel.c.number).where(*channel_conditions(scope), channel.c.deleted.is_(False))


_LONGEST_TURN = timedelta(hours=1)  # time that an agent may work on its turn before it calls the search


_RECENT_MESSAGES = (
    select(
        conversation.c.channel_number,
        conversation.c.role,
        func.substr(conversation.c.text, 1, 600).label("text"),
        conversation.c.payload,
    )
    .join_from(conversation, channel, channel.c.number == conversation.c.channel_number)
    .where(
        channel.c.updated_at >= bindparam("since"),
        channel.c.source == bindparam("source"),
        channel.c.deleted.is_(False),
        conversation.c.deleted.is_(False),
        conversation.c.timestamp >= bindparam("turn"),
    )
    .order_by(conversation.c.timestamp.desc(), conversation.c.number.desc())
    .limit(400)
)


def channels_awaiting_answer(tx: ReadTransaction, source: str, request: str, since: datetime) -> list[int]:
    """Return the channels of a source, changed since then, whose last question may be this request."""
    latest: dict[int, list[Any]] = defaultdict(list)
    for row in tx.execute(_RECENT_MESSAGES, {"source": source, "since": since, "turn": since - _LONGEST_TURN}):
        latest[row.channel_number].append(row)
    return [number for number, rows in latest.items() if _is_awaiting_answer(rows, request)]


def _is_awaiting_answer(latest_first: Sequence[Any], request: str) -> bool:
    """Return True if the last message is a question or a pending recall, or if the last question is this request."""
    if latest_first[0].payload.get(UNINDEXED) == RECALL:
        return True
    conversation_rows = [row for row in latest_first if row.role in ("user", "assistant")]
    if not conversation_rows or conversation_rows[0].role == "user":
        return bool(conversation_rows)
    question = next((normalise_request(row.text) for row in conversation_rows if row.role == "user"), "")
    normalised = normalise_request(request)
    return (
        bool(normalised)
        and normalised in question
        and len(normalised) >= 0.6 * len(question)
        and is_recall_request(question)
    )


def searchable_message_conditions(scope: Scope) -> list[ColumnElement[bool]]:
    conditions = [*message_conditions(scope), conversation.c.deleted.is_(False), conversation.c.length > 0]
    if scope.channel_number is not None:
        conditions.append(conversation.c.channel_number == scope.channel_number)
    elif channel_conditions(scope):
        conditions.append(conversation.c.channel_number.in_(select_channels(scope)))
    return conditions


def list_messages_in_scope(tx: ReadTransaction, scope: Scope, page: Page, items_of: ItemsOf) -> dict[str, Any]:
    """Return a page of the searchable messages in scope, by time."""
    return read_page(tx, conversation.c.timestamp, searchable_message_conditions(scope), page, items_of)


def nearest_times(tx: ReadTransaction, scope: Scope) -> list[datetime]:
    """Return the times of the last message before, and the first one after, the time span of a scope."""
    conditions = searchable_message_conditions(replace(scope, from_=None, to=None))
    at = conversation.c.timestamp
    before = select(func.max(at)).where(*conditions, at < scope.from_) if scope.from_ else None
    after = select(func.min(at)).where(*conditions, at > scope.to) if scope.to else None
    found = (tx.execute(query).scalar() for query in (before, after) if query is not None)
    return [moment for moment in found if moment is not None]
