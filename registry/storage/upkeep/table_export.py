"""Export the registry's tables as lines of JSON in one format for both databases; import them; copy whole registries.

The message index is not exported: it is rebuilt from the messages. A copy replaces the target in one transaction, and
at the end compares it row by row with the source.
"""

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import DateTime, LargeBinary, MetaData, Table, delete, func, insert, select
from sqlalchemy.exc import StatementError
from sqlalchemy.types import TypeEngine

from registry.errors import InvalidRequest, StorageError
from registry.storage.connections import begin_on_server, open_engine
from registry.storage.conversations.channels import recount_channel
from registry.storage.database import ReadTransaction, WriteTransaction, storage_errors
from registry.storage.index.rebuild_index import BATCH, reindex_at_once
from registry.storage.migrate import migrate, migrate_engine
from registry.storage.paging import invalidate_feed_positions
from registry.storage.safety.masking import find_key
from registry.storage.tables import channel, conversation, image, metadata
from registry.temporary_folder import new_file

TABLES = {table.name: table for table in metadata.sorted_tables}  # all tables, parents before children

IMAGE_BATCH = 8  # rows in memory of the table `image`, which have up to 5 MB each

Progress = Callable[[str, int], None]  # called with a table's name and the number of newly copied rows
Lines = Callable[[str], Iterable[bytes]]  # the lines of a table, by its name


def rows_of(tx: ReadTransaction, table: Table) -> Iterator[bytes]:
    """Yield each row of a table as one line of JSON, the same on both databases, in the order of its key."""
    query = select(table).order_by(*table.primary_key.columns).execution_options(yield_per=_batch_of(table))
    for row in tx.execute(query).mappings():
        yield row_line({column.name: row[column.key] for column in table.columns})


def _batch_of(table: Table) -> int:
    return IMAGE_BATCH if table.name == image.name else BATCH


def row_line(row: Mapping[str, Any]) -> bytes:
    plain = {name: _plain(value) for name, value in row.items()}
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode() + b"\n"


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value


def count_stored(tx: ReadTransaction) -> dict[str, int]:
    """Return the numbers of sessions and messages, without deleted ones."""
    return {
        name: tx.execute(select(func.count()).select_from(table).where(table.c.deleted.is_(False))).scalar_one()
        for name, table in (("sessionCount", channel), ("messageCount", conversation))
    }


def import_into_file(file: Path, revision: str, lines: Lines, *, is_damaged: bool = False) -> dict[str, int]:
    """Import tables exported at `revision` into a new SQLite file, migrate it, and return its `count_stored`.

    Rows that refer to a missing row are skipped; a message's missing channel is recreated from the message.
    `is_damaged`: some rows may be missing, so recompute the counts of all channels.
    """
    migrate(f"sqlite:///{file}", revision)
    with _opened(file) as tx:
        recreated = _fill(tx, lines)
    migrate(f"sqlite:///{file}")
    with _opened(file) as tx:
        for number in tx.execute(select(channel.c.number)).scalars().all() if is_damaged else recreated:
            recount_channel(tx, number)
        return count_stored(tx)


@contextmanager
def _opened(file: Path) -> Iterator[WriteTransaction]:
    with (
        storage_errors("read the backup into"),
        open_engine(f"sqlite:///{file}") as engine,
        engine.execution_options(write=True).begin() as connection,
    ):
        yield WriteTransaction(ReadTransaction(connection))


def _fill(tx: WriteTransaction, lines: Lines) -> set[int]:
    """Insert the lines; return the numbers of the recreated channels."""
    reflected = MetaData()
    reflected.reflect(tx)
    known: dict[str, set[Any]] = {}
    recreated: set[int] = set()
    for table in (table for table in reflected.sorted_tables if table.name in TABLES):
        rows: Iterator[dict[str, Any]] = (_typed(table, json.loads(line)) for line in lines(table.name))
        if table.name == "conversation":
            rows = _recreate_channels(tx, reflected.tables["channel"], known["channel"], recreated, rows)
        _insert(tx, table, _drop_orphans(table, known, rows), known)
    return recreated


def _typed(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(table.columns[name].type, value) for name, value in row.items() if name in table.columns}


def _value(kind: TypeEngine[Any], value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, DateTime):
        return datetime.fromisoformat(value).astimezone(UTC).replace(tzinfo=None)
    return b64decode(value) if isinstance(kind, LargeBinary) else value


