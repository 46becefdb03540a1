"""Test `ctxr db copy`: a registry moves to another database; nothing is lost or doubled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine

from registry.storage.upkeep.inspection import damage_of
from tests.cli.conftest import FIBONACCI, Ctxr, bare_ctxr

pytestmark = pytest.mark.both_databases


def log(ctxr: Ctxr, channel: str, *texts: str) -> None:
    messages = [{"role": "user", "text": text} for text in texts]
    assert ctxr("log", "-", given={"channel": channel, "messages": messages}).exit_code == 0


def output_at(url: str, *words: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the output of a command over the registry at an address."""
    with monkeypatch.context() as patch:
        patch.setenv("CTXR_DATABASE_URL", url)
        done = bare_ctxr(*words)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)


@pytest.fixture
def file(ctxr: Ctxr, empty_home: Path, cached_files: dict[str, bytes]) -> Path:
    file = empty_home / "ctxr" / "registry.db"
    if not cached_files:
        for number in range(3):
            log(ctxr, f"basket {number}", *(f"Why does the basket lose item {n} of {number}?" for n in range(20)))
        assert ctxr("log", "-", given=FIBONACCI).exit_code == 0
        assert ctxr("extract", "피보나치", "--json").exit_code == 0
        cached_files["baskets"] = file.read_bytes()
    file.write_bytes(cached_files["baskets"])
    return file


def test_the_copy_answers_as_the_original_and_new_messages_get_new_numbers(
    ctxr: Ctxr, file: Path, empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = empty_database_url
    done = ctxr("db", "copy", str(file), there)
    assert done.exit_code == 0, done.output
    assert "conversation: 62 rows" in done.output
    assert "The copy is identical." in done.output
    assert damage_of(there) == []
    for words in (["list", "--json"], ["search", "basket item 7", "--json"]):
        here = output_at(f"sqlite:///{file}", *words, monkeypatch=monkeypatch)
        assert output_at(there, *words, monkeypatch=monkeypatch)["sessions"] == here["sessions"]
    monkeypatch.setenv("CTXR_DATABASE_URL", there)
    log(ctxr, "basket 9", "And now?")
    assert damage_of(there) == []


def test_a_copy_back_equals_the_original(ctxr: Ctxr, file: Path, empty_database_url: str, tmp_path: Path) -> None:
    back = tmp_path / "back.db"
    assert ctxr("db", "copy", str(file), empty_database_url).exit_code == 0
    done = ctxr("db", "copy", empty_database_url, str(back))
    assert "conversation: 62 rows" in done.output
    again = tmp_path / "again.db"
    assert "The copy is identical." in ctxr("db", "copy", str(back), str(again)).output
    assert rows_of(ctxr("db", "copy", str(file), str(again)).output) == rows_of(done.output)


def rows_of(output: str) -> list[str]:
    """Return the lines of an output, except the keys: a copy has one more."""
    return [line for line in output.splitlines() if not line.startswith("registry_key")]


def test_a_later_copy_updates_and_deletes_rows(ctxr: Ctxr, file: Path, empty_database_url: str) -> None:
    assert ctxr("db", "copy", str(file), empty_database_url).exit_code == 0
    log(ctxr, "basket 3", "Does the basket keep what was bought?")
    assert ctxr("forget", "--channel", "basket 0", "--yes").exit_code == 0
    assert ctxr("tag", "basket 1", "shop").exit_code == 0
    done = ctxr("db", "copy", str(file), empty_database_url)
    assert "conversation: 43 rows" in done.output
    assert damage_of(empty_database_url) == []


def test_an_interrupted_copy_leaves_the_earlier_one_unchanged_and_no_new_file(
    ctxr: Ctxr, file: Path, empty_database_url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "new"
    folder.mkdir()

    def stop(_connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("INSERT INTO extract_result"):
            raise KeyboardInterrupt

    assert ctxr("db", "copy", str(file), empty_database_url).exit_code == 0
    assert ctxr("forget", "--channel", "basket 0", "--yes").exit_code == 0
    event.listen(Engine, "before_cursor_execute", stop)
    try:
        assert ctxr("db", "copy", str(file), empty_database_url).exit_code != 0
        assert ctxr("db", "copy", str(file), str(folder / "copy.db")).exit_code != 0
    finally:
        event.remove(Engine, "before_cursor_execute", stop)
    assert list(folder.iterdir()) == []
    assert damage_of(empty_database_url) == []
    assert "conversation: 42 rows" in ctxr("db", "copy", str(file), empty_database_url).output


def test_another_registry_is_never_overwritten(ctxr: Ctxr, file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "registry.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CTXR_DATABASE_URL", f"sqlite:///{other}")
        log(ctxr, "theirs", "What is this?")
    done = ctxr("db", "copy", str(file), str(other))
    assert done.exit_code == 2
    assert "The target is another registry, with conversations of its own." in done.output
    assert "The two registries are the same." in ctxr("db", "copy", str(file), str(file)).output


def test_a_missing_registry_is_not_copied_as_an_empty_one(ctxr: Ctxr, file: Path, tmp_path: Path) -> None:
    done = ctxr("db", "copy", str(tmp_path / "no.db"), str(tmp_path / "new.db"))
    assert done.exit_code == 2
    assert "There is no registry to copy." in done.output
    assert not (tmp_path / "no.db").exists()
