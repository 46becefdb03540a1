"""What a token lets see, in the queries themselves: the one place that says it.

In a transaction of a restricted token every SELECT is given the tables without the rows that it may not see: common
table expressions of the tables' own names stand before it, and hide them. So a query cannot forget the restriction,
whoever wrote it, and what it counts is what is seen. Both databases read through them into their indexes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Engine, Executable, Result, event, select

from registry.access import Access
from registry.domain import Project
from registry.errors import InternalError
from registry.storage.tables import channel, channel_alias

OPTION = "access"
"""The execution option of a restricted engine."""

_OF_CHANNEL = "channel_number IN (SELECT number FROM channel)"
_TOLD = "number IN (SELECT number FROM edit_token)"
_NOTHING = "1 = 0"
_OWN = "token = {name}"

ROWS = {
    "channel": "{channels}",
    "channel_alias": _OF_CHANNEL,
    "channel_link": "told IN (SELECT number FROM channel) AND session IN (SELECT number FROM channel)",
    "tag": _OF_CHANNEL,
    "conversation": _OF_CHANNEL,
    "message_alias": "number IN (SELECT number FROM conversation)",
    "remote_message": "number IN (SELECT number FROM conversation)",
    "remote": _NOTHING,
    "edit": f"{_OF_CHANNEL} OR {_TOLD}",
    "edit_token": _OWN,
    "remote_edit": _NOTHING,
    "extract_result": _OWN,
    "execution": _OWN,
    "execution_rollup": _NOTHING,
    "store": _NOTHING,
    "store_session": _NOTHING,
    "token": _NOTHING,
    "expectation": _NOTHING,
    "pin": _OF_CHANNEL,
    "saved_view": _NOTHING,
    "rating": _OWN,
}
"""Of each table, the rows that are seen; a condition may name other tables, as they are seen."""

FREE = frozenset({"embedding_model", "message_vector", "registry_key", "forgotten", "schedule"})
"""These tell nothing of a conversation: a vector is of use only with its message, a digest only with its words."""

_INDEX = re.compile(r"\bmessage_(index\w*|term)\b")
_INDEX_SEEN = "AS seen "
"""The message index restricts itself (`storage.engines`), by the tables above under this name."""

_TABLES = re.compile(r"\b(" + "|".join(sorted(ROWS, key=len, reverse=True)) + r")\b")
_SELECT = re.compile(r"\s*SELECT\b", re.IGNORECASE)
_OTHER = re.compile(r"\s*(INSERT|UPDATE|DELETE|BEGIN|SET|PRAGMA)\b", re.IGNORECASE)
_LOCKING = re.compile(r"\bFOR (UPDATE|SHARE|KEY SHARE|NO KEY UPDATE)\b")


def restrict_statements(engine: Engine) -> None:
    """From now on, transactions of this engine that have an `access` see what that allows."""

    @event.listens_for(engine, "before_cursor_execute", retval=True)
    def hide(
        connection: Connection, _cursor: Any, statement: str, parameters: Any, context: Any, _many: bool
    ) -> tuple[str, Any]:
        access: Access | None = context.execution_options.get(OPTION)
        return (restricted(connection.dialect.name, statement, access) if access else statement), parameters


def restricted(dialect: str, statement: str, access: Access) -> str:
    """The statement over what is seen. What changes rows has found them by one that was, and stays as it is."""
    if _INDEX.search(statement) and _SELECT.match(statement) and _INDEX_SEEN not in statement:
        raise InternalError("A statement reads more of the index than a token may see.", statement[:60])
    if _SELECT.match(statement):
        # A lock cannot be had on what is read through an expression. Whose channel it is was asked before (`admit`).
        if _LOCKING.search(statement):
            return statement
        hiding = ", ".join(_expressions(dialect, statement, access))
        return f"WITH {hiding} {statement}" if hiding else statement
    if _OTHER.match(statement):
        return statement
    raise InternalError("A statement cannot be restricted to what a token may see.", statement[:60])


def _expressions(dialect: str, statement: str, access: Access) -> list[str]:
    conditions = _conditions(dialect, access)
    wanted: dict[str, None] = {}

    def want(text: str) -> None:
        for name in dict.fromkeys(_TABLES.findall(text)):
            if name not in wanted:
                want(ROWS[name])
                wanted[name] = None

    want(statement)
    own = "main." if dialect == "sqlite" else ""  # SQLite would take the table for the expression itself
    return [
        f"{name} AS NOT MATERIALIZED (SELECT * FROM {own}{name} WHERE {conditions[name]})"  # noqa: S608, all quoted
        for name in wanted
    ]


def _conditions(dialect: str, access: Access) -> dict[str, str]:
    quote = _QUOTES[dialect]
    matches = [f"name {_LIKE[dialect](pattern)}" for pattern in access.channels]
    projects = [f"project_path = {quote(_path(name))} OR project_name = {quote(name)}" for name in access.projects]
    channels = " AND ".join(f"({' OR '.join(group)})" for group in (matches, projects) if group)
    return {
        table: condition.replace("{channels}", channels).replace("{name}", quote(access.name))
        for table, condition in ROWS.items()
    }


def _path(project: str) -> str:
    return Project.from_path(project).path


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _quoted_for_psycopg(text: str) -> str:
    """A string that says itself what a backslash means in it; a percent sign is the driver's."""
    return "E" + _quoted(text.replace("\\", "\\\\")).replace("%", "%%")


def _glob(pattern: str) -> str:
    return f"GLOB {_quoted(pattern.replace('[', '[[]'))}"


def _like(pattern: str) -> str:
    escaped = re.sub(r"([\\%_])", r"\\\1", pattern)
    return f"LIKE {_quoted_for_psycopg(escaped.replace('*', '%').replace('?', '_'))}"


_QUOTES: dict[str, Callable[[str], str]] = {"sqlite": _quoted, "postgresql": _quoted_for_psycopg}
_LIKE: dict[str, Callable[[str], str]] = {"sqlite": _glob, "postgresql": _like}


def access_of(tx: Connection) -> Access | None:
    """Return the transaction's restriction; None if it sees everything."""
    access: Access | None = tx.get_execution_options().get(OPTION)
    return access


def ask_all(tx: Connection, statement: Executable) -> Result[Any]:
    """Execute a statement that sees everything: for what must be known of all, such as whether a name is taken."""
    return tx.execute(statement, execution_options={OPTION: None})


def admit(tx: Connection, name: str) -> None:
    """Unauthorized if what is called so is, or would be, none of the channels that this transaction sees."""
    access = access_of(tx)
    if access is None:
        return
    aliased = select(channel_alias.c.channel_number).where(channel_alias.c.name == name)
    called = select(channel.c.number).where((channel.c.name == name) | channel.c.number.in_(aliased))
    there = set(ask_all(tx, called).scalars())
    seen = set(tx.execute(select(channel.c.number).where(channel.c.number.in_(there))).scalars())
    if there != seen or not (there or access.may_name(name)):
        raise access.not_yours()


def check_seen(tx: Connection, name: str) -> None:
    """Unauthorized if the channel that was written is none of those that this transaction sees."""
    access = access_of(tx)
    if access and tx.execute(select(channel.c.number).where(channel.c.name == name)).first() is None:
        raise access.not_yours()
