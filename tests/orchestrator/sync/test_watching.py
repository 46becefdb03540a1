"""Test that a running server imports what clients write at once, even if their folders vanish and return."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from orchestrator.background import running
from orchestrator.service import Orchestrator
from orchestrator.sync import spool
from orchestrator.sync.store_report import StoreReport
from orchestrator.sync.watch import watch
from registry.errors import StorageError
from sources.base import FoundSession, Paths, Skipped, Source
from sources.readers import READERS
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write
from tests.sources.cursor.cursor_files import CursorFiles, answered, asked

pytestmark = pytest.mark.anyio

PATIENCE_S = 20
SELDOM = 3600.0


@pytest.fixture
def only_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn off the regular check."""
    monkeypatch.setattr("orchestrator.sync.watch.STEP_MS", 50)
    monkeypatch.setattr("orchestrator.sync.watch.MIN_INTERVAL_S", SELDOM)
    monkeypatch.setattr("orchestrator.sync.watch.MAX_INTERVAL_S", SELDOM)


@pytest.fixture
def no_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn off notifications, as on a network drive or without free watches: only the regular check is left."""

    def full(*_paths: object, **_options: object) -> None:
        raise OSError("no space left on device: inotify watches")

    monkeypatch.setattr("orchestrator.sync.watch.awatch", full)
    monkeypatch.setattr("orchestrator.sync.watch.MIN_INTERVAL_S", 0.02)


class Watcher:
    """Collect the reports of a watch."""

    def __init__(self) -> None:
        self._reports: asyncio.Queue[list[StoreReport]] = asyncio.Queue()
        self.report = self._reports.put_nowait

    async def next(self) -> dict[str, StoreReport]:
        reports = await asyncio.wait_for(self._reports.get(), PATIENCE_S)
        return {report.source: report for report in reports}

    @property
    def is_silent(self) -> bool:
        return self._reports.empty()


def talk(*questions: str, number: int = 1) -> Dialogue:
    dialogue = Dialogue(session_id(number))
    for question in questions:
        dialogue.user(question)
    return dialogue


async def texts(orchestrator: Orchestrator) -> list[str]:
    found = await orchestrator.run({"operation": "search", "query": {"text": "basket"}})
    return sorted(str(item["text"]) for item in found["messages"])


async def test_a_message_is_stored_a_moment_after_it_was_written(
    orchestrator: Orchestrator, empty_home: Path, only_notices: None
) -> None:
    claude, watcher = empty_home / ".claude", Watcher()
    write(claude, talk("Is the basket kept?"))
    cursor = CursorFiles(empty_home / ".config" / "Cursor" / "User")
    cursor.conversation("c-1", asked("b-1", "Where is the basket?"))
    async with running(watch(orchestrator, empty_home / "ctxr", READERS, Paths(empty_home, {}), watcher.report)):
        first = await watcher.next()
        assert {name: report.new_messages for name, report in first.items()} == {"claude-code": 1, "cursor": 1}
        write(claude, talk("Is the basket kept?", "And the prices?"))
        assert (await watcher.next())["claude-code"].new_messages == 1
        cursor.conversation("c-1", asked("b-1", "Where is the basket?"), answered("b-2", "In redis."))
        assert (await watcher.next())["cursor"].parsed == 1
        write(claude / "elsewhere", talk("Not in a folder that is watched"))
        write(claude, talk("A basket in a project that is new", number=2), project="-home-ann-new")
        assert (await watcher.next())["claude-code"].new_messages == 1
    assert watcher.is_silent


async def test_a_burst_of_writes_is_one_sync(
    orchestrator: Orchestrator, empty_home: Path, only_notices: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.sync.watch.STEP_MS", 1_000)  # a busy machine may pause between two writes
    watcher, questions = Watcher(), [f"Basket {number}?" for number in range(20)]
    write(empty_home / ".claude", talk("Basket?"))
    async with running(watch(orchestrator, empty_home / "ctxr", READERS, Paths(empty_home, {}), watcher.report)):
        await watcher.next()
        for count in range(len(questions)):
            write(empty_home / ".claude", talk("Basket?", *questions[: count + 1]))
            await asyncio.sleep(0.005)
        assert (await watcher.next())["claude-code"].new_messages == len(questions)


async def test_events_of_hooks_are_stored_at_once_without_any_reader(
    orchestrator: Orchestrator, empty_home: Path, only_notices: None
) -> None:
    heard, watcher = asyncio.Event(), Watcher()
    orchestrator.observers.append(lambda _: heard.set())
    home = empty_home / "ctxr"
    payload = {"conversation_id": "c-1", "prompt": "Is the basket kept?"}
    async with running(watch(orchestrator, home, (), Paths(empty_home, {}), watcher.report)):
        assert await watcher.next() == {}
        spool.append(str(home), {"source": "cursor", "event": "beforeSubmitPrompt", "at": 1.0, "payload": payload})
        await asyncio.wait_for(heard.wait(), PATIENCE_S)
    assert await texts(orchestrator) == ["Is the basket kept?"]


async def test_folders_that_vanish_return_or_appear_are_found_without_notifications(
    orchestrator: Orchestrator, empty_home: Path, no_notices: None
) -> None:
    claude, watcher = empty_home / ".claude", Watcher()
    write(claude, talk("Is the basket kept?"))
    async with running(watch(orchestrator, empty_home / "ctxr", READERS, Paths(empty_home, {}), watcher.report)):
        assert (await watcher.next()).keys() == {"claude-code"}
        shutil.rmtree(claude)
        write(claude, talk("Is the basket kept?", "And the next basket?"))
        assert (await watcher.next())["claude-code"].new_messages == 1
        cursor = CursorFiles(empty_home / ".config" / "Cursor" / "User")
        cursor.conversation("c-1", asked("b-1", "Where is the basket?"))
        assert (await watcher.next())["cursor"].new_messages == 1
    assert len(await texts(orchestrator)) == 3


class FailingReader(Source):
    """A reader that fails at a given step."""

    name = "broken"

    def __init__(self, place: str, store: Path) -> None:
        self._place, self._store = place, store

    def _fail_in(self, place: str) -> None:
        if place == self._place:
            raise {"stamp": StorageError("Cannot be read.", "locked")}.get(place, RuntimeError("a mistake"))

    def find(self, paths: Paths) -> Iterator[Path]:
        self._fail_in("find")
        yield self._store

    def stamp(self, store: Path) -> str:
        self._fail_in("stamp")
        return ""

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        self._fail_in("sessions")
        yield from ()


@pytest.mark.parametrize("place", ["find", "stamp", "sessions"])
async def test_a_store_that_fails_is_reported_once_and_stops_nothing(
    orchestrator: Orchestrator, empty_home: Path, tmp_path: Path, place: str, no_notices: None
) -> None:
    claude, watcher = empty_home / ".claude", Watcher()
    write(claude, talk("Is the basket kept?"))
    readers: list[Source] = [FailingReader(place, tmp_path), *READERS]
    async with running(watch(orchestrator, empty_home / "ctxr", readers, Paths(empty_home, {}), watcher.report)):
        first = await watcher.next()
        assert first["claude-code"].new_messages == 1
        assert bool(place == "sessions") == any("a mistake" in one.why for one in _skipped(first))
        write(claude, talk("Is the basket kept?", "And now?"))
        assert (await watcher.next()).keys() == {"claude-code"}


def _skipped(reports: Mapping[str, StoreReport]) -> list[Skipped]:
    return [one for report in reports.values() for one in report.skipped]


async def test_after_a_failure_of_the_registry_everything_is_imported(
    orchestrator: Orchestrator, empty_home: Path, no_notices: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.sync.watch.MAX_INTERVAL_S", 0.02)
    watcher, write_it = Watcher(), orchestrator.registry.write
    write(empty_home / ".claude", talk("Is the basket kept?"))

    async def fail(_work: object, **_of: object) -> None:
        monkeypatch.setattr(orchestrator.registry, "write", write_it)
        raise StorageError("Could not write the registry.", "disk full")

    monkeypatch.setattr(orchestrator.registry, "write", fail)
    async with running(watch(orchestrator, empty_home / "ctxr", READERS, Paths(empty_home, {}), watcher.report)):
        while not await texts(orchestrator):
            await watcher.next()
    assert await texts(orchestrator) == ["Is the basket kept?"]
