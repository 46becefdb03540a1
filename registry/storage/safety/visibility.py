"""Row visibility of tokens, applied to every query in one place.

In a transaction of a restricted token each SELECT gets common table expressions that are named like the tables it reads
and leave out the rows that the token may not see. So no query can forget the restriction, and counts count what is
visible. Statements that SQLAlchemy did not build are refused; the message index filters what it finds
(`index.message_index.seen`).
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
from registry.storage.tables import channel, channel_alias, conversation, edit_token, metadata

OPTION = "access"  # execution option: what the token of a transaction allows
TEAM, PROJECT = "team", "project"  # whom a channel is shared with: everybody with a token, or those with its project's

FREE = frozenset({"embedding_model", "message_vector", "registry_key", "forgotten"})
"""Tables that reveal no conversation: a vector is of use only with its message, a digest only with its words."""
OF_CHANNEL = frozenset({"channel_alias", "tag", "conversation", "pin"})
OF_MESSAGE = frozenset({"message_alias", "remote_message"})
OF_TOKEN = frozenset({"edit_token", "extract_result", "execution", "rating"})
NOTHING = frozenset(
    {"remote", "remote_edit", "execution_rollup", "store", "store_session", "expectation", "saved_view", "page_session"}
)
"""Tables by what a restricted token sees of them: rows of its channels, of its messages, its own, none. `channel`,
`channel_link`, `edit` and `token` have a condition of their own."""


def restrict_statements(engine: Engine) -> None:
    """Make transactions of this engine that have an `access` see only what that allows."""

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
    """Restrict a query. A statement that changes rows stays as it is: its rows were found by a restricted query."""
    if isinstance(statement, Insert | Update | Delete):
        return statement
    if not isinstance(statement, SelectBase):
        raise InternalError("A statement cannot be restricted to what a token may see.", str(statement)[:60])
    parts = list(iterate(statement))
    if any(isinstance(part, ForUpdateArg) for part in parts):  # rows of a CTE cannot be locked
        if isinstance(statement, Select) and channel in statement.get_final_froms():
            return statement.where(_of_access(channel, access, dialect))
        return statement
    read = {part for part in parts if isinstance(part, Table)}
    read |= {part.table for part in parts if isinstance(part, Column)}
    names = {table.name for table in read if table.name in metadata.tables}
    names |= {name for name, readers in _READERS.items() if names & readers}
    return statement.add_cte(*(part for name, part in _visible(access, dialect).items() if name in names))


_READERS: dict[str, frozenset[str]] = {
    "channel": OF_CHANNEL | OF_MESSAGE | {"channel_link", "edit"},
    "conversation": OF_MESSAGE,
    "edit_token": frozenset({"edit"}),
}
"""By table, those whose condition reads it, directly or through another."""


@lru_cache(256)
def _visible(access: Access, dialect: str) -> dict[str, CTE]:
    """Return the visible part of each table, those first that others read."""
    tables = _tables(dialect)
    conditions = {name: _condition(table, access, dialect) for name, table in tables.items()}
    first = ("channel", "conversation", "edit_token")
    return {
        name: select(tables[name]).where(conditions[name]).cte(name).prefix_with("NOT MATERIALIZED")
        for name in (*first, *(name for name in tables if name not in first))
    }


@cache
def _tables(dialect: str) -> dict[str, Table]:
    """Return the tables under full names: to SQLite the bare name would mean the expression itself.

    They are the same for all tokens, so that a statement is compiled once and not for each person.
    """
    own = MetaData(schema="main" if dialect == "sqlite" else None)
    return {name: table.to_metadata(own) for name, table in metadata.tables.items() if name not in FREE}


def _condition(table: Table, access: Access, dialect: str) -> ColumnElement[bool]:
    columns = table.c
    if table.name == "channel":
        return _of_access(table, access, dialect)
    if table.name == "channel_link":
        numbers = select(channel.c.number)
        return and_(columns.named.in_(numbers), columns.session.in_(numbers))
    if table.name == "edit":
        told = columns.number.in_(select(edit_token.c.number))
        return or_(columns.channel_number.in_(select(channel.c.number)), told)
    if table.name == "token":
        return columns.name == access.name
    if table.name in OF_CHANNEL:
        return columns.channel_number.in_(select(channel.c.number))
    if table.name in OF_MESSAGE:
        return columns.number.in_(select(conversation.c.number))
    return columns.token == access.name if table.name in OF_TOKEN else false()


def _of_access(table: Table, access: Access, dialect: str) -> ColumnElement[bool]:
    names = [is_named_like(table.c.name, pattern, dialect) for pattern in access.channels]
    projects = [is_in_project(table, name, dialect) for name in access.projects]
    people = [] if access.level is Level.ADMIN and not access.only_own else _of_person(table, access)
    return and_(true(), *(or_(*group) for group in (names, projects, people) if group))


def is_in_project(table: Table, name: str, dialect: str) -> ColumnElement[bool]:
    """Return a condition: the channel's project has this path or name, or one that matches the pattern."""
    if "*" in name or "?" in name:
        return or_(*(is_named_like(column, name, dialect) for column in (table.c.project_path, table.c.project_name)))
    return or_(table.c.project_path == Project.from_path(name).path, table.c.project_name == name)


