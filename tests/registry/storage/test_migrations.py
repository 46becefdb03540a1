"""Tables and their history: from nothing, from the first release, at many starts at once, never from the future."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Inspector, insert, inspect, select, text, update

import registry.storage.migrations
from registry.errors import StorageError
from registry.monitor.statistics import execution_statistics
from registry.registry import Registry
from registry.search.retrieval import find_messages
from registry.search.scope import Scope
from registry.storage import tables
from registry.storage.connections import create_database_engine
from registry.storage.conversations.messages import restore_channel
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.index.engines import index_of
from registry.storage.index.index_entries import Entry, message_entry
from registry.storage.migrate import current_revision, migrate
from registry.storage.migrations import HEAD
from registry.storage.tables import metadata
from registry.text.analysis.analyzer import analyze

SAID_AT = datetime(2026, 3, 5, 10, 0, 0, 123000, tzinfo=UTC)
KEPT, TAKEN_OUT, GONE_WITH_ITS_CHANNEL = 1, 2, 3
INDEX_TABLES = {
    "message_index",
    "message_term",
    *(f"message_index_{part}" for part in ("config", "data", "docsize", "idx")),
    *(f"message_index_{part}" for part in ("state", "token", "block", "noted")),
}
"""Made by statements of their own: the index is no table of the ORM's, and SQLite makes it of several."""


def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(Path(registry.storage.migrations.__file__).parent))
    return ScriptDirectory.from_config(config)


def revisions() -> list[str]:
    """All of them, the first first."""
    return [script.revision for script in scripts().walk_revisions()][::-1]


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    engine = create_database_engine(url)
    with engine.execution_options(write=True).begin() as connection:
        yield connection
    engine.dispose()


def names_of(connection: Connection) -> list[str]:
    return sorted(set(inspect(connection).get_table_names()) - INDEX_TABLES - {"alembic_version"})


def contents(connection: Connection) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table, and what the index holds."""
    found = {
        name: [dict(row) for row in connection.execute(text(f"SELECT * FROM {name} ORDER BY 1")).mappings()]  # noqa: S608
        for name in names_of(connection)
    }
    tx = ReadTransaction(connection)
    return {**found, "message_index": [{"fibonacci": index_of(tx).holders(tx, [analyze("fibonacci")[:1]])}]}


def columns_of(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows as they are now, with the columns they had."""
    return [{name: new[name] for name in old} for old, new in zip(before, after, strict=True)]


def described(connection: Connection) -> dict[str, Any]:
    """Each table with its columns, keys and indexes, as the database has them."""
    found = inspect(connection)
    made_of = {name: " ".join(statement.split()) for name, statement in statements(connection)}
    return {
        name: {**described_table(found, name), **storage_of(made_of.get(name, ""))} for name in names_of(connection)
    }


def described_table(found: Inspector, name: str) -> dict[str, Any]:
    return {
        "columns": {
            column.pop("name"): {**column, "type": str(column["type"])} for column in map(dict, found.get_columns(name))
        },
        "primary key": found.get_pk_constraint(name)["constrained_columns"],
        "foreign keys": sorted(map(str, found.get_foreign_keys(name))),
        "unique": sorted(map(str, found.get_unique_constraints(name))),
        "indexes": sorted(map(str, found.get_indexes(name))),
    }


def statements(connection: Connection) -> list[tuple[str, str]]:
    """How SQLite's tables were made: the inspector does not know all of it."""
    if connection.dialect.name != "sqlite":
        return []
    return [
        (row[0], row[1]) for row in connection.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
    ]


def storage_of(statement: str) -> dict[str, bool]:
    return {words: words in statement for words in ("AUTOINCREMENT", "WITHOUT ROWID")}


# -- a registry of the first release: one message, one taken out of its channel, one deleted with its channel


def fill_first_release(connection: Connection) -> None:
    for number, name in enumerate(("kept", "deleted"), 1):
        connection.execute(
            insert(tables.channel).values(number=number, **channel_values(name, deleted=name == "deleted"))
        )
    add_message(connection, KEPT, 1, "Fibonacci in Python", deleted=False)
    add_message(connection, TAKEN_OUT, 1, "Taken out by its user", deleted=True)
    add_message(connection, GONE_WITH_ITS_CHANNEL, 2, "Went with its channel", deleted=True)
    kept = connection.execute(select(*FIRST_COLUMNS).where(tables.conversation.c.number == KEPT)).mappings().one()
    tx = WriteTransaction(ReadTransaction(connection))
    index_of(tx).add(tx, [message_entry(dict(kept), analyze(kept["text"]))])
    connection.execute(insert(tables.tag).values(channel_number=1, name="maths"))
    connection.execute(insert(tables.execution).values(**EXECUTION))
    connection.execute(insert(tables.extract_result).values(**RESULT))
    connection.execute(insert(tables.store).values(**STORE, synced_at=SAID_AT, stamp="s", seen=1, parsed=1, skipped=[]))
    connection.execute(insert(tables.store_session).values(**STORE, key="k", fingerprint="f", channel_number=1))
    if connection.dialect.name == "postgresql":  # the numbers were given by hand
        for table in ("channel", "conversation"):
            connection.execute(text(f"SELECT setval(pg_get_serial_sequence('{table}', 'number'), 10)"))


