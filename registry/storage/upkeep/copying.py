"""A whole registry into another database, from SQLite to PostgreSQL or back; what is there already is not sent again.

Rows are compared by their digests. So a copy that was stopped goes on where it was, a second one brings only what has
changed since, and the end is proved by comparing all rows once more. The source is read as of one moment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, Table, and_, delete, func, or_, select, update

from registry.errors import InvalidRequest, StorageError
from registry.storage.connections import begin_on_server, create_database_engine
from registry.storage.conversations.channels import title_entry
from registry.storage.database import ReadTransaction, WriteTransaction, in_parts, insert_many, storage_errors
from registry.storage.index.engines import index_of
from registry.storage.index.index_entries import Entry, message_entry, searched_tokens
from registry.storage.migrate import migrate_engine
from registry.storage.numbering import set_next_number
from registry.storage.safety.masking import find_key
from registry.storage.tables import channel, conversation, metadata
from registry.storage.upkeep.table_export import BATCH, row_line

Key = tuple[Any, ...]
Progress = Callable[[str, int], None]
"""Told of a table, and how many of its rows have been compared or written since the last time."""

_SAMPLE = 50
"""So many messages' words are looked up in both indexes."""


@dataclass(frozen=True, slots=True)
class Copied:
    """A copied table: its rows, and how many of them were written or removed in this run."""

    table: str
    rows: int
    written: int
    removed: int


def copy_registry(source_url: str, target_url: str, progress: Progress = lambda _table, _rows: None) -> list[Copied]:
    """Make the target the same as the source.

    InvalidRequest if the target is the source, or another registry with conversations; StorageError if a database
    cannot be read or written, or the two are not the same in the end.
    """
    if source_url == target_url:
        raise InvalidRequest("The two registries are the same.", "given: the same address twice")
    file = source_url.removeprefix("sqlite:///")
    if file != source_url and not Path(file).exists():
        raise InvalidRequest("There is no registry to copy.", f"given {file}; a registry on SQLite is expected there")
    with _opened(source_url) as source_engine, _opened(target_url) as target, _snapshot(source_engine) as source:
        _check_target(source, target)
        tables = metadata.sorted_tables
        removed = {table.name: _remove(source, target, table, progress) for table in reversed(tables)}
        written = {table.name: _write(source, target, table, progress) for table in tables}
        done = [_proved(source, target, table, written[table.name], removed[table.name]) for table in tables]
        _compare_indexes(source, target)
    return done


@contextmanager
def _opened(url: str) -> Iterator[Engine]:
    engine = create_database_engine(url)
    try:
        migrate_engine(engine)
        yield engine
    finally:
        engine.dispose()


@contextmanager
def _snapshot(engine: Engine) -> Iterator[ReadTransaction]:
    begin = begin_on_server("REPEATABLE READ", idle_in_transaction_session_timeout=0, statement_timeout=0)
    with storage_errors("read"), engine.execution_options(begin=begin).begin() as connection:
        yield ReadTransaction(connection)


@contextmanager
def _writing(engine: Engine) -> Iterator[WriteTransaction]:
    with storage_errors("write"), engine.execution_options(write=True, begin=begin_on_server()).begin() as connection:
        yield WriteTransaction(ReadTransaction(connection))


def _check_target(source: ReadTransaction, target: Engine) -> None:
    with _snapshot(target) as tx:
        if find_key(tx) != find_key(source) and tx.execute(select(channel.c.number).limit(1)).first():
            raise InvalidRequest(
                "The target is another registry, with conversations of its own.",
                f"{target.url.render_as_string()}; allowed: an empty database, or an earlier copy of this registry",
            )


def _rows(tx: ReadTransaction, table: Table) -> Iterator[Sequence[Mapping[str, Any]]]:
    query = select(table).order_by(*table.primary_key.columns).execution_options(yield_per=BATCH)
    yield from tx.execute(query).mappings().partitions(BATCH)  # type: ignore[misc]


def _key(table: Table, row: Mapping[str, Any]) -> Key:
    return tuple(row[column.key] for column in table.primary_key.columns)


def _digests(tx: ReadTransaction, table: Table) -> dict[Key, bytes]:
    return {_key(table, row): _digest(table, row) for rows in _rows(tx, table) for row in rows}


def _digest(table: Table, row: Mapping[str, Any]) -> bytes:
    return hashlib.blake2b(row_line(table, row), digest_size=16).digest()


