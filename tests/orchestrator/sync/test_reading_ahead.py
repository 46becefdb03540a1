"""A big store is read in a process of its own, and what comes in is the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cli.shared.command import run_shared
from cli.shared.place import Place, this_place
from orchestrator.service import Orchestrator
from orchestrator.sync import reading_ahead
from orchestrator.sync.reading_ahead import Chunk, End, ReadingAhead, begun
from orchestrator.sync.sync import sync
from registry.ingest.message_rows import Ready, Row, add_words, ready
from registry.storage.conversations.channels import ChannelFilter, list_channels
from registry.storage.database import ReadTransaction
from registry.storage.index.engines import index_of
from registry.storage.paging import Page
from registry.text.analysis.analyzer import analyze
from sources.base import FoundSession, Places, Skipped
from sources.claude_code.reader import ClaudeCode
from sources.readers import READERS
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write
from tests.sources.gemini import gemini_files

pytestmark = pytest.mark.anyio

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


@pytest.fixture(autouse=True)
def store(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(reading_ahead, "WORTH_SESSIONS", 3)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    for number in range(3):
        talk = Dialogue(session_id(number))
        talk.user(f"Why does basket {number} lose its items? The key is {KEY}. <private>No.</private>")
        talk.says("It makes a new list each time.", f"msg_{number}")
        write(empty_home / ".claude", talk)
    return empty_home


async def brought_in(orchestrator: Orchestrator, home: Path) -> tuple[int, list[str]]:
    [report] = await sync(orchestrator, READERS, Places(home, {}))
    assert report.is_complete
    channels = await orchestrator.registry.read(lambda tx: list_channels(tx, ChannelFilter(), Page()))
    stored = [await orchestrator.registry.get_conversations(one["channel"]) for one in channels["items"]]
    return report.new_messages, sorted(message["text"] for messages in stored for message in messages)


def said(number: int) -> str:
    return f"Why does basket {number} lose its items? The key is [secret:github-token:"


async def test_what_another_process_has_read_is_stored_masked_and_found(
    orchestrator: Orchestrator, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_here(*_: object) -> Iterator[FoundSession | Skipped]:
        pytest.fail("it is read in this process")

    monkeypatch.setattr(ClaudeCode, "sessions", not_here)
    new, texts = await brought_in(orchestrator, store)
    assert new == 6
    assert texts[:3] == ["It makes a new list each time."] * 3
    for number, text in enumerate(texts[3:]):
        assert text.startswith(said(number))
        assert text.endswith("[private]")
    found = await orchestrator.run({"operation": "extract", "query": {"text": "basket 2"}})
    assert said(2) in str(found["messages"])

    def holders(tx: ReadTransaction) -> list[int]:
        return index_of(tx).holders(tx, [[token] for token in analyze(texts[0])])

    assert len(await orchestrator.registry.read(holders)) == 3


async def test_a_secret_in_the_title_of_what_another_process_has_read_is_masked(
    orchestrator: Orchestrator, store: Path
) -> None:
    talk = Dialogue(session_id(7))
    talk.user("Why does the basket lose its items?")
    talk.aside("custom-title", customTitle=f"Basket {KEY}")
    write(store / ".claude", talk)
    await brought_in(orchestrator, store)
    channels = await orchestrator.registry.read(lambda tx: list_channels(tx, ChannelFilter(), Page()))
    [title] = [one["title"] for one in channels["items"] if one["title"].startswith("Basket")]
    assert title.startswith("Basket [secret:github-token:")


async def test_where_no_process_can_be_started_it_is_read_here(
    orchestrator: Orchestrator, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(store / "nothing-here"))
    assert (await brought_in(orchestrator, store))[0] == 6


async def test_what_a_process_that_ended_early_has_not_brought_is_read_here(
    orchestrator: Orchestrator, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, given = ReadingAhead._next, list[Chunk]()

    def two_sessions(ahead: ReadingAhead) -> object:
        said = real(ahead)
        if given:
            return End(is_complete=False)
        if not isinstance(said, Chunk):
            return said
        given.append(said._replace(found=said.found[:2]))
        return given[0]

    monkeypatch.setattr(ReadingAhead, "_next", two_sessions)
    assert (await brought_in(orchestrator, store))[0] == 6
    assert len(given) == 1


def test_only_big_stores_that_can_be_counted_are_worth_it(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = next(reader for reader in READERS if isinstance(reader, ClaudeCode))
    assert reading_ahead.is_worth_it(reader, store / ".claude")
    monkeypatch.setattr(reading_ahead, "WORTH_SESSIONS", 4)
    assert not reading_ahead.is_worth_it(reader, store / ".claude")


@pytest.mark.parametrize("is_shared", [False, True])
def test_what_the_other_process_makes_ready_is_what_this_one_would(store: Path, is_shared: bool) -> None:
    reader = ClaudeCode()
    talk = Dialogue(session_id(7))
    talk.user("Why does the basket lose its items?")
    write(store / ".claude", talk)
    with ReadingAhead([(reader, store / ".claude")], is_shared=is_shared) as ahead:
        found = [one for one in ahead.sessions(reader, store / ".claude") if isinstance(one, FoundSession)]
    assert len(found) == 4
    [one] = [one for one in found if one.ready]
    here = ready(one.session, reader.name)
    assert isinstance(one.ready, Ready)
    assert here
    for given, made in zip(one.ready.rows, here.rows, strict=True):
        assert {**given, "id": ""} == {**made, "id": ""}
        assert given["words"].split()[-given["length"] :] == analyze(given["text"])


def test_one_process_reads_several_stores_and_what_is_passed_by_has_gone(store: Path) -> None:
    reader, other = ClaudeCode(), store / "other" / ".claude"
    talk = Dialogue(session_id(8))
    talk.user("Where is the till?")
    write(other, talk)
    with ReadingAhead([(reader, store / ".claude"), (reader, other)]) as ahead:
        assert ahead.stamp(reader, store / ".claude") is not None
        [said] = [one for one in ahead.sessions(reader, other) if isinstance(one, FoundSession)]
        assert said.session.messages[0].text == "Where is the till?"
        assert ahead.stamp(reader, store / ".claude") is None


def test_reading_begins_before_the_program_has_started_only_where_nothing_is_stored(
    store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CTXR_HOME", str(tmp_path))
    with begun(READERS, Places(store, {})) as ahead:
        assert ahead
        [found] = [reader for reader in READERS if ahead.stamp(reader, store / ".claude") is not None]
        assert len(list(ahead.sessions(found, store / ".claude"))) == 3
    (tmp_path / "registry.db").touch()
    with begun(READERS, Places(store, {})) as ahead:
        assert ahead is None


def test_a_first_sync_starts_no_process_that_would_only_leave_it_to_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CTXR_HOME", str(tmp_path))
    monkeypatch.delenv("CTXR_SHARED", raising=False)
    monkeypatch.setattr(Place, "reach", lambda *_: pytest.fail("the local process is asked"))
    assert this_place()  # a local process could be reached
    assert run_shared(["sync"]) is None


NUTS = "The basket eats nuts."


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch, store: Path) -> Iterator[pytest.MonkeyPatch]:
    """One session of a store cannot be made into rows where they are stored, until this is undone."""
    talk = Dialogue(session_id(1))
    talk.user(NUTS)
    write(store / ".claude", talk)
    gemini_files.write(store / ".gemini", gemini_files.working_chat())

    def fails(row: Row, words: Sequence[str] | None = None) -> None:
        if row["text"] == NUTS:
            raise ArithmeticError("too many nuts")
        add_words(row, words)

    with monkeypatch.context() as patch:
        for where in ("registry.ingest.message_rows", "registry.ingest.save"):
            patch.setattr(f"{where}.add_words", fails)
        yield patch


async def all_else_comes_in(
    orchestrator: Orchestrator, home: Path, poison: pytest.MonkeyPatch, ahead: ReadingAhead | None = None
) -> None:
    """All but one session of the first of two stores, which is named, and comes in as soon as it can."""
    places = Places(home, {})
    first, second = await sync(orchestrator, READERS, places, ahead=ahead)
    assert (first.new_messages, first.is_complete) == (4, False)
    assert [Path(one.what).stem for one in first.skipped] == [session_id(1)]
    assert (second.new_messages, second.is_complete) == (10, True)
    poison.undo()
    again, _ = await sync(orchestrator, READERS, places)
    assert (again.new_messages, again.is_complete, again.skipped) == (1, True, [])


async def test_a_session_that_cannot_be_stored_hinders_no_other(
    orchestrator: Orchestrator, store: Path, poison: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    await all_else_comes_in(orchestrator, store, poison)


async def test_a_session_of_which_this_process_can_make_no_rows_hinders_no_other(
    orchestrator: Orchestrator, store: Path, poison: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_ahead, "_PROCESS", _ONLY_READS + reading_ahead._PROCESS)
    reader = next(reader for reader in READERS if isinstance(reader, ClaudeCode))
    with ReadingAhead([(reader, store / ".claude")], is_shared=True) as ahead:
        await all_else_comes_in(orchestrator, store, poison, ahead)


_ONLY_READS = """
from orchestrator.sync import reader_process
reader_process._Outlet.is_empty = True
"""


async def test_a_mistake_over_one_store_hinders_no_other(
    orchestrator: Orchestrator, store: Path, poison: pytest.MonkeyPatch
) -> None:
    def fails(_: FoundSession) -> int:
        raise ArithmeticError("too many nuts")

    poison.setattr("orchestrator.sync.sync.BATCH_MESSAGES", 1)
    poison.setattr("orchestrator.sync.sync._characters", lambda found: fails(found) if NUTS in str(found) else 1)
    first, second = await sync(orchestrator, READERS, Places(store, {}))
    assert (first.is_complete, first.skipped[0].why) == (False, "bringing it in failed: ArithmeticError: too many nuts")
    assert (second.new_messages, second.is_complete) == (10, True)
    poison.undo()
    again, _ = await sync(orchestrator, READERS, Places(store, {}))
    assert (first.new_messages + again.new_messages, again.is_complete) == (5, True)