FIRST_COLUMNS = [column for column in tables.conversation.c if column.name not in ("with_channel", "forgotten")]
STORE = {"source": "cursor", "path": "/a/store"}
RESULT = {
    "id": "r1", "record_type": "extract_result", "channel": "kept", "result_type": "messages", "items": ["m1"],
    "metadata": {"a": 1}, "timestamp": SAID_AT, "deleted": False,
}  # fmt: skip
EXECUTION = {
    "id": "e1", "operation": "extract", "source": "cursor", "channel": "kept", "status": "ok",
    "started_at": SAID_AT, "finished_at": SAID_AT, "duration_ms": 1234.5, "request": {"query": {"text": "한글"}},
    "result": None, "steps": [{"node": "plan"}],
}  # fmt: skip


def channel_values(name: str, *, deleted: bool) -> dict[str, Any]:
    counts = {"message_count": 0 if deleted else 1, "seq_count": 2, "token_count": 3}
    times = {"created_at": SAID_AT, "updated_at": SAID_AT}
    return {"name": name, "source": "cursor", "meta": {"한": 1}, "deleted": deleted, **counts, **times}


def add_message(connection: Connection, number: int, channel_number: int, said: str, *, deleted: bool) -> None:
    values = {
        "number": number, "id": f"m{number}", "record_type": "message", "source": "cursor",
        "channel": ("kept", "deleted")[channel_number - 1], "payload": {"role": "user", "text": said},
        "timestamp": SAID_AT, "actor": "user", "deleted": deleted, "channel_number": channel_number, "seq": number,
        "turn": number, "place": float(number), "role": "user", "text": said, "digest": bytes(16),
        "received_at": SAID_AT, "length": 3, "analyzer_version": 1,
    }  # fmt: skip
    connection.execute(insert(tables.conversation).values(**values))


# -- what each step makes of it


def durations_are_rounded(connection: Connection) -> None:
    assert connection.execute(text("SELECT duration_ms, duration_rounded FROM execution")).all() == [(1234.5, 1200.0)]


def its_scope_is_not_taken_for_indexed(connection: Connection) -> None:
    tx = ReadTransaction(connection)
    assert not index_of(tx).count(tx, ["zzscoped"])


def vectors_are_kept_with_their_messages(connection: Connection) -> None:
    model = {"name": "toy", "dimensions": 1, "calibration": 1, "background": 0.0, "spread": 1.0}
    connection.execute(insert(tables.embedding_model).values(number=1, **model))
    vector = {"model_number": 1, "digest": bytes(16), "vector": b"1"}
    connection.execute(insert(tables.message_vector).values(message_number=TAKEN_OUT, **vector))
    connection.execute(insert(tables.message_vector).values(message_number=KEPT, **vector))
    connection.execute(text(f"DELETE FROM conversation WHERE number = {TAKEN_OUT}"))  # noqa: S608
    assert [row[0] for row in connection.execute(text("SELECT message_number FROM message_vector"))] == [KEPT]
    add_message(connection, TAKEN_OUT, 1, "Taken out by its user", deleted=True)


def what_went_with_its_channel_is_known(connection: Connection) -> None:
    went = connection.execute(text("SELECT number FROM conversation WHERE with_channel")).scalars().all()
    assert went == [GONE_WITH_ITS_CHANNEL]
    assert connection.execute(text("SELECT count(*) FROM execution_rollup")).scalar() == 0


def aliases_go_with_what_they_name(connection: Connection) -> None:
    connection.execute(insert(tables.channel_alias).values(name="other", channel_number=2))
    connection.execute(insert(tables.channel_link).values(named=1, session=2))
    connection.execute(insert(tables.message_alias).values(id="other", number=GONE_WITH_ITS_CHANNEL))
    connection.execute(text("DELETE FROM channel WHERE number = 2"))
    for name in ("channel_alias", "channel_link", "message_alias"):
        assert connection.execute(text(f"SELECT count(*) FROM {name}")).scalar() == 0  # noqa: S608


def nothing_is_forgotten_yet(connection: Connection) -> None:
    assert connection.execute(text("SELECT count(*) FROM conversation WHERE forgotten")).scalar() == 0
    for name in ("forgotten", "registry_key"):
        assert connection.execute(text(f"SELECT count(*) FROM {name}")).scalar() == 0  # noqa: S608


