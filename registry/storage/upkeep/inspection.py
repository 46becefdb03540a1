"""Inspect a registry's database for `ctxr doctor`, read-only, and check its integrity: the database's own check,
message digests, counts, and the index.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, Select, TextClause, func, inspect, select, text

from registry.domain import Role, digest_of
from registry.errors import InvalidRequest, StorageError
from registry.storage.client_stores import list_stores
from registry.storage.connections import open_engine
from registry.storage.conversations.channels import title_entry
from registry.storage.conversations.images import count_images
from registry.storage.database import Database, ReadTransaction, storage_errors
from registry.storage.index.message_index import Entry, message_entry, searched_tokens
from registry.storage.migrate import current_revision
from registry.storage.migrations import HEAD
from registry.storage.tables import EMBEDDABLE, channel, conversation, embedding_model, message_vector
from registry.text.analysis.analyzer import ANALYZER_VERSION


@dataclass(frozen=True, slots=True)
class Inspection:
    """The state of a database. `revision` None: there are no tables yet; then the counts are 0.

    `embedded`: by model, the number of messages with vectors, and the bytes of these. `stores`: as `list_stores`.
    `images`: the number of images, and their bytes.
    """

    server: str
    revision: str | None = None
    channels: int = 0
    messages: int = 0
    embeddable: int = 0
    embedded: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    stores: Sequence[Mapping[str, Any]] = ()
    images: tuple[int, int] = (0, 0)


def inspect_database(url: str) -> Inspection:
    """Inspect the database at `url` without creating or migrating it; StorageError if it cannot be reached."""
    if _is_file_missing(url):
        return Inspection(f"SQLite {sqlite3.sqlite_version}")
    with storage_errors("open"), open_engine(url) as engine, engine.connect() as connection:
        return _inspect(connection)


def _is_file_missing(url: str) -> bool:
    file = url.removeprefix("sqlite:///")
    return file != url and not Path(file).exists()


def replication_lag(url: str, read_url: str) -> int:
    """Return how many bytes of WAL a replica has not replayed; StorageError if a database cannot be reached."""
    setting = "CTXR_DATABASE_READ_URL"
    with storage_errors("open"), open_engine(read_url, setting) as copy, copy.connect() as connection:
        replayed = connection.exec_driver_sql("SELECT pg_last_wal_replay_lsn()::text").scalar_one()
    if replayed is None:
        raise InvalidRequest("That database is not a replica.", f"{setting}: allowed: a replica of CTXR_DATABASE_URL")
    with storage_errors("open"), open_engine(url) as engine, engine.connect() as connection:
        missing = "SELECT greatest(0, pg_current_wal_lsn() - %s::pg_lsn)"
        return int(connection.exec_driver_sql(missing, (replayed,)).scalar_one())


def _inspect(connection: Connection) -> Inspection:
    names = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
    version = ".".join(map(str, connection.dialect.server_version_info or ()))
    server = f"{names[connection.dialect.name]} {version}"
    revision = current_revision(connection)
    if revision is None or revision > HEAD:
        return Inspection(server, revision)
    channels, messages = (
        connection.execute(select(func.count()).where(table.c.deleted.is_(False))).scalar_one()
        for table in (channel, conversation)
    )
    if revision < HEAD:
        return Inspection(server, revision, channels, messages)
    embeddable = connection.execute(select(func.count()).select_from(conversation).where(*EMBEDDABLE)).scalar_one()
    tx = ReadTransaction(connection)
    found = embeddable, _embedded(connection), list_stores(tx), count_images(tx)
    return Inspection(server, revision, channels, messages, *found)


def _embedded(connection: Connection) -> dict[str, tuple[int, int]]:
    size = func.coalesce(func.sum(func.length(message_vector.c.vector)), 0)
    query = select(embedding_model.c.name, func.count(message_vector.c.number), size)
    query = query.outerjoin(message_vector, message_vector.c.model_number == embedding_model.c.number)
    return {name: (count, total) for name, count, total in connection.execute(query.group_by(embedding_model.c.name))}


def has_fts5() -> bool:
    """Return True if this Python's SQLite has the full-text index that search on SQLite needs."""
    with closing(sqlite3.connect(":memory:")) as connection:
        return ("ENABLE_FTS5",) in connection.execute("PRAGMA compile_options").fetchall()


MAX_EXAMPLES = 5  # examples of each kind of damage
BATCH_ROWS = 100  # rows in memory; a message may be megabytes long
BUCKETS = 2**16  # hash buckets for index terms: 3 MB for any number of terms
_REBUILD = "ctxr db reindex --all rebuilds it"
_CREATE_INSTANCES = "CREATE VIRTUAL TABLE temp.instances USING fts5vocab(main, message_index, instance)"
_ENTRIES = {"sqlite": "(SELECT id AS number FROM message_index_docsize)", "postgresql": "message_index"}
_MISSING = """
    SELECT count(*) FROM conversation AS c
    WHERE NOT c.deleted AND NOT EXISTS (SELECT 1 FROM {entries} AS e WHERE e.number = c.number)"""
_STRAY = """
    SELECT count(*) FROM {entries} AS e
    WHERE e.number > 0 AND NOT EXISTS (SELECT 1 FROM conversation AS c WHERE c.number = e.number AND NOT c.deleted)"""


