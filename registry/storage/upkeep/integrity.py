"""Check a registry: the database's own check, each message's digest, counts, and the index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, func, select, text

from registry.domain import Role, digest_of
from registry.errors import StorageError
from registry.storage.connections import create_database_engine
from registry.storage.conversations.channels import title_entry
from registry.storage.database import Database, storage_errors
from registry.storage.index.index_entries import Entry, message_entry, searched_tokens
from registry.storage.tables import channel, conversation
from registry.text.analysis.analyzer import ANALYZER_VERSION

SHOWN = 5  # examples of each kind of damage
Words = defaultdict[str, set[int]]
_REBUILD = "ctxr db reindex --all makes it anew"
_INSTANCES = "CREATE VIRTUAL TABLE temp.standing USING fts5vocab(main, message_index, instance)"
_WHERE_WORDS_STAND = "SELECT term, count(*), sum(doc) FROM temp.standing GROUP BY term"
_ENTRIES = {"sqlite": "SELECT id FROM message_index_docsize", "postgresql": "SELECT number FROM message_index"}


def damage_of(url: str) -> list[str]:
    """Check the whole registry, read-only; return a line for each kind of damage."""
    engine = create_database_engine(url)
    try:
        with engine.connect() as connection:
            return list(_damage(connection))
    finally:
        engine.dispose()


async def is_sound(database: Database) -> bool:
    """Run SQLite's quick check, at a start after a crash; a server checks itself."""
    if not database.is_embedded:
        return True
    try:
        return await database.read(lambda tx: tx.execute(text("PRAGMA quick_check(1)")).scalar()) == "ok"
    except StorageError:
        return False


def log_was_left(file: Path) -> bool:
    """Return True if a process has the SQLite registry open, or was killed: otherwise its log is gone."""
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
    found = connection.execute(text(f"PRAGMA integrity_check({SHOWN})")).scalars().all()
    yield from (f"structure: {line}" for line in found if line != "ok")
    loose = connection.execute(text("PRAGMA foreign_key_check")).all()
    if loose:
        yield f"structure: {len(loose)} rows belong to rows that are gone"


def _messages(connection: Connection) -> Iterator[str]:
    query = select(conversation.c.id, conversation.c.role, conversation.c.text, conversation.c.digest)
    query = query.where(conversation.c.forgotten.is_(False))  # of those the digest stays, and not the words
    wrong = [row.id for row in connection.execute(query) if not _is_as_stored(row.role, row.text, row.digest)]
    if wrong:
        yield f"messages: {len(wrong)} are not what was stored: {', '.join(wrong[:SHOWN])}"
    unreadable = 0
    for row in connection.execute(select(conversation.c.payload, conversation.c.timestamp)):
        unreadable += not isinstance(row.payload, dict)
    if unreadable:
        yield f"messages: of {unreadable} the details cannot be read"


def _is_as_stored(role: object, said: object, digest: bytes) -> bool:
    is_known = isinstance(said, str) and role in set(Role)
    return is_known and digest_of(Role(str(role)), str(said)) == bytes(digest)


def _counts(connection: Connection) -> Iterator[str]:
    alive = (
        select(func.count())
        .where(conversation.c.channel_number == channel.c.number, conversation.c.deleted.is_(False))
        .scalar_subquery()
    )
    wrong = connection.execute(select(channel.c.name).where(channel.c.message_count != alive)).scalars().all()
    if wrong:
        yield f"counts: {len(wrong)} channels do not know how many messages they have: {', '.join(wrong[:SHOWN])}"


def _index(connection: Connection) -> Iterator[str]:
    """Check that each entry belongs to a message and each message has its entry; on SQLite also each word's count."""
    held = set(connection.execute(text(_ENTRIES[connection.dialect.name])).scalars())
    words: Words = defaultdict(set)
    numbers = set()
    is_current = True
    for row in connection.execute(select(conversation).where(conversation.c.deleted.is_(False))):
        numbers.add(row.number)
        is_current &= row.analyzer_version == ANALYZER_VERSION
        if is_current:
            _add(words, message_entry(row._asdict(), searched_tokens(row._asdict())))
    missing, stray = numbers - held, {number for number in held if number > 0} - numbers
    if missing or stray:
        yield f"index: {len(missing)} messages are not in it, {len(stray)} entries are of none; {_REBUILD}"
    if connection.dialect.name != "sqlite" or not is_current:
        return
    for row in connection.execute(select(channel)):
        if -row.number in held:
            _add(words, title_entry(row, {}))
    connection.execute(text(_INSTANCES))
    counted = {row[0]: (row[1], row[2]) for row in connection.execute(text(_WHERE_WORDS_STAND))}
    expected = {word: (len(numbers), sum(numbers)) for word, numbers in words.items()}
    wrong = {word for word in counted.keys() | expected.keys() if counted.get(word) != expected.get(word)}
    if wrong:
        yield f"index: {len(wrong)} words are not found where they stand; {_REBUILD}"


def _add(words: Words, entry: Entry) -> None:
    for token in entry.tokens:
        words[token].add(entry.number)
