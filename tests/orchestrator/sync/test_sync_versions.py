"""Test stores that several versions of a client wrote: each message is imported once, in order, and none is lost."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard

from orchestrator.service import Orchestrator
from orchestrator.sync.sync import sync
from registry.storage.conversations.channels import list_channels
from registry.storage.paging import Page
from sources.base import Paths
from sources.readers import READERS
from tests.sources.codex import codex_files as codex
from tests.sources.copilot import copilot_files as copilot
from tests.sources.gemini import gemini_files as gemini
from tests.sources.grok import grok_files as grok
from tests.sources.openclaw import test_openclaw as openclaw
from tests.sources.opencode import opencode_files as opencode
from tests.sources.pi import pi_files as pi
from tests.sources.qwen import qwen_files as qwen

pytestmark = pytest.mark.anyio


async def run_sync(orchestrator: Orchestrator, home: Path) -> None:
    await sync(orchestrator, READERS, Paths(home, {}))


async def only_channel(orchestrator: Orchestrator) -> dict[str, Any]:
    page = await orchestrator.registry.read(lambda tx: list_channels(tx, {}, Page(limit=100)))
    [channel] = page["items"]
    return dict(channel)


async def messages_of(orchestrator: Orchestrator) -> list[dict[str, Any]]:
    """Return the messages of the only channel in order."""
    channel = await only_channel(orchestrator)
    return list(await orchestrator.registry.get_conversations(channel["channel"], limit=1000))


async def texts_in(orchestrator: Orchestrator) -> list[str]:
    return [message["text"] for message in await messages_of(orchestrator)]


def converted_session() -> copilot.Log:
    """Return the log into which Copilot CLI converts `old_history` when it resumes the session, and a new turn."""
    log, listing = copilot.Log(copilot.session_id(9)), copilot.request("call_1", "bash", {"command": "ls"})
    log.start()
    log.user("Hello, 안녕")
    log.answer("", listing)
    log.run(listing, "basket.py")
    log.answer("One file.")
    log.user("Hello, 안녕")
    log.answer("Again.")
    return log


@pytest.mark.parametrize("is_synced_before", [True, False])
async def test_a_session_of_copilots_first_versions_that_a_newer_one_resumed_is_imported_once(
    orchestrator: Orchestrator, empty_home: Path, is_synced_before: bool
) -> None:
    root = empty_home / ".copilot"
    document = root / "history-session-state" / f"session_{copilot.session_id(9)}_1759957816398.json"
    document.parent.mkdir(parents=True)
    document.write_text(json.dumps(copilot.old_history()), encoding="utf-8")
    if is_synced_before:
        await run_sync(orchestrator, empty_home)
    copilot.write_log(root, converted_session())
    await run_sync(orchestrator, empty_home)

    messages = await messages_of(orchestrator)
    texts = ["Hello, 안녕", "bash ls\n\nbasket.py", "One file.", "Hello, 안녕", "Again."]
    assert [message["text"] for message in messages] == texts
    assert {str(message["timestamp"])[:10] for message in messages} == {"2026-03-18"}


async def test_of_two_files_of_a_session_the_newer_one_gives_the_title(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    root, log = empty_home / ".copilot", copilot.Log()
    log.start()
    log.user("Why is the basket empty?")
    os.utime(copilot.write_log(root, log, form="file"), (1_770_000_000, 1_770_000_000))
    log.answer("It makes a new list.")
    copilot.write_log(root, log, "name: The empty basket")
    await run_sync(orchestrator, empty_home)

    assert (await only_channel(orchestrator))["title"] == "The empty basket"
    assert await texts_in(orchestrator) == ["Why is the basket empty?", "It makes a new list."]


OLD = copilot.asked("r1", "Why is the basket empty?", {"value": "It makes a new list."})
NEW = copilot.asked("r2", "Fix it", {"value": "Done."})
LATE = copilot.asked("r3", "Test it", {"value": "It passes."})


def times_in_order(*files: Path) -> None:
    """Set the files' times of change so that each is newer than the file before."""
    for seconds, file in enumerate(files, 1_770_000_000):
        os.utime(file, (seconds, seconds))


