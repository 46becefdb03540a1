"""Where a search looks: a scope, and what it asks of messages and of their channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import ge, le

from sqlalchemy import ColumnElement, Select, select

from registry.storage.conditions import given_conditions, is_in, is_none_of, is_of_project, is_tagged
from registry.storage.index.message_index import Groups
from registry.storage.tables import channel, conversation
from registry.text.request.syntax import Search


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to look; None means everywhere. Times are instants, both ends included.

    Of each group in `carrying` a message holds a token, of `without` none.
    """

    channel_number: int | None = None
    sources: Sequence[str] = ()
    project: str | None = None
    tags: Sequence[str] = ()
    roles: Sequence[str] | None = None
    from_: datetime | None = None
    to: datetime | None = None
    exclude_channel: str | None = None
    exclude_numbers: Sequence[int] = ()
    carrying: Groups = ()
    without: Sequence[str] = ()


def narrow(scope: Scope, search: Search) -> Scope:
    """A scope that what is written into the search narrows; of two sources or projects the written one holds."""
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
    """What a message in scope must be by itself."""
    return [
        *given_conditions(
            (is_in, conversation.c.source, scope.sources or None), (is_in, conversation.c.role, scope.roles)
        ),
        *time_conditions(scope),
    ]


def time_conditions(scope: Scope) -> list[ColumnElement[bool]]:
    """When a message in scope was said."""
    return given_conditions((ge, conversation.c.timestamp, scope.from_), (le, conversation.c.timestamp, scope.to))


def channel_conditions(scope: Scope) -> list[ColumnElement[bool]]:
    """What its channel must be. One that ended before, or began after, the times asked for need not be looked at."""
    return given_conditions(
        (is_of_project, channel.c.project_path, scope.project),
        *((is_tagged, channel.c.number, name) for name in scope.tags),
        (is_none_of, channel.c.number, scope.exclude_numbers or None),
        (ge, channel.c.updated_at, scope.from_),
        (le, channel.c.created_at, scope.to),
    )


def is_of_channels(scope: Scope) -> bool:
    """Whether it depends on its channel if a message is in scope, which no token says."""
    return scope.project is not None or bool(scope.tags)


def channels_in(scope: Scope) -> Select[int]:
    """The numbers of the channels in scope."""
    return select(channel.c.number).where(*channel_conditions(scope), channel.c.deleted.is_(False))