def no_summary_is_made_up(connection: Connection) -> None:
    assert set(connection.execute(text("SELECT made_summary FROM channel")).scalars()) == {None}


def cases_go_with_their_messages(connection: Connection) -> None:
    case = {"request": {"operation": "search"}, "created_at": SAID_AT}
    for number in (KEPT, TAKEN_OUT):
        connection.execute(insert(tables.expectation).values(id=f"case_{number}", message_number=number, **case))
    connection.execute(text(f"DELETE FROM conversation WHERE number = {TAKEN_OUT}"))  # noqa: S608
    assert connection.execute(text("SELECT id FROM expectation")).scalars().all() == [f"case_{KEPT}"]
    add_message(connection, TAKEN_OUT, 1, "Taken out by its user", deleted=True)


def nobody_has_shown_a_token_yet(connection: Connection) -> None:
    assert connection.execute(text("SELECT count(*) FROM execution WHERE token IS NULL")).scalar() == 1
    assert connection.execute(text("SELECT count(*) FROM token")).scalar() == 0


def what_is_known_of_a_registry_elsewhere_goes_with_its_message(connection: Connection) -> None:
    for number in (KEPT, TAKEN_OUT):
        connection.execute(insert(tables.remote_message).values(url="https://a", number=number, id=f"conv_{number}"))
    connection.execute(text(f"DELETE FROM conversation WHERE number = {TAKEN_OUT}"))  # noqa: S608
    assert connection.execute(text("SELECT number FROM remote_message")).scalars().all() == [KEPT]
    add_message(connection, TAKEN_OUT, 1, "Taken out by its user", deleted=True)


def nothing_is_pinned_yet(connection: Connection) -> None:
    for table in (tables.pin, tables.saved_view, tables.rating):
        assert connection.execute(select(table)).first() is None


def nothing_was_recalled_yet(connection: Connection) -> None:
    recalled = "SELECT count(*) FROM channel WHERE access_count > 0 OR last_accessed IS NOT NULL"
    assert connection.execute(text(recalled)).scalar() == 0


def what_channels_are_called_is_told_elsewhere(connection: Connection) -> None:
    named = connection.execute(select(tables.channel.c.nickname).where(tables.channel.c.nickname.is_not(None)))
    tagged = connection.execute(select(tables.tag.c.name))
    wanted = {("nickname", name) for name in named.scalars()} | {(f"tag:{name}", True) for name in tagged.scalars()}
    assert set(connection.execute(select(tables.edit.c.field, tables.edit.c.value))) == wanted
    assert wanted


def what_was_asked_stands_beside_the_record(connection: Connection) -> None:
    assert connection.execute(text("SELECT asked FROM execution")).scalars().all() == ["한글"]