def _recreate_channels(
    tx: WriteTransaction, channels: Table, known: set[Any], recreated: set[int], rows: Iterable[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    for row in rows:
        if row["channel_number"] not in known:
            known.add(row["channel_number"])
            recreated.add(row["channel_number"])
            tx.execute(insert(channels).values(_recreated_channel(row)))
        yield row


def _recreated_channel(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row for a missing channel, from one of its messages; its counts are recomputed later."""
    return {
        "number": row["channel_number"],
        "name": row["channel"],
        "source": row["source"],
        "meta": {"restored": "from its messages alone"},
        "message_count": 1,
        "seq_count": 1_000_000,  # unknown: larger than the seq of any of its messages
        "token_count": 0,
        "created_at": row["timestamp"],
        "updated_at": row["timestamp"],
        "deleted": False,
    }


def _drop_orphans(
    table: Table, known: Mapping[str, set[Any]], rows: Iterable[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Drop rows whose parent is missing; set a nullable reference to NULL instead."""
    references = [(key.parent, key.column.table.name) for key in table.foreign_keys]
    for row in rows:
        lost = [
            column
            for column, parent in references
            if row[column.name] is not None and row[column.name] not in known[parent]
        ]
        if all(column.nullable for column in lost):
            yield {**row, **{column.name: None for column in lost}}


def _insert(tx: WriteTransaction, table: Table, rows: Iterator[dict[str, Any]], known: dict[str, set[Any]]) -> None:
    numbers = known.setdefault(table.name, set())
    into = insert(table).prefix_with("OR IGNORE")
    while batch := list(islice(rows, _batch_of(table))):
        try:
            tx.execute(into, batch)
        except StatementError:  # damaged registry: insert rows one by one, without invalid ones
            for row in batch:
                with suppress(StatementError):
                    tx.execute(into, row)
        if "number" in table.columns:
            numbers.update(row["number"] for row in batch)


def replace_everything(tx: WriteTransaction, file: Path) -> None:
    """Replace all stored rows by those of a file from `import_into_file`, in this transaction."""
    with _opened(file) as source:
        _replace(source, tx, lambda _table, _rows: None)


def _replace(source: ReadTransaction, tx: WriteTransaction, progress: Progress) -> None:
    for table in reversed(metadata.sorted_tables):
        tx.execute(delete(table))
    for table in metadata.sorted_tables:
        _copy_table(source, tx, table, progress)
    reindex_at_once(tx)


def _copy_table(source: ReadTransaction, tx: WriteTransaction, table: Table, progress: Progress) -> None:
    query = select(table).order_by(*table.primary_key.columns).execution_options(yield_per=_batch_of(table))
    for rows in source.execute(query).mappings().partitions():
        tx.execute(insert(table), [dict(row) for row in rows])
        progress(table.name, len(rows))
    if tx.dialect.name == "postgresql" and "number" in table.columns and table.columns["number"].primary_key:
        sequence = func.pg_get_serial_sequence(table.name, "number")
        tx.execute(select(func.setval(sequence, func.max(table.c.number))).where(table.c.number.is_not(None)))


NO_LIMITS = partial(begin_on_server, idle_in_transaction_session_timeout=0, statement_timeout=0, lock_timeout=0)


def copy_registry(
    source_url: str, target_url: str, progress: Progress = lambda _table, _rows: None
) -> Sequence[tuple[str, int]]:
    """Replace the target by a copy of the source; return each table's name and number of rows.

    InvalidRequest if the target is the source, or another registry with conversations; StorageError if a database
    cannot be read or written, or if the two differ at the end.
    """
    if source_url == target_url:
        raise InvalidRequest("The two registries are the same.", "given: the same address twice")
    file = source_url.removeprefix("sqlite:///")
    if file != source_url and not Path(file).exists():
        raise InvalidRequest("There is no registry to copy.", f"given {file}; a registry on SQLite is expected there")
    new = target_url.removeprefix("sqlite:///")
    if new == target_url or Path(new).exists():
        return _copy(source_url, target_url, progress)
    with new_file(Path(new)) as draft:
        return _copy(source_url, f"sqlite:///{draft}", progress)


def _copy(source_url: str, target_url: str, progress: Progress) -> Sequence[tuple[str, int]]:
    with storage_errors("copy"), open_engine(source_url) as ours, open_engine(target_url) as theirs:
        for engine in (ours, theirs):
            migrate_engine(engine)
        reading = ours.execution_options(begin=NO_LIMITS("REPEATABLE READ"))
        writing = theirs.execution_options(write=True, begin=NO_LIMITS())
        with reading.begin() as from_here, writing.begin() as to_there:
            source, target = ReadTransaction(from_here), WriteTransaction(ReadTransaction(to_there))
            _check_target(source, target)
            _replace(source, target, progress)
            compared = [(table.name, _compare_table(source, target, table)) for table in metadata.sorted_tables]
            # the copy lacks later messages of the source: machines that sync must start over
            invalidate_feed_positions(target)
            return compared


def _check_target(source: ReadTransaction, target: ReadTransaction) -> None:
    if find_key(target) != find_key(source) and target.execute(select(channel.c.number).limit(1)).first():
        raise InvalidRequest(
            "The target is another registry, with conversations of its own.",
            f"{target.engine.url.render_as_string()}; allowed: an empty database, or an earlier copy of this registry",
        )


def _compare_table(source: ReadTransaction, target: ReadTransaction, table: Table) -> int:
    """Return the table's number of rows; StorageError unless both registries have the same rows."""
    ours, theirs = _checksum(source, table), _checksum(target, table)
    if ours != theirs:
        raise StorageError(
            f"The copy of the table {table.name} is not the same as the original.",
            f"{ours[0]} rows here, {theirs[0]} there; nothing was copied",
        )
    return ours[0]


def _checksum(tx: ReadTransaction, table: Table) -> tuple[int, int]:
    """Return the row count and a checksum independent of the order: databases sort texts differently."""
    count = total = 0
    for line in rows_of(tx, table):
        count += 1
        total += int.from_bytes(hashlib.blake2b(line, digest_size=16).digest())
    return count, total
