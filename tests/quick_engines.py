"""What every database engine of a test process is spared: to make out each statement anew, and to wait for the disk.

An engine is made for nearly every test, and keeps to itself how its statements read: that would be made out a thousand
times. That an acknowledged write is on the disk cannot be seen by a test in any case: it would have to cut the power.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.pool import Pool
from sqlalchemy.util import LRUCache

_statements: LRUCache[Any, Any] = LRUCache(5000)


def spare_engines() -> None:
    """From now on, in this process."""
    Engine._compiled_cache = property(lambda _: _statements, lambda *_: None)  # type: ignore[assignment]
    # Their keys hold the dialect, of which each engine has one of its own.
    DefaultDialect.__eq__ = lambda one, other: _kind(one) == _kind(other)  # type: ignore[method-assign]
    DefaultDialect.__hash__ = lambda one: hash(_kind(one))  # type: ignore[method-assign, assignment]
    event.listen(Pool, "checkout", _leave_the_disk)


def _kind(dialect: object) -> tuple[type, Any]:
    return type(dialect), getattr(dialect, "_json_serializer", None)


def _leave_the_disk(connection: Any, record: Any, _proxy: object) -> None:
    if isinstance(connection, sqlite3.Connection) and "left" not in record.info:
        record.info["left"] = True
        connection.execute("PRAGMA synchronous=OFF")
