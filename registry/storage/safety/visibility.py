"""Row-level security for tokens, applied to every query in one place.

In a transaction of a restricted token, each SELECT gets common table expressions with the names of the tables it reads
and only the rows that the token may see. So no query can omit the restriction, and counts include only visible rows.
Statements that SQLAlchemy did not build are refused; the message index filters its results
(`index.message_index.drop_hidden`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any

from sqlalchemy import (
    CTE,
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Delete,
    Engine,
    Executable,
    Insert,
    MetaData,
    Result,
    Select,
    Table,
    Update,
    and_,
    bindparam,
    event,
    false,
    or_,
    select,
    true,
)
from sqlalchemy.sql.selectable import ForUpdateArg, SelectBase
from sqlalchemy.sql.visitors import iterate

from registry.access import Access, Level
from registry.domain import now
from registry.errors import InternalError, NotFound
from registry.project import Project
from registry.storage.column_types import UtcTime
from registry.storage.tables import channel, channel_alias, conversation, edit_token, message_image, metadata

OPTION = "access"  # execution option: the access of the transaction's token
TEAM, PROJECT = "team", "project"  # a channel is shared with all tokens, or with the tokens for its project

UNRESTRICTED = frozenset({"embedding_model", "message_vector", "registry_key", "forgotten"})
"""Tables that reveal no conversation: vectors and digests are useless without their messages."""
OF_CHANNEL = frozenset({"channel_alias", "tag", "conversation", "pin"})
OF_MESSAGE = frozenset({"message_alias", "message_image", "remote_message"})
OF_TOKEN = frozenset({"extract_result", "execution", "rating"})
HIDDEN = frozenset({"remote", "remote_edit", "store", "store_session", "expectation", "saved_view", "page_session"})
"""Tables by the rows that a restricted token sees: those of its channels, of its messages, of the token, none.
`channel`, `channel_link`, `edit`, `edit_token`, `image` and `token` have their own conditions."""


def restrict_statements(engine: Engine) -> None:
    """Restrict the engine's transactions with an `access` option to the rows that it allows."""

    @event.listens_for(engine, "before_execute", retval=True)
    def hide(
        connection: Connection, statement: Executable, many: Any, one: Any, options: Mapping[str, Any]
    ) -> tuple[Executable, Any, Any]:
        access = _restriction(options)
        return (_restricted(statement, access, connection.dialect.name) if access else statement), many, one

    @event.listens_for(engine, "before_cursor_execute")
    def refuse(_connection: Connection, _cursor: Any, statement: str, _given: Any, context: Any, _many: bool) -> None:
        is_raw = context.compiled is None and not statement.startswith(("BEGIN", "INSERT", "DELETE"))
        if is_raw and _restriction(context.execution_options):
            raise InternalError("A statement cannot be restricted to what a token may see.", statement[:60])


def _restricted(statement: Executable, access: Access, dialect: str) -> Executable:
    """Restrict a query. INSERT, UPDATE and DELETE are unchanged: a restricted query has found their rows."""
    if isinstance(statement, Insert | Update | Delete):
        return statement
    if not isinstance(statement, SelectBase):
        raise InternalError("A statement cannot be restricted to what a token may see.", str(statement)[:60])
    parts = list(iterate(statement))
    if any(isinstance(part, ForUpdateArg) for part in parts):  # rows of a CTE cannot be locked
        if isinstance(statement, Select) and channel in statement.get_final_froms():
            return statement.where(_is_visible_channel(channel, access, dialect))
        return statement
    read = {part for part in parts if isinstance(part, Table)}
    read |= {part.table for part in parts if isinstance(part, Column)}
    names = {table.name for table in read if table.name in metadata.tables}
    names |= {name for name, readers in _READERS.items() if names & readers}
    return statement.add_cte(*(part for name, part in _visible_tables(access, dialect).items() if name in names))


_READERS: dict[str, frozenset[str]] = {
    "channel": OF_CHANNEL | OF_MESSAGE | {"channel_link", "edit", "image"},
    "conversation": OF_MESSAGE | {"image"},
    "message_image": frozenset({"image"}),
    "edit_token": frozenset({"edit"}),
}
"""By table, the tables whose conditions read it, directly or indirectly."""


@lru_cache(256)
def _visible_tables(access: Access, dialect: str) -> dict[str, CTE]:
    """Return a CTE with the visible rows of each table; CTEs that others read come first."""
    tables = _qualified_tables(dialect)
    conditions = {name: _condition(table, access, dialect) for name, table in tables.items()}
    first = ("channel", "conversation", "edit_token")
    return {
        name: select(tables[name]).where(conditions[name]).cte(name).prefix_with("NOT MATERIALIZED")
        for name in (*first, *(name for name in tables if name not in first))
    }


