"""A registry with a bit that fell over: it is noticed, and all else is saved."""

from __future__ import annotations

import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import Result

from registry.storage.connections import PAGE_BYTES
from registry.storage.upkeep.inspection import damage_of
from tests.cli.conftest import FIBONACCI, Ctxr

SOUND = "structure, messages, counts and index are as they should be"


def words(done: Result) -> str:
    return " ".join(done.output.split())


@pytest.fixture
def registry(ctxr: Ctxr, empty_home: Path, kept_files: dict[str, bytes]) -> Path:
    file = empty_home / "ctxr" / "registry.db"
    if not kept_files:
        for number in range(3):
            messages = [{"role": "user", "text": f"Why does the basket lose item {n} of {number}?"} for n in range(20)]
            assert ctxr("log", "-", given={"channel": f"basket {number}", "messages": messages}).exit_code == 0
        assert ctxr("log", "-", given=FIBONACCI).exit_code == 0
        kept_files["baskets"] = file.read_bytes()
    file.write_bytes(kept_files["baskets"])
    return file


def turn_over(file: Path, place: int, bits: int = 1) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= bits
    file.write_bytes(content)


def carry_out(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


def test_a_whole_registry_is_found_to_be_so(ctxr: Ctxr, registry: Path) -> None:
    assert SOUND in words(ctxr("doctor", "--deep"))


def test_a_registry_in_which_messages_were_forgotten_is_whole(ctxr: Ctxr, registry: Path) -> None:
    assert ctxr("forget", "--matching", "item 7", "--yes").exit_code == 0
    assert SOUND in words(ctxr("doctor", "--deep"))


def test_a_changed_letter_in_a_message_is_noticed(ctxr: Ctxr, registry: Path) -> None:
    turn_over(registry, registry.read_bytes().index(b"lose item 7 of 1") + 2)
    done = ctxr("doctor", "--deep")
    assert done.exit_code == 1
    assert "messages: 1 differ from their digests: conv_" in words(done)
    assert "ctxr db salvage" in words(done)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE channel SET message_count = 7 WHERE name = 'basket 1'", "counts: 1 channels"),
        ("DELETE FROM conversation WHERE seq = 3", "index: 0 messages are missing, 3 entries have no message"),
        ("UPDATE conversation SET payload = '[]' WHERE seq = 3", "the details of 3 cannot be read"),
        ("INSERT INTO message_index (rowid, t) VALUES (5, 'astray')", "index: 1 words have wrong entries"),
    ],
)
def test_what_does_not_fit_together_is_noticed(ctxr: Ctxr, registry: Path, statement: str, said: str) -> None:
    carry_out(registry, statement)
    done = ctxr("doctor", "--deep")
    assert (done.exit_code, said in words(done)) == (1, True)


def test_a_check_takes_no_more_memory_for_a_larger_registry(ctxr: Ctxr, registry: Path) -> None:
    def peak() -> int:
        tracemalloc.start()
        assert damage_of(f"sqlite:///{registry}") == []
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    def log(first: int, last: int) -> None:
        texts = (" ".join(f"item{(n * 7 + word) % 500}" for word in range(40)) for n in range(first, last))
        messages = [{"role": "user", "text": text} for text in texts]
        assert ctxr("log", "-", given={"channel": "long", "messages": messages}).exit_code == 0

    log(0, 50)
    peak()  # the analyzer remembers words
    before = peak()
    log(100, 500)
    assert peak() < 1.5 * before


def test_what_can_be_read_of_a_damaged_registry_is_written_to_a_new_one(ctxr: Ctxr, registry: Path) -> None:
    content = registry.read_bytes()
    leaf = content.index(b"lose item 7 of 1") // PAGE_BYTES * PAGE_BYTES
    turn_over(registry, leaf, 0xFF)  # the kind of page
    damaged = registry.read_bytes()
    assert ctxr("doctor", "--deep").exit_code == 1
    new = registry.with_name("new.db")
    done = ctxr("db", "salvage", str(new))
    assert done.exit_code == 1
    assert "could not be read" in done.output
    assert registry.read_bytes() == damaged
    registry.unlink()
    new.rename(registry)
    assert SOUND in words(ctxr("doctor", "--deep"))
    found = ctxr("search", "피보나치", "--json")
    assert "cursor_session_20250929_1430" in found.output


def test_a_damaged_line_of_the_schema_or_a_damaged_time_costs_only_itself(ctxr: Ctxr, registry: Path) -> None:
    carry_out(registry, "UPDATE conversation SET timestamp = '2025-09-29 I4:07', payload = '{' WHERE seq = 3")
    turn_over(registry, registry.read_bytes().index(b"CREATE INDEX ix_remote_message") + 8)
    assert "malformed database schema" in words(ctxr("doctor", "--deep"))
    new = registry.with_name("new.db")
    assert "conversation: 62 rows" in ctxr("db", "salvage", str(new)).output
    registry.unlink()
    new.rename(registry)
    assert SOUND in words(ctxr("doctor", "--deep"))


def test_a_whole_registry_is_saved_whole(ctxr: Ctxr, registry: Path, tmp_path: Path) -> None:
    done = ctxr("db", "salvage", str(tmp_path / "new.db"))
    assert (done.exit_code, "conversation: 62 rows" in done.output) == (0, True)
    again = ctxr("db", "salvage", str(tmp_path / "new.db"))
    assert (again.exit_code, "There is a file of that name already" in again.output) == (2, True)
