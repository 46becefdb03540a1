"""Export the registry's tables as lines of JSON, the same for both databases; import them, and copy them as they are.

The message index is not exported: it is rebuilt from the messages. A copy is all or nothing: the target is replaced in
one transaction, and compared row by row with the source at the end.
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
from registry.storage.connections import begin_on_server, opened_engine
from registry.storage.conversations.channels import recount_channel
from registry.storage.database import ReadTransaction, WriteTransaction, storage_errors
from registry.storage.index.rebuild_index import BATCH, reindex_at_once
from registry.storage.migrate import migrate, migrate_engine
from registry.storage.paging import change_state
from registry.storage.safety.masking import find_key
from registry.storage.tables import channel, conversation, metadata

TABLES = {table.name: table for table in metadata.sorted_tables}  # every table of ours, the ones others point to first

Progress = Callable[[str, int], None]  # called with a table's name and how many more of its rows were copied
Lines = Callable[[str], Iterable[bytes]]  # the lines of a table, by its name


def rows_of(tx: ReadTransaction, table: Table) -> Iterator[bytes]:
    """Yield each row of a table as one line of JSON, the same on both databases, in the order of its key."""
    query = select(table).order_by(*table.primary_key.columns).execution_options(yield_per=BATCH)
    for row in tx.execute(query).mappings():
        yield row_line({column.name: row[column.key] for column in table.columns})


def row_line(row: Mapping[str, Any]) -> bytes:
    plain = {name: _plain(value) for name, value in row.items()}
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode() + b"\n"


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value


def count_kept(tx: ReadTransaction) -> dict[str, int]:
    """Return how many sessions and messages there are, without deleted ones."""
    return {
        name: tx.execute(select(func.count()).select_from(table).where(table.c.deleted.is_(False))).scalar_one()
        for name, table in (("sessionCount", channel), ("messageCount", conversation))
    }


def rehearse(file: Path, revision: str, lines: Lines, *, is_damaged: bool = False) -> dict[str, int]:
    """Put exported tables into a new SQLite file, as they were at `revision`, and bring that up to date.

    Rows that point to a lost one are left out; a message whose channel is lost gets it back with what it knows of it.
    `is_damaged`: some rows may be missing, so that counts are taken anew. Returns the `count_kept` of the result.
    """
    migrate(f"sqlite:///{file}", revision)
    with _opened(file) as tx:
        remade = _fill(tx, lines)
    migrate(f"sqlite:///{file}")
    with _opened(file) as tx:
        for number in tx.execute(select(channel.c.number)).scalars().all() if is_damaged else remade:
            recount_channel(tx, number)
        return count_kept(tx)


@contextmanager
def _opened(file: Path) -> Iterator[WriteTransaction]:
    with (
        storage_errors("read the backup into"),
        opened_engine(f"sqlite:///{file}") as engine,
        engine.execution_options(write=True).begin() as connection,
    ):
        yield WriteTransaction(ReadTransaction(connection))


def _fill(tx: WriteTransaction, lines: Lines) -> set[int]:
    """Insert the lines; returns the numbers of the channels that were made anew."""
    held = MetaData()
    held.reflect(tx)
    known: dict[str, set[Any]] = {}
    remade: set[int] = set()
    for table in (table for table in held.sorted_tables if table.name in TABLES):
        rows: Iterator[dict[str, Any]] = (_typed(table, json.loads(line)) for line in lines(table.name))
        if table.name == "conversation":
            rows = _with_channels(tx, held.tables["channel"], known["channel"], remade, rows)
        _insert(tx, table, _rooted(table, known, rows), known)
    return remade


def _typed(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(table.columns[name].type, value) for name, value in row.items() if name in table.columns}


def _value(kind: TypeEngine[Any], value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, DateTime):
        return datetime.fromisoformat(value).astimezone(UTC).replace(tzinfo=None)
    return b64decode(value) if isinstance(kind, LargeBinary) else value


def _with_channels(
    tx: WriteTransaction, channels: Table, known: set[Any], remade: set[int], rows: Iterable[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    for row in rows:
        if row["channel_number"] not in known:
            known.add(row["channel_number"])
            remade.add(row["channel_number"])
            tx.execute(insert(channels).values(_remade(row)))
        yield row


def _remade(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a channel of which only the messages are left; its counts are set when all of them are there."""
    return {
        "number": row["channel_number"],
        "name": row["channel"],
        "source": row["source"],
        "meta": {"restored": "from its messages alone"},
        "message_count": 1,
        "seq_count": 1_000_000,  # unknown: more than any of its messages has
        "token_count": 0,
        "created_at": row["timestamp"],
        "updated_at": row["timestamp"],
        "deleted": False,
    }