@cache
def _qualified_tables(dialect: str) -> dict[str, Table]:
    """Return the tables with qualified names: for SQLite the bare name would refer to the CTE itself.

    The table objects are the same for all tokens, so that a statement is compiled only once.
    """
    qualified = MetaData(schema="main" if dialect == "sqlite" else None)
    return {name: table.to_metadata(qualified) for name, table in metadata.tables.items() if name not in UNRESTRICTED}


def _condition(table: Table, access: Access, dialect: str) -> ColumnElement[bool]:
    columns = table.c
    if table.name == "channel":
        return _is_visible_channel(table, access, dialect)
    if table.name == "channel_link":
        numbers = select(channel.c.number)
        return and_(columns.named.in_(numbers), columns.session.in_(numbers))
    if table.name == "edit":
        is_of_token = columns.number.in_(select(edit_token.c.number))
        return or_(columns.channel_number.in_(select(channel.c.number)), is_of_token)
    if table.name == "token":
        return columns.name == access.name
    if table.name in OF_CHANNEL:
        return columns.channel_number.in_(select(channel.c.number))
    if table.name in OF_MESSAGE:
        return columns.number.in_(select(conversation.c.number))
    if table.name == "image":
        return columns.digest.in_(select(message_image.c.digest))
    if table.name == "edit_token":
        return columns.token.in_(_reader_names(access))
    return columns.token == access.name if table.name in OF_TOKEN else false()


def _reader_names(access: Access) -> list[str]:
    """Return the names under which edits about forgetting are recorded for a token: its own and, without patterns, its
    owner's."""
    if access.owner is None or access.channels or access.projects:
        return [access.name]
    return [access.name, owner_name(access.owner)]


def owner_name(owner: str) -> str:
    """Return the name for all tokens of a person, also later ones. No token has such a name."""
    return f"owner:{owner}"


def _is_visible_channel(table: Table, access: Access, dialect: str) -> ColumnElement[bool]:
    names = [is_named_like(table.c.name, pattern, dialect) for pattern in access.channels]
    projects = [is_in_project(table, name, dialect) for name in access.projects]
    people = [] if access.level is Level.ADMIN and not access.only_own else _visible_to_person(table, access)
    return and_(true(), *(or_(*group) for group in (names, projects, people) if group))


def is_in_project(table: Table, name: str, dialect: str) -> ColumnElement[bool]:
    """Return a condition: the channel's project has this path or name, or one that matches the pattern."""
    if "*" in name or "?" in name:
        return or_(*(is_named_like(column, name, dialect) for column in (table.c.project_path, table.c.project_name)))
    return or_(table.c.project_path == Project.from_path(name).path, table.c.project_name == name)


def _visible_to_person(table: Table, access: Access) -> list[ColumnElement[bool]]:
    """Return conditions (OR) for the chats a person may see: own ones, ones without owner, and for reads shared ones.

    A token for some projects also sees chats shared with these; its condition on projects applies in addition.
    """
    if access.only_own:
        return [table.c.owner == access.owner]
    own = [table.c.owner.is_(None), table.c.owner == access.owner]
    if access.is_writing:
        return own
    groups = [TEAM, PROJECT] if access.projects else [TEAM]
    until = table.c.shared_until
    is_shared_now = or_(until.is_(None), until > bindparam(None, callable_=now, type_=UtcTime))
    return [*own, and_(table.c.shared_with.in_(groups), is_shared_now)]


def is_named_like(name: ColumnElement[str], pattern: str, dialect: str) -> ColumnElement[bool]:
    """Return a condition: the name matches the pattern, in which * and ? match any characters."""
    if dialect == "sqlite":
        return name.op("GLOB", is_comparison=True)(pattern.replace("[", "[[]"))
    escaped = pattern.translate({ord(letter): f"\\{letter}" for letter in "\\%_"})
    return name.like(escaped.replace("*", "%").replace("?", "_"), escape="\\")


def access_of(tx: Connection) -> Access | None:
    """Return the transaction's restriction; None if it sees everything."""
    return _restriction(tx.get_execution_options())


def _restriction(options: Mapping[str, Any]) -> Access | None:
    access: Access | None = options.get(OPTION)
    return access if access and access.is_restricted else None


def reader_options(tx: Connection) -> dict[str, Access | None]:
    """Return options for a query in a write transaction that must also see shared channels, as a read does."""
    access = access_of(tx)
    return {OPTION: replace(access, is_writing=False, only_own=False) if access else None}


def see_everything(tx: Connection) -> None:
    """Lift the restriction for the rest of the transaction: records derived from a person's chats may be another's."""
    tx.execution_options(**{OPTION: None})


def see_as_person(tx: Connection) -> None:
    """Restrict the rest of an admin's transaction to what the person sees without being an admin."""
    access: Access | None = tx.get_execution_options().get(OPTION)
    tx.execution_options(**{OPTION: access.as_person() if access else None})


def owner_of(tx: Connection) -> str | None:
    """Return the owner of channels that the transaction creates."""
    access: Access | None = tx.get_execution_options().get(OPTION)
    return access.owner if access else None


