"""Test a registry with flipped bits: damage is noticed, and everything else is saved."""

from __future__ import annotations

import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import Result

from registry.errors import StorageError
from registry.storage.connections import PAGE_BYTES
from registry.storage.upkeep.inspection import damage_of
from tests.cli.conftest import FIBONACCI, Ctxr

SOUND = "structure, messages, counts and index are as they should be"


def output_of(done: Result) -> str:
    return " ".join(done.output.split())


@pytest.fixture
def registry(ctxr: Ctxr, empty_home: Path, cached_files: dict[str, bytes]) -> Path:
    file = empty_home / "ctxr" / "registry.db"
    if not cached_files:
        for number in range(3):
            messages = [{"role": "user", "text": f"Why does the basket lose item {n} of {number}?"} for n in range(20)]
            assert ctxr("log", "-", given={"channel": f"basket {number}", "messages": messages}).exit_code == 0
        assert ctxr("log", "-", given=FIBONACCI).exit_code == 0
        cached_files["baskets"] = file.read_bytes()
    file.write_bytes(cached_files["baskets"])
    return file


def flip_bits(file: Path, place: int, bits: int = 1) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= bits
    file.write_bytes(content)


def execute(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


def test_an_undamaged_registry_passes_the_check_also_after_messages_were_forgotten(ctxr: Ctxr, registry: Path) -> None:
    assert SOUND in output_of(ctxr("doctor", "--deep"))
    assert ctxr("forget", "--matching", "item 7", "--yes").exit_code == 0
    assert SOUND in output_of(ctxr("doctor", "--deep"))


@pytest.mark.parametrize("exists", [False, True], ids=["no-file", "killed-before-its-tables"])
def test_a_registry_without_tables_yet_is_not_damaged(ctxr: Ctxr, empty_home: Path, exists: bool) -> None:
    file = empty_home / "ctxr" / "registry.db"
    file.unlink()
    if exists:
        file.touch()
    done = ctxr("doctor", "--deep")
    assert (done.exit_code, SOUND in output_of(done), file.exists()) == (0, True, exists)


def test_a_changed_letter_in_a_message_is_found(ctxr: Ctxr, registry: Path) -> None:
    flip_bits(registry, registry.read_bytes().index(b"lose item 7 of 1") + 2)
    done = ctxr("doctor", "--deep")
    assert done.exit_code == 1
    assert "messages: 1 differ from their digests: conv_" in output_of(done)
    assert "ctxr db salvage" in output_of(done)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE channel SET message_count = 7 WHERE name = 'basket 1'", "counts: 1 channels"),
        ("DELETE FROM conversation WHERE seq = 3", "index: 0 messages are missing, 3 entries have no message"),
        ("UPDATE conversation SET payload = '[]' WHERE seq = 3", "the details of 3 cannot be read"),
        ("INSERT INTO message_index (rowid, t) VALUES (5, 'astray')", "index: 1 words have wrong entries"),
    ],
)
def test_inconsistent_rows_are_found(ctxr: Ctxr, registry: Path, statement: str, said: str) -> None:
    execute(registry, statement)
    done = ctxr("doctor", "--deep")
    assert (done.exit_code, said in output_of(done)) == (1, True)


def test_a_check_needs_no_more_memory_for_a_larger_registry(ctxr: Ctxr, registry: Path) -> None:
    def peak() -> int:
        tracemalloc.start()
        assert damage_of(f"sqlite:///{registry}") == []
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    def log(first: int, last: int) -> None:
        texts = (" ".join(f"item{(n * 7 + word) % 500}" for word in range(20)) for n in range(first, last))
        messages = [{"role": "user", "text": text} for text in texts]
        assert ctxr("log", "-", given={"channel": "long", "messages": messages}).exit_code == 0

    log(0, 30)
    peak()  # fills the analyzer's cache
    before = peak()
    log(100, 300)
    assert peak() < 1.5 * before


def test_readable_rows_of_a_damaged_registry_are_written_to_a_new_one(ctxr: Ctxr, registry: Path) -> None:
    content = registry.read_bytes()
    leaf = content.index(b"lose item 7 of 1") // PAGE_BYTES * PAGE_BYTES
    flip_bits(registry, leaf, 0xFF)  # the byte with the kind of page
    damaged = registry.read_bytes()
    assert ctxr("doctor", "--deep").exit_code == 1
    new = registry.with_name("new.db")
    done = ctxr("db", "salvage", str(new))
    assert done.exit_code == 1
    assert "could not be read" in done.output
    assert registry.read_bytes() == damaged
    registry.unlink()
    new.rename(registry)
    assert SOUND in output_of(ctxr("doctor", "--deep"))
    found = ctxr("search", "피보나치", "--json")
    assert "cursor_session_20250929_1430" in found.output


def test_a_damaged_schema_line_or_time_loses_only_itself(ctxr: Ctxr, registry: Path) -> None:
    execute(registry, "UPDATE conversation SET timestamp = '2025-09-29 I4:07', payload = '{' WHERE seq = 3")
    flip_bits(registry, registry.read_bytes().index(b"CREATE INDEX ix_remote_message") + 8)
    assert "malformed database schema" in output_of(ctxr("doctor", "--deep"))
    new = registry.with_name("new.db")
    assert "conversation: 62 rows" in ctxr("db", "salvage", str(new)).output
    registry.unlink()
    new.rename(registry)
    assert SOUND in output_of(ctxr("doctor", "--deep"))


def test_an_undamaged_registry_is_salvaged_whole(ctxr: Ctxr, registry: Path, tmp_path: Path) -> None:
    done = ctxr("db", "salvage", str(tmp_path / "new.db"))
    assert (done.exit_code, "conversation: 62 rows" in done.output) == (0, True)
    again = ctxr("db", "salvage", str(tmp_path / "new.db"))
    assert (again.exit_code, "There is a file of that name already" in again.output) == (2, True)


def test_a_salvaged_registry_gets_its_name_when_it_is_complete(
    ctxr: Ctxr, registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = tmp_path / "saved" / "new.db"
    new.parent.mkdir()

    async def fail(*_: object, **__: object) -> int:
        raise StorageError("Could not write the registry.", "disk full")

    with monkeypatch.context() as patch:
        patch.setattr("registry.storage.index.rebuild_index.reindex", fail)
        assert "disk full" in ctxr("db", "salvage", str(new)).output
    assert list(new.parent.iterdir()) == []
    assert "conversation: 62 rows" in ctxr("db", "salvage", str(new)).output
    assert list(new.parent.iterdir()) == [new]
