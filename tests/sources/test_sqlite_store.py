"""A client's database is read in its current state and never changed."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Timer

import pytest

import sources.kit.sqlite_store
from registry.errors import StorageError
from sources.kit.sqlite_store import ClientDatabase, DamagedDatabase, stamp
from tests.sources.cursor.cursor_files import crash, writing
from tests.sources.untouched import state_of

KEYS = "SELECT key FROM cursorDiskKV ORDER BY key"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A cleanly closed database in WAL mode with one row."""
    path = tmp_path / "client 100% #1?" / "state.vscdb"
    with writing(path) as connection:
        connection.execute("INSERT INTO cursorDiskKV VALUES ('a', '1')")
    return path


@pytest.fixture
def writer(database: Path) -> Iterator[sqlite3.Connection]:
    """The client's open connection."""
    with closing(sqlite3.connect(database, isolation_level=None, check_same_thread=False)) as connection:
        yield connection


def keys(path: Path) -> list[str]:
    with ClientDatabase(path) as opened:
        return [key for (key,) in opened.rows(KEYS)]


def rollback(path: Path) -> None:
    with writing(path, journal="delete"):
        pass


def leave_wal_without_index(path: Path) -> None:
    crash(path, {"b": "2"})
    path.with_name("state.vscdb-shm").unlink()


def nothing(path: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("prepare", "expected"),
    [
        (nothing, ["a"]),
        (rollback, ["a"]),
        (lambda path: crash(path, {"b": "2"}), ["a", "b"]),
        (leave_wal_without_index, ["a", "b"]),
        (lambda path: path.with_name("state.vscdb-wal").touch(), ["a"]),
    ],
    ids=["closed cleanly", "rollback journal", "killed", "wal without its index", "empty wal"],
)
def test_reading_does_not_change_the_folder(
    prepare: Callable[[Path], None], expected: list[str], database: Path
) -> None:
    prepare(database)
    before = state_of(database.parent)
    assert keys(database) == expected
    assert state_of(database.parent) == before


def test_a_database_in_a_read_only_folder_is_read(database: Path) -> None:
    database.parent.chmod(0o555)
    assert keys(database) == ["a"]
    database.parent.chmod(0o755)


def test_rows_in_the_wal_are_read(database: Path, writer: sqlite3.Connection) -> None:
    writer.execute("PRAGMA wal_autocheckpoint=0")
    writer.execute("INSERT INTO cursorDiskKV VALUES ('b', '2')")
    assert keys(database) == ["a", "b"]


def test_the_client_can_write_and_checkpoint_while_we_read(database: Path, writer: sqlite3.Connection) -> None:
    writer.execute("INSERT INTO cursorDiskKV VALUES ('b', '2')")
    with ClientDatabase(database) as opened:
        assert len(opened.rows(KEYS)) == 2
        writer.execute("INSERT INTO cursorDiskKV VALUES ('c', '3')")
        [(busy, *_)] = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert not busy
        assert len(opened.rows(KEYS)) == 3


def test_a_client_that_opens_the_database_while_we_read_without_locks_is_noticed(database: Path) -> None:
    with ClientDatabase(database) as opened:
        assert len(opened.rows(KEYS)) == 1
        with writing(database) as connection:
            connection.execute("INSERT INTO cursorDiskKV VALUES ('b', '2')")
        assert len(opened.rows(KEYS)) == 2


def test_a_killed_clients_transaction_is_rolled_back_in_a_copy_only(database: Path) -> None:
    rollback(database)
    scratch = database.with_name("scratch")
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size=1")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", ((f"z{n}", "x" * 4000) for n in range(50)))
        scratch.mkdir()
        for name in ("state.vscdb", "state.vscdb-journal"):
            (scratch / name).write_bytes(database.with_name(name).read_bytes())
        connection.execute("ROLLBACK")
    before = state_of(scratch)
    assert keys(scratch / "state.vscdb") == ["a"]
    assert state_of(scratch) == before


def test_reading_waits_for_a_locked_database(
    database: Path, writer: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources.kit.sqlite_store, "WAIT_S", 20.0)
    writer.execute("PRAGMA journal_mode=delete")
    writer.execute("BEGIN EXCLUSIVE")
    release = Timer(0.05, lambda: writer.execute("COMMIT"))
    release.start()
    assert keys(database) == ["a"]
    release.join()


def test_a_database_that_stays_locked_is_reported(database: Path, writer: sqlite3.Connection) -> None:
    writer.execute("PRAGMA journal_mode=delete")
    writer.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StorageError, match="locked by another program"):
        keys(database)


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4000])
def test_a_file_that_is_not_a_database_is_reported(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "state.vscdb").write_bytes(content)
    with pytest.raises(DamagedDatabase):
        keys(tmp_path / "state.vscdb")


def test_an_emptied_file_is_reported_and_its_wal_kept(database: Path) -> None:
    crash(database, {"b": "2"})
    database.write_bytes(b"")
    before = state_of(database.parent)
    with pytest.raises(StorageError, match="empty"):
        keys(database)
    assert state_of(database.parent) == before


def test_a_missing_file_is_reported_and_not_created(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        keys(tmp_path / "state.vscdb")
    assert not list(tmp_path.glob("*.vscdb*"))


def test_reading_waits_while_the_client_restarts_its_wal(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passing = sqlite3.OperationalError("attempt to write a readonly database")
    passing.sqlite_errorcode = sqlite3.SQLITE_READONLY_CANTINIT
    left, connect = [passing, passing], sources.kit.sqlite_store._connect_to

    def connect_in_the_end(path: Path, options: str, wait_s: float) -> sqlite3.Connection:
        assert path == database
        if left:
            raise left.pop()
        return connect(path, options, wait_s)

    monkeypatch.setattr(sources.kit.sqlite_store, "_connect_to", connect_in_the_end)
    monkeypatch.setattr(sources.kit.sqlite_store, "WAIT_S", 60.0)
    assert keys(database) == ["a"]  # opened at the third attempt


def test_a_file_deleted_while_we_read_is_reported(database: Path) -> None:
    with ClientDatabase(database) as opened:
        database.rename(database.with_name("moved"))
        with pytest.raises(StorageError):
            opened.rows(KEYS)


def test_a_database_that_changes_faster_than_it_can_be_copied_is_reported(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_wal_without_index(database)
    monkeypatch.setattr(sources.kit.sqlite_store, "stamp", lambda path: object())
    with pytest.raises(StorageError, match="faster"):
        keys(database)


def test_a_copy_is_read_on_a_windows_drive_in_wsl(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources.kit.sqlite_store, "_is_on_windows_drive_of_wsl", lambda path: True)
    crash(database, {"b": "2"})
    before = state_of(database.parent)
    assert keys(database) == ["a", "b"]
    assert state_of(database.parent) == before


def test_invalid_utf_8_is_read_with_replacement_characters(database: Path) -> None:
    with writing(database) as connection:
        connection.execute("INSERT INTO cursorDiskKV VALUES ('b', CAST(x'68ff69' AS TEXT))")
    with ClientDatabase(database) as opened:
        assert opened.rows("SELECT value FROM cursorDiskKV WHERE key = 'b'") == [("h\ufffdi",)]


def test_the_stamp_changes_with_the_wal(database: Path) -> None:
    before = stamp(database)
    assert stamp(database) == before
    crash(database, {"b": "2"})
    assert stamp(database) != before