async def test_both_files_of_a_vs_code_chat_are_read_if_an_older_version_continued_it(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    user = empty_home / ".config" / "Code" / "User"
    log = copilot.write_chat(user, copilot.chat(1, OLD, NEW))
    document = copilot.write_chat(user, copilot.chat(1, OLD, LATE), form="json")
    times_in_order(log, document)
    await run_sync(orchestrator, empty_home)
    assert sorted(await texts_in(orchestrator)) == sorted(
        ["Why is the basket empty?", "It makes a new list.", "Fix it", "Done.", "Test it", "It passes."]
    )


async def test_the_document_of_a_vs_code_chat_is_read_if_its_conversion_was_interrupted(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    user = empty_home / ".config" / "Code" / "User"
    document = copilot.write_chat(user, copilot.chat(1, OLD), form="json")
    log = document.with_suffix(".jsonl")
    log.write_bytes(b'{"kind":0,"v":{"version":3,"reque')
    times_in_order(document, log)
    await run_sync(orchestrator, empty_home)
    assert await texts_in(orchestrator) == ["Why is the basket empty?", "It makes a new list."]


async def test_requests_of_a_vs_code_chat_that_get_ids_from_a_newer_version_are_imported_once(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    user = empty_home / ".config" / "Code" / "User"
    without_ids = [{key: value for key, value in each.items() if key != "requestId"} for each in (OLD, NEW)]
    copilot.write_chat(user, copilot.chat(1, *without_ids), form="json")
    await run_sync(orchestrator, empty_home)
    copilot.write_chat(user, copilot.chat(1, OLD, NEW, LATE), form="json")
    await run_sync(orchestrator, empty_home)
    assert await texts_in(orchestrator) == [
        *("Why is the basket empty?", "It makes a new list.", "Fix it", "Done.", "Test it", "It passes."),
    ]


def resumed_chat() -> gemini.Chat:
    """Return a chat that an older version of Gemini CLI began as a document."""
    chat = gemini.Chat()
    chat.user("Why is the basket empty?")
    chat.gemini("It makes a new list.")
    return chat


@pytest.mark.parametrize("interrupted_after", [1, 2, 100])
@pytest.mark.parametrize("is_synced_before", [True, False])
async def test_a_document_of_gemini_that_a_newer_version_converted_is_imported_once(
    orchestrator: Orchestrator, empty_home: Path, is_synced_before: bool, interrupted_after: int
) -> None:
    root, chat = empty_home / ".gemini", resumed_chat()
    document = gemini.write(root, chat, form="json")
    if is_synced_before:
        await run_sync(orchestrator, empty_home)
    chat.user("Fix it")
    journal = gemini.write(root, chat)
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:interrupted_after]))
    times_in_order(document, journal)
    await run_sync(orchestrator, empty_home)
    continued = ["Fix it"] if interrupted_after == 100 else []
    assert await texts_in(orchestrator) == ["Why is the basket empty?", "It makes a new list.", *continued]