def may_see(tx: Connection, access: Access, condition: ColumnElement[bool]) -> bool:
    """Return True if a token sees any channel that meets the condition."""
    found = select(channel.c.number).where(condition).limit(1)
    return tx.execute(found, execution_options={OPTION: access}).first() is not None


def ask_all(tx: Connection, statement: Executable, values: Mapping[str, Any] | None = None) -> Result[*tuple[Any, ...]]:
    """Execute a statement without the restriction, for facts about all rows such as whether a name is taken."""
    return tx.execute(statement, values, execution_options={OPTION: None})


def name_for_owner(tx: Connection, name: str) -> str:
    """Return the name of the channel for a person's messages: a changed one if the channel is another person's."""
    owner = owner_of(tx)
    if owner is None:
        return name
    owners = ask_all(tx, select(channel.c.owner).where(is_called(name))).scalars().all()
    renamed = renamed_for(name, owner)
    if owners:
        return name if all(one in (None, owner) for one in owners) else renamed
    # the other person's channel may be forgotten by now: the person's renamed channel stays in use
    own = select(channel.c.number).where(is_called(renamed), channel.c.owner == owner)
    return name if ask_all(tx, own).first() is None else renamed


def name_for_session(tx: Connection, name: str, source: str, session_id: str | None) -> str:
    """Return the name of the channel for a session from another registry: a changed one if it is another session's.

    Names consist of source and second, so that two sessions that begin at once on two machines have the same name.
    """
    if session_id is None:
        return name
    sessions = select(channel.c.session_id).where(channel.c.source == source, channel.c.session_id.is_not(None))
    holders = ask_all(tx, sessions.where(is_called(name))).scalars().all()
    renamed = f"{name[:160]}_{session_id[:36]}"
    if session_id in holders:
        return name
    # the other session may be forgotten by now: the renamed channel stays in use
    return renamed if holders or ask_all(tx, sessions.where(is_called(renamed))).first() else name


def renamed_for(name: str, owner: str) -> str:
    """Return the changed name of a person's channel if another person's channel has the name."""
    return f"{name[:190]}_{blake2b(owner.encode(), digest_size=3).hexdigest()}"


def channels_with_own_name(tx: Connection, channels: Mapping[int, tuple[str | None, Sequence[str]]]) -> set[int]:
    """Return other people's channels with a name that the reader's machine uses for a chat of the reader.

    Messages and edits are sent by name: that machine would mix the two, and delete or share its own chat.
    """
    owner = owner_of(tx)
    if owner is None:
        return set()
    others = {number: names for number, (other, names) in channels.items() if other not in (None, owner)}
    own_names = {renamed_for(name, owner) for names in others.values() for name in names}
    if not own_names:
        return set()
    named = select(channel.c.name).where(channel.c.name.in_(own_names), channel.c.owner == owner)
    aliased = select(channel_alias.c.name).join(channel, channel.c.number == channel_alias.c.channel_number)
    aliased = aliased.where(channel_alias.c.name.in_(own_names), channel.c.owner == owner)
    taken = {*tx.execute(named).scalars(), *tx.execute(aliased).scalars()}
    return {number for number, names in others.items() if any(renamed_for(name, owner) in taken for name in names)}


def is_called(name: str | BindParameter[str]) -> ColumnElement[bool]:
    """Return a condition: the channel has this name or alias."""
    aliased = select(channel_alias.c.channel_number).where(channel_alias.c.name == name)
    return or_(channel.c.name == name, channel.c.number.in_(aliased))


def check_writable_name(tx: Connection, name: str, *, is_log: bool = False) -> None:
    """Raise Unauthorized if the token's patterns exclude a name, or messages would go into a hidden channel."""
    access = access_of(tx)
    if access is None:
        return
    existing = set(ask_all(tx, select(channel.c.number).where(is_called(name))).scalars())
    visible = set(tx.execute(select(channel.c.number).where(channel.c.number.in_(existing))).scalars())
    is_hidden = existing != visible
    if (is_hidden and is_log) or ((is_hidden or not existing) and not access.may_name(name)):
        raise access.channel_refusal()


def refuse_shared(tx: Connection, is_it: ColumnElement[bool]) -> None:
    """Raise Unauthorized in a write if the token may only read the channel that meets the condition.

    Raise NotFound instead if the access is restricted to one person's own channels.
    """
    access = access_of(tx)
    if access is None or not access.is_writing:
        return
    is_read = tx.execute(select(channel.c.number).where(is_it).limit(1), execution_options=reader_options(tx)).first()
    if is_read and not may_see(tx, access, is_it):
        if access.only_own:
            raise NotFound("No such session", f"That is not a conversation of {access.owner!r}")
        raise access.channel_refusal()


def check_visible(tx: Connection, name: str) -> None:
    """Raise Unauthorized unless the transaction can see the channel that it has written."""
    access = access_of(tx)
    if access and tx.execute(select(channel.c.number).where(channel.c.name == name)).first() is None:
        raise access.channel_refusal()
