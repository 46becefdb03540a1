"""The scope of a search, and what is read in it without the index: messages by time, the chat that asks."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import ge, le
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, func, select

from registry.storage.conditions import (
    given_conditions,
    is_in,
    is_none_of,
    is_of_project,
    is_tagged,
)
from registry.storage.database import ReadTransaction
from registry.storage.index.message_index import RECALL, UNINDEXED
from registry.storage.paging import ItemsOf, Page, read_page
from registry.storage.tables import channel, conversation
from registry.text.request.phrases import asks_to_recall, folded
from registry.text.request.syntax import Search


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of the registry that is searched; None means everything. Times are instants, both ends included.

    A message in scope carries none of the tokens in `without`.
    """

    channel_number: int | None = None
    sources: Sequence[str] = ()
    project: str | None = None
    tags: Sequence[str] = ()
    roles: Sequence[str] | None = None
    from_: datetime | None = None
    to: datetime | None = None
    exclude_numbers: Sequence[int] = ()
    without: Sequence[str] = ()


def narrow(scope: Scope, search: Search) -> Scope:
    """Narrow a scope by the filters in a search; of two sources or projects the one in the search holds."""
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
    of_places = given_conditions((is_in, conversation.c.source, sources), (is_in, conversation.c.role, roles))
    return [*of_places, *time_conditions(scope)]


def time_conditions(scope: Scope) -> list[ColumnElement[bool]]:
    """Return the conditions on a message's time."""
    return given_conditions((ge, conversation.c.timestamp, scope.from_), (le, conversation.c.timestamp, scope.to))


def channel_conditions(scope: Scope) -> list[ColumnElement[bool]]:
    """Return the conditions on a channel, also that it overlaps the times asked for."""
    return given_conditions(
        (is_of_project, channel.c.project_path, scope.project),
        *((is_tagged, channel.c.number, name) for name in scope.tags),
        (is_none_of, channel.c.number, scope.exclude_numbers or None),
        (ge, channel.c.updated_at, scope.from_),
        (le, channel.c.created_at, scope.to),
    )


def is_of_channels(scope: Scope) -> bool:
    """Return True if the scope has conditions on channels that no index token stands for."""
    return scope.project is not None or bool(scope.tags)


def channels_in(scope: Scope) -> Select[int]:
    """Select the numbers of the channels in scope."""
    return select(channel.c.number).where(*channel_conditions(scope), channel.c.deleted.is_(False))


_TURN = timedelta(hours=1)  # an agent may have worked so long on its turn before it asks


_LATEST = (
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


def asking_channels(tx: ReadTransaction, source: str, request: str, since: datetime) -> list[int]:
    """Return the channels of a source, changed since, in whose last question this may be asked."""
    latest: dict[int, list[Any]] = defaultdict(list)
    for row in tx.execute(_LATEST, {"source": source, "since": since, "turn": since - _TURN}):
        latest[row.channel_number].append(row)
    return [number for number, rows in latest.items() if _waits(rows, request)]


def _waits(latest_first: Sequence[Any], request: str) -> bool:
    """Return True if the last message is a question, or a recall under way, or the last question is this request."""
    if latest_first[0].payload.get(UNINDEXED) == RECALL:
        return True
    spoken = [row for row in latest_first if row.role in ("user", "assistant")]
    if not spoken or spoken[0].role == "user":
        return bool(spoken)
    question = next((folded(row.text) for row in spoken if row.role == "user"), "")
    asked = folded(request)
    return bool(asked) and asked in question and len(asked) >= 0.6 * len(question) and asks_to_recall(question)


def messages_in_scope(scope: Scope) -> list[ColumnElement[bool]]:
    """Return the conditions on the searchable messages in a scope."""
    conditions = [*message_conditions(scope), conversation.c.deleted.is_(False), conversation.c.length > 0]
    if scope.channel_number is not None:
        conditions.append(conversation.c.channel_number == scope.channel_number)
    elif channel_conditions(scope):
        conditions.append(conversation.c.channel_number.in_(channels_in(scope)))
    return conditions


def messages_in(tx: ReadTransaction, scope: Scope, page: Page, items_of: ItemsOf) -> dict[str, Any]:
    """Return a page of the searchable messages in scope by time."""
    return read_page(tx, conversation.c.timestamp, messages_in_scope(scope), page, items_of)


def nearest_times(tx: ReadTransaction, scope: Scope) -> list[datetime]:
    """Return when something was said in the same place just before and just after the time of a scope."""
    inside = messages_in_scope(replace(scope, from_=None, to=None))
    at = conversation.c.timestamp
    before = select(func.max(at)).where(*inside, at < scope.from_) if scope.from_ else None
    after = select(func.min(at)).where(*inside, at > scope.to) if scope.to else None
    found = (tx.execute(query).scalar() for query in (before, after) if query is not None)
    return [moment for moment in found if moment is not None]