async def test_both_files_of_a_gemini_chat_are_read_if_an_older_version_continued_it(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    root, chat, older = empty_home / ".gemini", resumed_chat(), resumed_chat()
    chat.user("Fix it")
    journal = gemini.write(root, chat)
    older.lines.append({"id": "late", "timestamp": older.time(), "type": "user", "content": "Test it"})
    document = gemini.write(root, older, form="json")
    times_in_order(journal, document)
    await run_sync(orchestrator, empty_home)
    assert sorted(await texts_in(orchestrator)) == [
        *("Fix it", "It makes a new list.", "Test it", "Why is the basket empty?"),
    ]


async def test_a_thought_that_replaces_a_part_of_a_vs_code_answer_is_stored_as_a_thought(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    user = empty_home / ".config" / "Code" / "User"
    thought, answer = {"kind": "thinking", "value": "It returns a new list.", "id": "t1"}, {"value": "It is rebuilt."}
    for response in ([{"value": "Let me"}], [thought, answer]):
        copilot.write_chat(user, copilot.chat(1, OLD | {"response": response}), form="json")
        await run_sync(orchestrator, empty_home)
    roles = [(message["role"], message["text"]) for message in await messages_of(orchestrator)]
    assert roles[1:] == [("thinking", "It returns a new list."), ("assistant", "It is rebuilt.")]


UNKNOWN = {"type": "from_a_newer_version", "id": "x1", "uuid": "x1"}


@pytest.mark.parametrize(
    ("store", "write", "lines"),
    [(".pi/agent", pi.write, pi.working_session()), (".qwen", qwen.write, qwen.working_chat())],
    ids=["pi", "qwen"],
)
async def test_a_record_of_a_newer_version_outside_the_tree_does_not_undo_the_conversation(
    orchestrator: Orchestrator, empty_home: Path, store: str, write: Callable[[Path, Any], Path], lines: Any
) -> None:
    lines.lines.append(UNKNOWN)
    write(empty_home / store, lines)
    await run_sync(orchestrator, empty_home)
    messages = await messages_of(orchestrator)
    assert (len(messages) > 5, [message for message in messages if "superseded" in message["payload"]]) == (True, [])


async def test_a_record_between_the_chunks_of_a_grok_answer_does_not_split_it(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    commands = {"sessionUpdate": "available_commands_update"}
    told = [grok.asked("Why is the basket empty?"), grok.chunk("It makes a"), commands, grok.chunk(" new list.")]
    grok.write(empty_home / ".grok", grok.updates(*told))
    await run_sync(orchestrator, empty_home)
    assert await texts_in(orchestrator) == ["Why is the basket empty?", "It makes a new list."]


async def test_a_codex_script_that_is_read_while_it_runs_is_replaced_by_its_commands(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    thread = codex.paginated()
    records, thread.records = thread.records, []
    for record in records:
        thread.records.append(record)
        codex.write(empty_home / ".codex", thread)
        await run_sync(orchestrator, empty_home)
    tools = [message["text"] for message in await messages_of(orchestrator) if message["role"] == "tool"]
    assert tools == [
        *("exec ls\n\nbasket.py", "exec pytest\n\n1 failed", "apply_patch basket.py"),
        *("registry.extract\n\nnothing", "update_plan\n\nPlan updated"),
    ]


async def test_of_two_databases_of_opencode_the_one_written_last_gives_the_title(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    root, dialogue = empty_home / ".local" / "share" / "opencode", opencode.Dialogue()
    dialogue.message("user", opencode.text("Why is the basket empty?"))
    copied = opencode.write_database(root, dialogue, name="opencode-dev.db")
    dialogue.more = {"title": "The empty basket"}
    dialogue.message("assistant", opencode.text("It makes a new list."))
    times_in_order(copied, opencode.write_database(root, dialogue))
    await run_sync(orchestrator, empty_home)
    assert (await only_channel(orchestrator))["title"] == "The empty basket"
    assert await texts_in(orchestrator) == ["Why is the basket empty?", "It makes a new list."]


async def test_an_answer_whose_parts_have_the_same_id_is_kept_when_the_chat_goes_on(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    root, talk = empty_home / ".pi" / "agent", pi.Dialogue()
    talk.says("user", pi.text("Why is the basket empty?"))
    talk.answers(pi.text("I will look."), pi.call("c1", "bash", command="pytest"), pi.text("It makes a new list."))
    pi.write(root, talk)
    await run_sync(orchestrator, empty_home)
    talk.says("user", pi.text("Fix it"))
    pi.write(root, talk)
    await run_sync(orchestrator, empty_home)
    assert await texts_in(orchestrator) == [
        *("Why is the basket empty?", "I will look.", "bash pytest", "It makes a new list.", "Fix it"),
    ]


async def test_entries_that_a_newer_version_of_openclaw_compresses_are_read(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    talk = pi.Dialogue()
    talk.says("user", pi.text("Why is the basket empty?"))
    talk.answers(pi.text("It makes a new list."))
    file = openclaw.write(empty_home / ".openclaw", talk)
    entry = zstandard.compress(json.dumps(talk.lines[-1]).encode())
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("ALTER TABLE transcript_events RENAME TO older")
        database.execute(
            "CREATE TABLE transcript_events (session_id, seq INTEGER, event_json, created_at INTEGER, event_zstd)"
        )
        database.execute("INSERT INTO transcript_events SELECT *, NULL FROM older")
        database.execute("UPDATE transcript_events SET event_json = NULL, event_zstd = ? WHERE seq = 2", (entry,))
    await run_sync(orchestrator, empty_home)
    assert await texts_in(orchestrator) == ["Why is the basket empty?", "It makes a new list."]


ASKED = ("Why is the basket empty?", "It makes a new list.")


def opencode_dialogue(*more: str) -> opencode.Dialogue:
    dialogue = opencode.Dialogue()
    for text in (*ASKED, *more):
        dialogue.message("assistant" if text == ASKED[1] else "user", opencode.text(text))
    return dialogue


def pi_dialogue(*more: str) -> pi.Dialogue:
    talk = pi.Dialogue()
    for text in (*ASKED, *more):
        talk.says("assistant" if text == ASKED[1] else "user", pi.text(text))
    return talk


OPENCODE, OPENCLAW = ".local/share/opencode", ".openclaw"


@pytest.mark.parametrize(
    ("write_old", "write_new"),
    [
        (
            lambda home: opencode.write_files(home / OPENCODE, opencode_dialogue()),
            lambda home: opencode.write_database(home / OPENCODE, opencode_dialogue("Fix it")),
        ),
        (
            lambda home: openclaw.write_files(home / OPENCLAW, pi_dialogue()),
            lambda home: openclaw.write(home / OPENCLAW, pi_dialogue("Fix it")),
        ),
    ],
    ids=["opencode", "openclaw"],
)
async def test_files_of_an_older_version_are_read_and_joined_by_the_database_that_imports_them(
    orchestrator: Orchestrator, empty_home: Path, write_old: Callable[[Path], Any], write_new: Callable[[Path], Any]
) -> None:
    write_old(empty_home)
    await run_sync(orchestrator, empty_home)
    assert await texts_in(orchestrator) == list(ASKED)
    write_new(empty_home)
    await run_sync(orchestrator, empty_home)
    assert await texts_in(orchestrator) == [*ASKED, "Fix it"]


async def test_a_document_of_qwens_first_versions_is_read(orchestrator: Orchestrator, empty_home: Path) -> None:
    gemini.write(empty_home / ".qwen", resumed_chat(), form="json")
    await run_sync(orchestrator, empty_home)
    assert ((await only_channel(orchestrator))["source"], await texts_in(orchestrator)) == ("qwen-code", list(ASKED))


async def test_a_vs_code_chat_that_moves_to_another_window_is_read(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    user = empty_home / ".config" / "Code" / "User"
    file = copilot.write_chat(user, copilot.chat(1, OLD), workspace="")
    file.parent.rename(file.parent.with_name("transferredChatSessions"))
    await run_sync(orchestrator, empty_home)
    assert await texts_in(orchestrator) == list(ASKED)
