"""Test that each message of a hook is stored once, in its session's channel, whatever else reports it."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.service import Orchestrator
from orchestrator.sync import spool
from orchestrator.sync.drain import drain, sessions_of
from orchestrator.sync.sync import sync
from registry.storage.conversations.channels import list_channels
from registry.storage.paging import Page
from registry.storage.records.executions import list_executions
from sources.base import Paths
from sources.readers import READERS
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write
from tests.sources.cursor.cursor_files import CursorFiles
from tests.sources.cursor.cursor_files import answered as bubble_answered
from tests.sources.cursor.cursor_files import asked as bubble_asked

pytestmark = pytest.mark.anyio

NINE = datetime(2026, 5, 4, 9, tzinfo=UTC).timestamp()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "registry"


def event(name: str, at: float = 0, source: str = "cursor", **payload: Any) -> dict[str, Any]:
    """Return an event as a hook spools it, `at` seconds after nine o'clock."""
    return {"source": source, "event": name, "at": NINE + at, "payload": {"conversation_id": "c-1", **payload}}


def asked(text: str, at: float, turn: str = "g-1", **payload: Any) -> dict[str, Any]:
    return event("beforeSubmitPrompt", at, prompt=text, generation_id=turn, **payload)


def answered(text: str, at: float, turn: str = "g-1") -> dict[str, Any]:
    return event("afterAgentResponse", at, text=text, generation_id=turn, model="gpt-5")


async def hear(orchestrator: Orchestrator, home: Path, *events: dict[str, Any]) -> bool:
    for each in events:
        spool.append(str(home), each)
    return await drain(orchestrator, home)


async def stored(orchestrator: Orchestrator) -> list[dict[str, Any]]:
    """The messages of the only channel."""
    page = await orchestrator.registry.read(lambda tx: list_channels(tx, {}, Page(limit=100)))
    [channel] = page["items"]
    return await orchestrator.registry.get_conversations(channel["channel"], limit=1000)


async def texts(orchestrator: Orchestrator, *roles: str) -> list[str]:
    return [each["text"] for each in await stored(orchestrator) if each["role"] in (roles or ("user", "assistant"))]


async def test_a_turn_from_cursors_hooks_is_stored_in_a_channel_with_its_session_and_project(
    orchestrator: Orchestrator, home: Path
) -> None:
    assert await hear(
        orchestrator,
        home,
        asked("Faster?", 0, workspace_roots=["/home/ann/shop"], attachments=[{"file_path": "/home/ann/shop/a.py"}]),
        answered("Use a cache.", 5),
        event("stop", 6),
    )
    page = await orchestrator.registry.read(lambda tx: list_channels(tx, {}, Page(limit=10)))
    [channel] = page["items"]
    assert (channel["session_id"], channel["project_path"]) == ("c-1", "/home/ann/shop")
    assert channel["channel"] == "cursor_session_20260504_090000"
    first, second = await stored(orchestrator)
    assert (first["timestamp"], first["actor"], first["source"]) == ("2026-05-04T09:00:00.000Z", "hook", "cursor")
    assert first["payload"]["attachments"] == ["/home/ann/shop/a.py"]
    assert (second["role"], second["payload"]["model"]) == ("assistant", "gpt-5")
    assert os.listdir(home / "spool") == []
    runs = await orchestrator.registry.read(lambda tx: list_executions(tx, {}, Page(limit=10)))
    assert [(run["operation"], run["client"]) for run in runs["items"]] == [("conversation_log", "ctxr hook")]


async def test_the_same_event_twice_is_stored_once(orchestrator: Orchestrator, home: Path) -> None:
    turn = asked("Faster?", 0), asked("Faster?", 0.3), answered("Use a cache.", 5), answered("Use a cache.", 5.2)
    await hear(orchestrator, home, *turn)
    await hear(orchestrator, home, *turn)
    await hear(orchestrator, home, turn[0])
    assert await texts(orchestrator) == ["Faster?", "Use a cache."]