def _of_person(table: Table, access: Access) -> list[ColumnElement[bool]]:
    """Return which chats a person may see: own ones, those without an owner, and for reading those that are shared.

    A token for some projects is a member of these: the condition on its projects holds beside this one.
    """
    if access.only_own:
        return [table.c.owner == access.owner]
    own = [table.c.owner.is_(None), table.c.owner == access.owner]
    if access.is_writing:
        return own
    groups = [TEAM, PROJECT] if access.projects else [TEAM]
    until = table.c.shared_until
    still = or_(until.is_(None), until > bindparam(None, callable_=now, type_=UtcTime))
    return [*own, and_(table.c.shared_with.in_(groups), still)]


def is_named_like(name: ColumnElement[str], pattern: str, dialect: str) -> ColumnElement[bool]:
    """Return a condition: the name matches the pattern, in which * and ? stand for any letters."""
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


def as_reader(tx: Connection) -> dict[str, Access | None]:
    """Return the execution options of a query that a write asks as its token reads: with what is shared."""
    access = access_of(tx)
    return {OPTION: replace(access, is_writing=False, only_own=False) if access else None}


def see_everything(tx: Connection) -> None:
    """Lift the restriction for the rest of the transaction: records of a person's chats may be another's."""
    tx.execution_options(**{OPTION: None})


def owner_of(tx: Connection) -> str | None:
    """Return the person who owns the channels that the transaction makes."""
    access: Access | None = tx.get_execution_options().get(OPTION)
    return access.owner if access else None


def may_see(tx: Connection, access: Access, condition: ColumnElement[bool]) -> bool:
    """Return True if a token sees any channel of those that meet the condition."""
    found = select(channel.c.number).where(condition).limit(1)
    return tx.execute(found, execution_options={OPTION: access}).first() is not None


def ask_all(tx: Connection, statement: Executable, values: Mapping[str, Any] | None = None) -> Result[*tuple[Any, ...]]:
    """Execute a statement without the restriction, for facts about all rows such as whether a name is taken."""
    return tx.execute(statement, values, execution_options={OPTION: None})


def own_name(tx: Connection, name: str) -> str:
    """Return the name under which a person's words are stored: another one if that is another person's channel."""
    owner = owner_of(tx)
    if owner is None:
        return name
    held = ask_all(tx, select(channel.c.owner).where(is_called(name))).scalars().all()
    renamed = renamed_for(name, owner)
    if held:
        return name if all(one in (None, owner) for one in held) else renamed
    # the other person's may have been forgotten since: one's own chat goes on where it is
    own = select(channel.c.number).where(is_called(renamed), channel.c.owner == owner)
    return name if ask_all(tx, own).first() is None else renamed


def renamed_for(name: str, owner: str) -> str:
    """Return the name of a person's channel where the name itself is another person's."""
    return f"{name[:190]}_{blake2b(owner.encode(), digest_size=3).hexdigest()}"


def namesakes(tx: Connection, channels: Mapping[int, tuple[str | None, Sequence[str]]]) -> set[int]:
    """Return those channels of others whose name stands, on the reader's machine, for a chat of the reader's own.

    Messages and edits are told by name: such a machine would mix the two, and delete or share its own chat.
    """
    owner = owner_of(tx)
    if owner is None:
        return set()
    others = {number: names for number, (whose, names) in channels.items() if whose not in (None, owner)}
    own_names = {renamed_for(name, owner) for names in others.values() for name in names}
    if not own_names:
        return set()
    named = select(channel.c.name).where(channel.c.name.in_(own_names), channel.c.owner == owner)
    aliased = select(channel_alias.c.name).join(channel, channel.c.number == channel_alias.c.channel_number)
    aliased = aliased.where(channel_alias.c.name.in_(own_names), channel.c.owner == owner)
    held = {*tx.execute(named).scalars(), *tx.execute(aliased).scalars()}
    return {number for number, names in others.items() if any(renamed_for(name, owner) in held for name in names)}


def is_called(name: str | BindParameter[str]) -> ColumnElement[bool]:
    """Return the condition that a channel has this name or alias."""
    aliased = select(channel_alias.c.channel_number).where(channel_alias.c.name == name)
    return or_(channel.c.name == name, channel.c.number.in_(aliased))


def admit(tx: Connection, name: str, *, is_log: bool = False) -> None:
    """Raise Unauthorized if the token's patterns exclude a name, or if words for it would go into a hidden channel."""
    access = access_of(tx)
    if access is None:
        return
    there = set(ask_all(tx, select(channel.c.number).where(is_called(name))).scalars())
    seen = set(tx.execute(select(channel.c.number).where(channel.c.number.in_(there))).scalars())
    is_hidden = there != seen
    if (is_hidden and is_log) or ((is_hidden or not there) and not access.may_name(name)):
        raise access.not_yours()


def refuse_shared(tx: Connection, is_it: ColumnElement[bool]) -> None:
    """Raise Unauthorized if the token may only read the channel that meets the condition, and this is a write.

    NotFound where only one person's own are meant.
    """
    access = access_of(tx)
    if access is None or not access.is_writing:
        return
    is_read = tx.execute(select(channel.c.number).where(is_it).limit(1), execution_options=as_reader(tx)).first()
    if is_read and not may_see(tx, access, is_it):
        if access.only_own:
            raise NotFound("No such session", f"That is no conversation of {access.owner!r}")
        raise access.not_yours()


def check_seen(tx: Connection, name: str) -> None:
    """Raise Unauthorized unless the transaction sees the channel that it has written."""
    access = access_of(tx)
    if access and tx.execute(select(channel.c.number).where(channel.c.name == name)).first() is None:
        raise access.not_yours()