def common_words_are_sampled(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        target = (
            "SELECT attstattarget FROM pg_attribute WHERE attrelid = 'message_index'::regclass AND attname = 'tokens'"
        )
        assert connection.execute(text(target)).scalar() == 500


def nobody_was_told_of_forgetting_yet(connection: Connection) -> None:
    assert connection.execute(text("SELECT count(*) FROM edit_token")).scalar() == 0


def what_is_indexed_from_here_on_is_noted(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        noted = text("SELECT number FROM message_index_noted")
        assert connection.execute(noted).all() == []
        tx = WriteTransaction(ReadTransaction(connection))
        index_of(tx).add(tx, [Entry(TAKEN_OUT, ["word"])])
        index_of(tx).remove(tx, [Entry(TAKEN_OUT, ["word"])])
        assert connection.execute(noted).scalars().all() == [TAKEN_OUT, TAKEN_OUT]


def what_is_stored_from_here_on_is_told(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(update(tables.channel).values(seq_count=tables.channel.c.seq_count))
        connection.exec_driver_sql("SET CONSTRAINTS ALL IMMEDIATE")  # what else is done at the end
        telling = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        assert connection.exec_driver_sql(telling).scalar() == 1


def what_names_a_message_has_no_channel_yet(connection: Connection) -> None:
    for table in ("message_alias", "remote_message", "message_vector"):
        assert set(connection.execute(text(f"SELECT channel_number FROM {table}")).scalars()) <= {None}  # noqa: S608


def places_are_read_from_their_index_alone(connection: Connection) -> None:
    indexes = {one["name"]: one["column_names"] for one in inspect(connection).get_indexes("conversation")}
    assert "ix_conversation_order" not in indexes
    assert {"channel_number", "seq", "role", "deleted"} <= set(indexes["ix_conversation_places"])
    if connection.dialect.name == "sqlite":
        spoken = "channel_number = 1 AND role IN ('user', 'assistant') AND deleted IS 0 ORDER BY timestamp, number"
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN SELECT seq FROM conversation WHERE {spoken}")  # noqa: S608
        assert "COVERING INDEX ix_conversation_places" in str(plan.all())


CHECKS: dict[str, Callable[[Connection], None]] = {
    "0002": durations_are_rounded,
    "0003": its_scope_is_not_taken_for_indexed,
    "0004": vectors_are_kept_with_their_messages,
    "0005": what_went_with_its_channel_is_known,
    "0006": aliases_go_with_what_they_name,
    "0007": nothing_is_forgotten_yet,
    "0008": no_summary_is_made_up,
    "0009": cases_go_with_their_messages,
    "0010": nobody_has_shown_a_token_yet,
    "0011": what_is_known_of_a_registry_elsewhere_goes_with_its_message,
    "0012": nothing_is_pinned_yet,
    "0013": nothing_was_recalled_yet,
    "0014": what_channels_are_called_is_told_elsewhere,
    "0015": what_was_asked_stands_beside_the_record,
    "0016": common_words_are_sampled,
    "0017": nobody_was_told_of_forgetting_yet,
    "0018": what_is_indexed_from_here_on_is_noted,
    "0019": what_is_stored_from_here_on_is_told,
    "0020": what_names_a_message_has_no_channel_yet,
    "0021": places_are_read_from_their_index_alone,
}


def test_the_known_head_is_the_newest_migration() -> None:
    assert scripts().get_current_head() == HEAD


def test_migrations_make_the_tables_that_the_code_queries(empty_database_url: str) -> None:
    migrate(empty_database_url)
    with connected(empty_database_url) as connection:
        made = described(connection)
        metadata.drop_all(connection)
        metadata.create_all(connection)
        assert made == described(connection)


def test_a_registry_of_the_first_release_keeps_all_it_holds_at_every_step(empty_database_url: str) -> None:
    first, *later = revisions()
    assert set(later) == set(CHECKS), "each migration says what it does to a registry that holds something"
    migrate(empty_database_url, first)
    with connected(empty_database_url) as connection:
        fill_first_release(connection)
        before = contents(connection)
    for revision in later:
        migrate(empty_database_url, revision)
        with connected(empty_database_url) as connection:
            after = contents(connection)
            assert {name: columns_of(before[name], after[name]) for name in before} == before
            CHECKS[revision](connection)
            before = contents(connection)


@pytest.mark.anyio
async def test_what_the_first_release_stored_is_read_found_counted_and_restored(empty_database_url: str) -> None:
    migrate(empty_database_url, revisions()[0])
    with connected(empty_database_url) as connection:
        fill_first_release(connection)
    registry = Registry(empty_database_url)
    assert [message["text"] for message in await registry.get_conversations("kept")] == ["Fibonacci in Python"]
    found = await registry.read(lambda tx: find_messages(tx, "fibonacci", Scope(sources=("cursor",))))
    assert [one.candidate.number for one in found.ranked] == [KEPT]
    figures = await registry.read(lambda tx: execution_statistics(tx, from_=None, to=None, bucket_s=3600))
    assert (figures["total"]["count"], figures["total"]["p50_ms"]) == (1, 1234.5)
    await registry.write(lambda tx: restore_channel(tx, "deleted"))
    assert [message["text"] for message in await registry.get_conversations("deleted")] == ["Went with its channel"]
    registry.close()


def test_a_new_registry_knows_the_scope_of_all_its_messages(database_url: str) -> None:
    with connected(database_url) as connection:
        assert index_of(ReadTransaction(connection)).is_scoped(ReadTransaction(connection))


def test_processes_that_start_at_once_make_the_tables_once(empty_database_url: str) -> None:
    with ThreadPoolExecutor(6) as starts:
        list(starts.map(migrate, [empty_database_url] * 6))
    engine = create_database_engine(empty_database_url)
    with engine.connect() as connection:
        assert current_revision(connection) == HEAD
    engine.dispose()


def test_all_that_open_an_empty_registry_at_once_get_in(tmp_path: Path) -> None:
    def opened(number: int) -> None:
        engine = create_database_engine(f"sqlite:///{tmp_path / str(number)}.db")
        with engine.connect():
            pass
        engine.dispose()

    with ThreadPoolExecutor(6) as starts:
        list(starts.map(opened, [place // 6 for place in range(150)]))


def test_a_database_of_a_newer_release_is_refused_and_left_alone(database_url: str) -> None:
    engine = create_database_engine(database_url)
    with engine.execution_options(write=True).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StorageError, match="newer version"):
        migrate(database_url)
    with engine.connect() as connection:
        assert current_revision(connection) == "9999"
    engine.dispose()