def damage_of(url: str) -> list[str]:
    """Check the whole registry, read-only; return one line for each kind of damage. Without tables there is none."""
    if _is_file_missing(url):  # opening it would create it
        return []
    with open_engine(url) as engine, engine.connect() as connection:
        return list(_damage(connection)) if inspect(connection).get_table_names() else []


async def is_sound(database: Database) -> bool:
    """Run SQLite's quick check, at a start after a crash; a server checks itself."""
    if not database.is_embedded:
        return True
    try:
        return await database.read(lambda tx: tx.execute(text("PRAGMA quick_check(1)")).scalar()) == "ok"
    except StorageError:
        return False


def log_was_left(file: Path) -> bool:
    """Return True if a process has the SQLite registry open, or was killed: otherwise the WAL does not exist."""
    log = Path(f"{file}-wal")
    return log.exists() and log.stat().st_size > 0


def _damage(connection: Connection) -> Iterator[str]:
    checks = (_structure, _messages, _counts, _index)
    for check in checks if connection.dialect.name == "sqlite" else checks[1:]:
        try:
            with storage_errors("read"):
                yield from check(connection)
        except StorageError as exc:
            yield f"{check.__name__.strip('_')}: {exc.details}"


def _structure(connection: Connection) -> Iterator[str]:
    found = connection.execute(text(f"PRAGMA integrity_check({MAX_EXAMPLES})")).scalars().all()
    yield from (f"structure: {line}" for line in found if line != "ok")
    orphans = connection.execute(text("PRAGMA foreign_key_check")).all()
    if orphans:
        yield f"structure: {len(orphans)} rows refer to rows that are missing"


def _messages(connection: Connection) -> Iterator[str]:
    query = select(conversation.c.id, conversation.c.role, conversation.c.text, conversation.c.digest)
    query = query.where(conversation.c.forgotten.is_(False))  # they keep the digest, but no text
    damaged = (row.id for row in _rows(connection, query) if not _is_as_stored(row.role, row.text, row.digest))
    wrong, shown = _count_and_examples(damaged)
    if wrong:
        yield f"messages: {wrong} differ from their digests: {shown}"
    details = _rows(connection, select(conversation.c.payload, conversation.c.timestamp))
    unreadable = sum(not isinstance(row.payload, dict) for row in details)
    if unreadable:
        yield f"messages: the details of {unreadable} cannot be read"


def _is_as_stored(role: object, message_text: object, digest: bytes) -> bool:
    is_known = isinstance(message_text, str) and role in set(Role)
    return is_known and digest_of(Role(str(role)), str(message_text)) == bytes(digest)


def _counts(connection: Connection) -> Iterator[str]:
    stored_count = (
        select(func.count())
        .where(conversation.c.channel_number == channel.c.number, conversation.c.deleted.is_(False))
        .scalar_subquery()
    )
    query = select(channel.c.name).where(channel.c.message_count != stored_count)
    wrong, shown = _count_and_examples(row.name for row in _rows(connection, query))
    if wrong:
        yield f"counts: {wrong} channels have a wrong number of messages: {shown}"


def _index(connection: Connection) -> Iterator[str]:
    """Check that index entries and messages correspond; on SQLite also the postings of each term."""
    entries = _ENTRIES[connection.dialect.name]
    missing = connection.scalar(text(_MISSING.format(entries=entries)))
    stray = connection.scalar(text(_STRAY.format(entries=entries)))
    if missing or stray:
        yield f"index: {missing} messages are missing, {stray} entries have no message; {_REBUILD}"
    undeleted = select(conversation).where(conversation.c.deleted.is_(False))
    is_old = connection.scalar(select(undeleted.where(conversation.c.analyzer_version != ANALYZER_VERSION).exists()))
    if connection.dialect.name != "sqlite" or is_old:
        return
    sums = [0] * BUCKETS
    for row in _rows(connection, undeleted):
        values = row._asdict()
        _add(sums, message_entry(values, searched_tokens(values)))
    for row in _rows(connection, select(channel).where(text(f"-channel.number IN {entries}"))):
        _add(sums, title_entry(row, {}))
    connection.execute(text(_CREATE_INSTANCES))
    for row in _rows(connection, text("SELECT term, doc FROM temp.instances")):
        sums[hash(row.term) % BUCKETS] -= hash((row.term, row.doc))
    wrong = BUCKETS - sums.count(0)
    if wrong:
        yield f"index: {wrong} words have wrong entries; {_REBUILD}"


def _add(sums: list[int], entry: Entry) -> None:
    """Add an entry to the sums of its terms. Subtracting the stored postings must result in 0."""
    for word in set(" ".join(entry.tokens).split(" ")) - {""}:
        sums[hash(word) % BUCKETS] += hash((word, entry.number))


def _rows(connection: Connection, query: Select[Any] | TextClause) -> Iterator[Row[Any]]:
    """Yield the rows of a large table in batches."""
    yield from connection.execute(query, execution_options={"yield_per": BATCH_ROWS})


def _count_and_examples(names: Iterable[str]) -> tuple[int, str]:
    rest = iter(names)
    shown = list(islice(rest, MAX_EXAMPLES))
    return len(shown) + sum(1 for _ in rest), ", ".join(shown)
