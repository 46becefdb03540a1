"""Copy a whole registry into another database, from SQLite to PostgreSQL or back.

All or nothing: the target is replaced in one transaction, and compared row by row with the source at the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from sqlalchemy import Engine, Table, delete, select

from registry.errors import InvalidRequest, StorageError
from registry.storage.connections import begin_on_server, create_database_engine
from registry.storage.database import ReadTransaction, WriteTransaction, storage_errors
from registry.storage.index.rebuild_index import reindex_at_once
from registry.storage.migrate import migrate_engine
from registry.storage.safety.masking import find_key
from registry.storage.tables import channel, metadata
from registry.storage.upkeep.table_export import copy_table, rows_of

Progress = Callable[[str, int], None]  # called with a table's name and how many more of its rows were copied

NO_LIMITS = partial(begin_on_server, idle_in_transaction_session_timeout=0, statement_timeout=0, lock_timeout=0)


def copy_registry(
    source_url: str, target_url: str, progress: Progress = lambda _table, _rows: None
) -> Sequence[tuple[str, int]]:
    """Make the target the same as the source; returns each table's name and number of rows.

    InvalidRequest if the target is the source, or another registry with conversations; StorageError if a database
    cannot be read or written, or the two are not the same in the end.
    """
    if source_url == target_url:
        raise InvalidRequest("The two registries are the same.", "given: the same address twice")
    file = source_url.removeprefix("sqlite:///")
    if file != source_url and not Path(file).exists():
        raise InvalidRequest("There is no registry to copy.", f"given {file}; a registry on SQLite is expected there")
    with _opened(source_url) as source_engine, _opened(target_url) as target_engine:
        begin = NO_LIMITS("REPEATABLE READ")
        with storage_errors("copy"), source_engine.execution_options(begin=begin).begin() as connection:
            source = ReadTransaction(connection)
            _check_target(source, target_engine)
            return _replace(source, target_engine, progress)


@contextmanager
def _opened(url: str) -> Iterator[Engine]:
    engine = create_database_engine(url)
    try:
        migrate_engine(engine)
        yield engine
    finally:
        engine.dispose()


def _check_target(source: ReadTransaction, target: Engine) -> None:
    with target.begin() as connection:
        tx = ReadTransaction(connection)
        if find_key(tx) != find_key(source) and tx.execute(select(channel.c.number).limit(1)).first():
            raise InvalidRequest(
                "The target is another registry, with conversations of its own.",
                f"{target.url.render_as_string()}; allowed: an empty database, or an earlier copy of this registry",
            )


def _replace(source: ReadTransaction, target: Engine, progress: Progress) -> Sequence[tuple[str, int]]:
    tables = metadata.sorted_tables
    begin = NO_LIMITS()
    with target.execution_options(write=True, begin=begin).begin() as connection:
        tx = WriteTransaction(ReadTransaction(connection))
        for table in reversed(tables):
            tx.execute(delete(table))
        for table in tables:
            copy_table(source, tx, table, progress)
        reindex_at_once(tx)
        return [(table.name, _compared(source, tx, table)) for table in tables]


def _compared(source: ReadTransaction, target: ReadTransaction, table: Table) -> int:
    """Return the table's number of rows; StorageError unless both sides hold the same."""
    ours, theirs = _sum(source, table), _sum(target, table)
    if ours != theirs:
        raise StorageError(
            f"The copy of the table {table.name} is not the same as the original.",
            f"{ours[0]} rows here, {theirs[0]} there; nothing was copied",
        )
    return ours[0]


def _sum(tx: ReadTransaction, table: Table) -> tuple[int, int]:
    """Return the row count and a checksum independent of the order: databases sort texts differently."""
    count = total = 0
    for line in rows_of(tx, table):
        count += 1
        total += int.from_bytes(hashlib.blake2b(line, digest_size=16).digest())
    return count, total
