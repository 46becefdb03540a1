"""Each SQL statement as a span, by the database conventions: which kind of statement on which table, never its values.

Its text is left out, too: some of our statements are made of what was asked for.
"""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import Connection, Engine, ExceptionContext, event

from registry.tracing import span

_KIND = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|BEGIN|PRAGMA|SET)\b", re.IGNORECASE)
_TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE)\s+\"?([a-z_]+)", re.IGNORECASE)
_OPEN = "open_span"


def trace_statements(engine: Engine) -> None:
    """Make spans of the statements of this engine from now on."""

    @event.listens_for(engine, "before_cursor_execute")
    def begin(connection: Connection, _cursor: Any, statement: str, *_rest: Any) -> None:
        kind, table = _first(_KIND, statement).upper(), _first(_TABLE, statement)
        named = {"db__collection__name": table} if table else {}
        made = span(
            f"{kind} {table}".strip() or engine.dialect.name,
            calls_out=True,
            db__system__name=engine.dialect.name,
            db__operation__name=kind,
            **named,
        )
        connection.info[_OPEN] = made, made.__enter__()

    @event.listens_for(engine, "after_cursor_execute")
    def end(connection: Connection, *_rest: Any) -> None:
        made, _ = connection.info.pop(_OPEN)
        made.__exit__(None, None, None)

    @event.listens_for(engine, "handle_error")
    def fail(failure: ExceptionContext) -> None:
        if failure.connection and (opened := failure.connection.info.pop(_OPEN, None)):
            made, failed = opened
            failed(type(failure.original_exception).__name__)
            made.__exit__(None, None, None)


def _first(pattern: re.Pattern[str], statement: str) -> str:
    found = pattern.search(statement)
    return found[1] if found else ""