def _rooted(table: Table, known: Mapping[str, set[Any]], rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Drop rows whose parent is lost; a pointer that may be empty is emptied instead."""
    pointers = [(key.parent, key.column.table.name) for key in table.foreign_keys]
    for row in rows:
        lost = [
            column
            for column, parent in pointers
            if row[column.name] is not None and row[column.name] not in known[parent]
        ]
        if all(column.nullable for column in lost):
            yield {**row, **{column.name: None for column in lost}}


def _insert(tx: WriteTransaction, table: Table, rows: Iterator[dict[str, Any]], known: dict[str, set[Any]]) -> None:
    numbers = known.setdefault(table.name, set())
    into = insert(table).prefix_with("OR IGNORE")
    while batch := list(islice(rows, BATCH)):
        try:
            tx.execute(into, batch)
        except StatementError:  # of a damaged registry: without the rows that are none any more
            for row in batch:
                with suppress(StatementError):
                    tx.execute(into, row)
        if "number" in table.columns:
            numbers.update(row["number"] for row in batch)


def replace_everything(tx: WriteTransaction, file: Path) -> None:
    """Put what a rehearsal has made in the place of all that is stored, in this one transaction."""
    with _opened(file) as source:
        _replace(source, tx, lambda _table, _rows: None)


def _replace(source: ReadTransaction, tx: WriteTransaction, progress: Progress) -> None:
    for table in reversed(metadata.sorted_tables):
        tx.execute(delete(table))
    for table in metadata.sorted_tables:
        _copy_table(source, tx, table, progress)
    reindex_at_once(tx)


def _copy_table(source: ReadTransaction, tx: WriteTransaction, table: Table, progress: Progress) -> None:
    query = select(table).order_by(*table.primary_key.columns).execution_options(yield_per=BATCH)
    for rows in source.execute(query).mappings().partitions(BATCH):
        tx.execute(insert(table), [dict(row) for row in rows])
        progress(table.name, len(rows))
    if tx.dialect.name == "postgresql" and "number" in table.columns and table.columns["number"].primary_key:
        sequence = func.pg_get_serial_sequence(table.name, "number")
        tx.execute(select(func.setval(sequence, func.max(table.c.number))).where(table.c.number.is_not(None)))


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
    with storage_errors("copy"), opened_engine(source_url) as ours, opened_engine(target_url) as theirs:
        for engine in (ours, theirs):
            migrate_engine(engine)
        reading = ours.execution_options(begin=NO_LIMITS("REPEATABLE READ"))
        writing = theirs.execution_options(write=True, begin=NO_LIMITS())
        with reading.begin() as from_here, writing.begin() as to_there:
            source, target = ReadTransaction(from_here), WriteTransaction(ReadTransaction(to_there))
            _check_target(source, target)
            _replace(source, target, progress)
            compared = [(table.name, _compared(source, target, table)) for table in metadata.sorted_tables]
            change_state(target)  # what the source gets from now on is not there: machines compare everything
            return compared


def _check_target(source: ReadTransaction, target: ReadTransaction) -> None:
    if find_key(target) != find_key(source) and target.execute(select(channel.c.number).limit(1)).first():
        raise InvalidRequest(
            "The target is another registry, with conversations of its own.",
            f"{target.engine.url.render_as_string()}; allowed: an empty database, or an earlier copy of this registry",
        )


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