async def test_tokens_that_cursor_reports_at_the_end_of_a_turn_are_stored_with_its_last_answer(
    orchestrator: Orchestrator, home: Path
) -> None:
    counts: dict[str, Any] = {
        "input_tokens": 20152,
        "output_tokens": 15,
        "cache_read_tokens": 8704,
        "cache_write_tokens": 0,
    }
    end = event("stop", 4, generation_id="g-1", **counts)
    other = event("stop", 5, generation_id="g-2", **counts)
    await hear(orchestrator, home, asked("Hello", 1), answered("Hi.", 2), answered("Done.", 3), end, other)
    usage = {one["text"]: one["payload"].get("usage") for one in await stored(orchestrator)}
    counted = {"input_tokens": 20152 - 8704, "output_tokens": 15, "cache_read_input_tokens": 8704}
    assert usage == {"Hello": None, "Hi.": None, "Done.": {**counted, "cache_creation_input_tokens": 0}}


async def test_events_that_were_stored_and_not_removed_are_not_doubled(
    orchestrator: Orchestrator, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr("orchestrator.sync.drain.os.unlink", lambda _: (_ for _ in ()).throw(OSError))
        await hear(orchestrator, home, asked("Faster?", 0), answered("Use a cache.", 5))
    assert len(os.listdir(home / "spool")) == 1
    assert await drain(orchestrator, home)
    assert os.listdir(home / "spool") == []
    assert await texts(orchestrator) == ["Faster?", "Use a cache."]


async def test_events_wait_while_the_registry_cannot_store_them(
    orchestrator: Orchestrator, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("registry.ingest.from_hook.save_messages", None)
        assert not await hear(orchestrator, home, asked("Faster?", 0))
    assert await drain(orchestrator, home)
    assert await texts(orchestrator) == ["Faster?"]


def claude_event(name: str, at: float, **payload: Any) -> dict[str, Any]:
    record = event(name, at, "claude-code", session_id=session_id(7), cwd="/home/ann/shop", **payload)
    del record["payload"]["conversation_id"]
    return record


def dialogue(turns: int = 1) -> Dialogue:
    """Return the turns as Claude Code's own file has them: a text, a tool call, the final text."""
    talk = Dialogue(session_id(7))
    for number in range(turns):
        talk.user("go on" if number else "Why does the basket lose its items?")
        talk.says("Let me look.", f"msg_{number}a")
        talk.calls("Read", {"file_path": "/home/ann/shop/a.py"}, f"call_{number}", f"msg_{number}c")
        talk.result(f"call_{number}", "items = []")
        talk.says(f"It makes a new list each time ({number}).", f"msg_{number}b")
    return talk


def hook_events(turns: int = 1) -> list[dict[str, Any]]:
    """Return the events of the same turns."""
    events = []
    for number in range(turns):
        prompt = "go on" if number else "Why does the basket lose its items?"
        events += [
            claude_event("UserPromptSubmit", number * 60, prompt=prompt, prompt_id=f"p{number}"),
            claude_event(
                "Stop",
                number * 60 + 30,
                last_assistant_message=f"It makes a new list each time ({number}).",
                prompt_id=f"p{number}",
            ),
        ]
    return events


async def read_stores(orchestrator: Orchestrator, home: Path) -> None:
    await sync(orchestrator, READERS, Paths(home, {}))


ALL_OF_IT = [
    "Why does the basket lose its items?",
    *("Let me look.", "It makes a new list each time (0).", "go on"),
    *("Let me look.", "It makes a new list each time (1)."),
]


async def test_messages_in_the_store_after_their_hook_events_are_not_doubled(
    orchestrator: Orchestrator, home: Path, empty_home: Path
) -> None:
    await hear(orchestrator, home, *hook_events(2))
    write(empty_home / ".claude", dialogue(2))
    await read_stores(orchestrator, empty_home)
    assert sorted(await texts(orchestrator)) == sorted(ALL_OF_IT)
    origins = {each["text"]: each["actor"] for each in await stored(orchestrator)}
    assert (origins["It makes a new list each time (1)."], origins["Let me look."]) == ("hook", "reader")
    await hear(orchestrator, home, *hook_events(2))
    write(empty_home / ".claude", dialogue(3))
    await read_stores(orchestrator, empty_home)
    assert len(await texts(orchestrator)) == len(ALL_OF_IT) + 3


async def test_details_in_the_store_are_added_to_the_message_of_a_hook(
    orchestrator: Orchestrator, home: Path, empty_home: Path
) -> None:
    await hear(orchestrator, home, *hook_events(1))
    write(empty_home / ".claude", dialogue(1))
    await read_stores(orchestrator, empty_home)
    answer = next(each for each in await stored(orchestrator) if each["text"].endswith("(0)."))
    assert answer["actor"] == "hook"
    assert answer["payload"]["model"] == "claude-opus-4-5"
    assert answer["payload"]["usage"]["input_tokens"] == 12
    assert not answer["payload"]["native_id"].startswith("hook:")


async def test_events_after_their_messages_in_the_store_are_not_doubled(
    orchestrator: Orchestrator, home: Path, empty_home: Path
) -> None:
    write(empty_home / ".claude", dialogue(2))
    await read_stores(orchestrator, empty_home)
    before = [(each["id"], each["text"], each["timestamp"], each["actor"]) for each in await stored(orchestrator)]
    shift = datetime.fromisoformat(before[0][2]).timestamp() - NINE
    late = [{**each, "at": each["at"] + shift + 0.5} for each in hook_events(2)]
    assert await hear(orchestrator, home, *late)
    assert [
        (each["id"], each["text"], each["timestamp"], each["actor"]) for each in await stored(orchestrator)
    ] == before


async def test_an_answer_read_half_written_is_one_message_when_it_is_complete(
    orchestrator: Orchestrator, home: Path, empty_home: Path
) -> None:
    cursor = CursorFiles(empty_home / ".config" / "Cursor" / "User")
    cursor.conversation("c-1", bubble_asked("b-1", "Faster?"), bubble_answered("b-2", "Use"))
    await read_stores(orchestrator, empty_home)
    await hear(orchestrator, home, asked("Faster?", 0), answered("Use a cache.", 5))
    cursor.conversation("c-1", bubble_asked("b-1", "Faster?"), bubble_answered("b-2", "Use a cache."), lastUpdatedAt=1)
    await read_stores(orchestrator, empty_home)
    assert await texts(orchestrator) == ["Faster?", "Use a cache."]


async def test_events_without_text_and_those_of_sub_agents_store_nothing(
    orchestrator: Orchestrator, home: Path
) -> None:
    assert await hear(
        orchestrator,
        home,
        claude_event("SessionEnd", 0, transcript_path="/home/ann/.claude/projects/x/s.jsonl"),
        claude_event("Stop", 1, last_assistant_message="Found it.", agent_id="a-1"),
        claude_event("UserPromptSubmit", 2, prompt="<task-notification>done</task-notification>"),
        event("stop", 3, status="completed"),
    )
    page = await orchestrator.registry.read(lambda tx: list_channels(tx, {}, Page(limit=100)))
    assert page["items"] == []


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
keys = st.sampled_from(["source", "event", "at", "payload"])
fields = st.sampled_from(
    ["conversation_id", "session_id", "prompt", "text", "generation_id", "cwd", "workspace_roots", "attachments"]
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"source": st.just("cursor") | anything, "event": st.just("beforeSubmitPrompt") | anything},
            optional={"at": anything, "payload": st.dictionaries(fields, anything) | anything},
        )
        | st.dictionaries(keys, anything)
    )
)
def test_an_event_with_any_content_does_not_stop_the_others(events: list[dict[str, Any]]) -> None:
    for _, session in sessions_of(events):
        assert session.messages


def test_a_full_disk_loses_only_the_event_that_was_cut_off(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def cut_off(file: int, line: bytes) -> int:
        monkeypatch.setattr(os, "write", write)
        return write(file, line[:5])

    monkeypatch.setattr(os, "write", cut_off)
    with pytest.raises(OSError, match="only a part"):
        spool.append(str(home), {"event": "lost"})
    spool.append(str(home), {"event": "kept"})
    assert [events for _, events in spool.take(str(home))] == [[{"event": "kept"}]]
