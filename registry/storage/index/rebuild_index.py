"""Rebuild the message index in a second table, while searches use the old one.

Each batch is a transaction, so an interrupted rebuild continues. The transaction that replaces the old index adds and
removes the messages that were stored, deleted or restored meanwhile.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, inspect, select, text

from registry.storage.conditions import is_one_of
from registry.storage.conversations.channels import title_entries
from registry.storage.conversations.messages import by_numbers
from registry.storage.database import Database, ReadTransaction, WriteTransaction, update_rows
from registry.storage.index.message_index import index_of, message_entry, searched_tokens
from registry.storage.tables import channel, conversation
from registry.text.analysis.analyzer import ANALYZER_VERSION

BATCH = 500  # rows per statement
BUILD = f"message_index_v{ANALYZER_VERSION}_build"
"""The new table's name. Unfinished builds of other analyzer versions are dropped."""

Progress = Callable[[int, int], None]  # called with the number of finished messages and the total


@dataclass(frozen=True, slots=True)
class _Statements:
    """The statements that differ between the databases. `entries` yields the new index's numbers as `id`."""

    create: str
    entries: str
    complete: Sequence[str]
    lock: Sequence[str]
    exchange: Sequence[str]


_STATEMENTS = {
    "sqlite": _Statements(
        create=f"CREATE VIRTUAL TABLE {BUILD} USING"
        " fts5(t, content='', detail=none, tokenize='unicode61 remove_diacritics 0')",
        entries=f"SELECT id FROM {BUILD}_docsize",  # noqa: S608, a name of ours
        complete=(),
        lock=(),
        exchange=(
            "DROP TABLE message_term",
            "DROP TABLE message_index",
            f"ALTER TABLE {BUILD} RENAME TO message_index",
            "CREATE VIRTUAL TABLE message_term USING fts5vocab(message_index, 'row')",
        ),
    ),
    "postgresql": _Statements(
        create=f"CREATE TABLE {BUILD} (number bigint CONSTRAINT {BUILD}_pkey PRIMARY KEY, tokens tsvector NOT NULL)"
        " WITH (toast_tuple_target = 128)",
        entries=f"SELECT number AS id FROM {BUILD}",  # noqa: S608, a name of ours
        complete=(f"CREATE INDEX IF NOT EXISTS ix_{BUILD} ON {BUILD} USING gin (tokens)", f"ANALYZE {BUILD}"),
        lock=("LOCK TABLE message_index IN ACCESS EXCLUSIVE MODE",),
        exchange=(
            "DROP TABLE message_index",
            f"ALTER TABLE {BUILD} RENAME TO message_index",
            f"ALTER INDEX {BUILD}_pkey RENAME TO message_index_pkey",
            f"ALTER INDEX ix_{BUILD} RENAME TO ix_message_index_tokens",
        ),
    ),
}


async def reindex(database: Database, on_progress: Progress, *, everything: bool = False) -> int:
    """Rebuild the index if some messages were indexed by another analyzer version, or anyway with `everything`.

    Returns how many messages were analysed in this run; StorageError if the registry cannot be written.
    """
    total = await database.write(lambda tx: _begin(tx, everything))
    if total is None:
        return 0
    done = analysed = await database.read(_count_built)
    while batch := await database.write(_next_batch):
        done += batch
        on_progress(min(done, total), total)
    await database.write(lambda tx: _run(tx, _STATEMENTS[tx.dialect.name].complete))
    await database.write(_replace_index)
    return done - analysed


def reindex_at_once(tx: WriteTransaction) -> None:
    """Rebuild the whole index in one transaction, after all messages were replaced in it."""
    _run(tx, [f"DROP TABLE {name}" for name in _builds(tx)])
    _begin(tx, everything=True)
    while _next_batch(tx):
        pass
    _run(tx, _STATEMENTS[tx.dialect.name].complete)
    _replace_index(tx)


def _builds(tx: WriteTransaction) -> list[str]:
    names = inspect(tx).get_table_names()
    return [name for name in names if name.startswith("message_index_v") and name.endswith("_build")]


def _begin(tx: WriteTransaction, everything: bool) -> int | None:
    """Create the new table, or continue it. Returns the number of messages; None if there is nothing to do."""
    builds = _builds(tx)
    _run(tx, [f"DROP TABLE {name}" for name in builds if name != BUILD])
    if BUILD not in builds:
        undeleted = conversation.c.deleted.is_(False)
        is_old = select(conversation.c.number).where(undeleted, conversation.c.analyzer_version != ANALYZER_VERSION)
        if not everything and tx.execute(is_old.limit(1)).first() is None:
            return None
        _run(tx, [_STATEMENTS[tx.dialect.name].create])
    return tx.execute(
        select(func.count()).select_from(conversation).where(conversation.c.deleted.is_(False))
    ).scalar_one()


def _count_built(tx: ReadTransaction) -> int:
    entries = _STATEMENTS[tx.dialect.name].entries
    return int(tx.execute(text(f"SELECT count(*) FROM ({entries}) AS built")).scalar_one())  # noqa: S608


def _next_batch(tx: WriteTransaction) -> int:
    entries = _STATEMENTS[tx.dialect.name].entries
    last = tx.execute(text(f"SELECT coalesce(max(id), 0) FROM ({entries}) AS built")).scalar_one()  # noqa: S608
    there = conversation.c.number > last, conversation.c.deleted.is_(False)
    rows = tx.execute(select(conversation).where(*there).order_by(conversation.c.number).limit(BATCH)).all()
    _add(tx, rows)
    return len(rows)


def _add(tx: WriteTransaction, rows: Sequence[Any]) -> None:
    found = [searched_tokens(row._asdict()) for row in rows]
    index_of(tx).add(tx, [message_entry(row._asdict(), tokens) for row, tokens in zip(rows, found, strict=True)], BUILD)
    changed = [
        {"number": row.number, "length": len(tokens), "analyzer_version": ANALYZER_VERSION}
        for row, tokens in zip(rows, found, strict=True)
        if (row.length, row.analyzer_version) != (len(tokens), ANALYZER_VERSION)
    ]
    update_rows(tx, conversation, changed)


def _replace_index(tx: WriteTransaction) -> None:
    """Add titles and the messages that changed meanwhile, then replace the old index by the new one."""
    statements = _STATEMENTS[tx.dialect.name]
    _run(tx, statements.lock)
    built = set(tx.execute(text(statements.entries)).scalars())
    undeleted = set(tx.execute(select(conversation.c.number).where(conversation.c.deleted.is_(False))).scalars())
    _add(tx, by_numbers(tx, sorted(undeleted - built)))
    # A message deleted for good has no text, so its entry cannot be removed; no search returns it.
    rows = tx.execute(select(conversation).where(is_one_of(conversation.c.number, built - undeleted))).all()
    entries = [message_entry(row._asdict(), searched_tokens(row._asdict())) for row in rows]
    index_of(tx).remove(tx, entries, BUILD)
    # Softly deleted channels keep their titles, because they can be restored.
    titles = title_entries(tx.execute(select(channel)))
    index_of(tx).add(tx, [entry for entry in titles if entry.number not in built], BUILD)
    _run(tx, statements.exchange)


def _run(tx: WriteTransaction, statements: Sequence[str]) -> None:
    for statement in statements:
        tx.execute(text(statement))
