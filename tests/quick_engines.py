"""Let the engines of a test process share compiled statements, and not wait for the disk.

Nearly every test makes an engine, and each engine compiles its statements anew. No test can see whether a write has
reached the disk.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.pool import Pool
from sqlalchemy.util import LRUCache

_statements: LRUCache[Any, Any] = LRUCache(5000)


def speed_up_engines() -> None:
    """Share compiled statements and skip fsync in this process."""
    Engine._compiled_cache = property(lambda _: _statements, lambda *_: None)  # type: ignore[assignment]
    # The keys of the cache hold the dialect, and each engine has its own.
    DefaultDialect.__eq__ = lambda one, other: _kind(one) == _kind(other)  # type: ignore[method-assign]
    DefaultDialect.__hash__ = lambda one: hash(_kind(one))  # type: ignore[method-assign, assignment]
    event.listen(Pool, "checkout", _skip_fsync)


def _kind(dialect: object) -> tuple[type, Any]:
    return type(dialect), getattr(dialect, "_json_serializer", None)


def _skip_fsync(connection: Any, record: Any, _proxy: object) -> None:
    if isinstance(connection, sqlite3.Connection) and "no_fsync" not in record.info:
        record.info["no_fsync"] = True
        connection.execute("PRAGMA synchronous=OFF")