def _remove(source: ReadTransaction, target: Engine, table: Table, progress: Progress) -> int:
    """Take out of the target what the source has not, or has otherwise; a channel is changed instead.

    With a channel its messages would go, too.
    """
    with _snapshot(target) as tx:
        wrong = _digests(tx, table)
    if not wrong:
        return 0
    changed: list[Mapping[str, Any]] = []
    for rows in _rows(source, table):
        for row in rows:
            held, digest = wrong.get(_key(table, row)), _digest(table, row)
            if held == digest or (held and table is channel):
                del wrong[_key(table, row)]
                changed += [row] if held != digest else []
        progress(table.name, len(rows))
    for keys in in_parts(list(wrong), BATCH):
        with _writing(target) as tx:
            _unindex(tx, table, keys)
            tx.execute(delete(table).where(_is_one_of(table, keys)))
    for some in in_parts(changed, BATCH):
        with _writing(target) as tx:
            _change_channels(tx, some)
    return len(wrong) + len(changed)


def _is_one_of(table: Table, keys: Sequence[Key]) -> Any:
    columns = list(table.primary_key.columns)
    if len(columns) == 1:
        return columns[0].in_([key[0] for key in keys])
    return or_(*(and_(*(column == part for column, part in zip(columns, key, strict=True))) for key in keys))


def _unindex(tx: WriteTransaction, table: Table, keys: Sequence[Key]) -> None:
    if table in (channel, conversation):
        gone = tx.execute(select(table).where(_is_one_of(table, keys))).all()
        if entries := _entries(table, gone):
            index_of(tx).remove(tx, entries)


def _entries(table: Table, rows: Sequence[Any]) -> list[Entry]:
    if table is channel:
        return [entry for entry in (title_entry(row, {}) for row in rows) if len(entry.tokens) > 1]
    alive = [row._mapping for row in rows if not row.deleted]
    return [message_entry(row, searched_tokens(row)) for row in alive]


def _change_channels(tx: WriteTransaction, rows: Sequence[Mapping[str, Any]]) -> None:
    keys = [(row["number"],) for row in rows]
    _unindex(tx, channel, keys)
    for row in rows:
        tx.execute(update(channel).where(channel.c.number == row["number"]).values(**row))
    _index(tx, channel, keys)


def _index(tx: WriteTransaction, table: Table, keys: Sequence[Key]) -> None:
    if table in (channel, conversation):
        come = tx.execute(select(table).where(_is_one_of(table, keys))).all()
        if entries := _entries(table, come):
            index_of(tx).add(tx, entries)


def _write(source: ReadTransaction, target: Engine, table: Table, progress: Progress) -> int:
    """Put into the target what it has not, batch by batch: each is there whole, with its words in the index."""
    with _snapshot(target) as tx:
        held = {tuple(row) for row in tx.execute(select(*table.primary_key.columns))}
    written = 0
    for rows in _rows(source, table):
        missing = [row for row in rows if _key(table, row) not in held]
        if missing:
            with _writing(target) as tx:
                insert_many(tx, table, missing)
                _index(tx, table, [_key(table, row) for row in missing])
        written += len(missing)
        progress(table.name, len(rows))
    with _writing(target) as tx:
        set_next_number(tx, table)
    return written


def _proved(source: ReadTransaction, target: Engine, table: Table, written: int, removed: int) -> Copied:
    with _snapshot(target) as tx:
        ours, theirs = _sum(source, table), _sum(tx, table)
    if ours != theirs:
        raise StorageError(
            f"The copy of the table {table.name} is not the same as the original.",
            f"{ours[0]} rows here, {theirs[0]} there; does something write to the target? Run it again",
        )
    return Copied(table.name, ours[0], written, removed)


def _sum(tx: ReadTransaction, table: Table) -> tuple[int, int]:
    """Return the row count and an order-independent checksum: databases sort texts differently."""
    count = total = 0
    for rows in _rows(tx, table):
        count += len(rows)
        total += sum(int.from_bytes(_digest(table, row)) for row in rows)
    return count, total


def _compare_indexes(source: ReadTransaction, target: Engine) -> None:
    """Return whether the words of some messages, spread over all, are found in the same messages."""
    last = source.execute(select(func.max(conversation.c.number))).scalar() or 0
    behind = [conversation.c.number > last * at // _SAMPLE for at in range(_SAMPLE)]
    spread = {source.execute(select(func.min(conversation.c.number)).where(each)).scalar() for each in behind}
    rows = source.execute(select(conversation).where(conversation.c.number.in_(spread - {None}))).all()
    tokens = list(dict.fromkeys(token for entry in _entries(conversation, rows) for token in entry.tokens))
    with _snapshot(target) as tx:
        wrong = [token for token in tokens if _holders(source, token) != _holders(tx, token)]
    if wrong:
        raise StorageError(
            "The copy's search index is not the same as the original's.",
            f"{len(wrong)} of {len(tokens)} words are found in other messages; `ctxr db reindex --all` makes it anew",
        )


def _holders(tx: ReadTransaction, token: str) -> list[int]:
    return sorted(index_of(tx).holders(tx, [[token]]))
