"""Test forgetting: the words are deleted everywhere, and no source brings them back."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any
from unicodedata import normalize
from urllib.parse import quote, urlencode

import pytest

from orchestrator.service import Orchestrator
from orchestrator.state import LocalFiles
from orchestrator.sync import spool
from orchestrator.sync.drain import drain
from orchestrator.sync.sync import sync
from registry.storage.conversations.belonging import save_view
from registry.storage.records import executions as recorded_runs
from registry.storage.records.executions import keep_expectation, list_expectations
from sources.base import Paths
from sources.readers import READERS
from tests.orchestrator.test_secrets import bytes_of_registry, rows_of, sent, texts_of
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write

pytestmark = pytest.mark.anyio

ASKED = "Where does the zanzibarian courier leave the parcels at night?"
ANSWERED = "Behind the quokkalike statue near the northern gate, under a stone."
THEN = "And who fetches them in the morning?"


def traces(orchestrator: Orchestrator, *words: str) -> list[str]:
    """Return the words that are still in a row or in the bytes of a file."""
    held = "\n".join(rows_of(orchestrator.registry))
    if orchestrator.registry.is_embedded:
        held += bytes_of_registry(orchestrator)
    return [word for word in words if word in held.lower()]


async def forget(orchestrator: Orchestrator, channel: str | None = None, **query: Any) -> dict[str, Any]:
    request = {"operation": "delete", "channel": channel, "query": {"soft": False, **query}}
    answer = await orchestrator.run(request)
    assert answer["success"], answer
    return answer


async def channels(orchestrator: Orchestrator) -> list[str]:
    listed = await orchestrator.run({"operation": "list"})
    return [session["channel"] for session in listed["sessions"]]


async def test_no_word_of_a_forgotten_message_is_left_and_sending_it_again_adds_nothing(
    orchestrator: Orchestrator,
) -> None:
    first = await orchestrator.run(sent(ASKED, ANSWERED, THEN))
    await orchestrator.run({"operation": "extract", "query": {"text": "quokkalike statue"}})
    await forget(orchestrator, id=first["stored_ids"][1])
    assert traces(orchestrator, "quokkalike") == []
    shorter = await orchestrator.run(sent(ASKED, "Behind the quokkalike statue.", THEN))
    assert (shorter["stored_ids"], shorter["new_count"]) == (first["stored_ids"], 0)
    again = await orchestrator.run(sent(ASKED, ANSWERED, THEN, "The baker."))
    assert again["stored_ids"][:3] == first["stored_ids"]
    assert again["new_count"] == 1
    assert await texts_of(orchestrator) == [ASKED, THEN, "The baker."]
    assert traces(orchestrator, "quokkalike") == []


async def test_a_forgotten_message_cannot_be_restored_or_listed(orchestrator: Orchestrator) -> None:
    first = await orchestrator.run(sent(ASKED, ANSWERED))
    id_ = first["stored_ids"][0]
    await orchestrator.run({"operation": "delete", "query": {"id": id_}})  # works for a deleted message, too
    await forget(orchestrator, id=id_)
    assert not (await orchestrator.run({"operation": "restore", "query": {"id": id_}}))["success"]
    await orchestrator.run({"operation": "delete", "channel": "c", "query": {}})
    await orchestrator.run({"operation": "restore", "channel": "c", "query": {}})
    shown = await orchestrator.registry.get_conversations("c", include_deleted=True)
    assert [message["text"] for message in shown] == [ANSWERED]


async def test_a_conversation_of_which_nothing_is_left_is_listed_again_when_it_gets_a_new_message(
    orchestrator: Orchestrator,
) -> None:
    await orchestrator.run(sent("one heron", "two herons"))
    await orchestrator.run(sent("three egrets", channel="d"))
    await forget(orchestrator, matching="heron")
    assert await channels(orchestrator) == ["d"]
    await orchestrator.run(sent("one heron", "two herons"))
    assert await channels(orchestrator) == ["d"]
    assert (await orchestrator.run(sent("one heron", "two herons", "and egrets?")))["new_count"] == 1
    assert sorted(await channels(orchestrator)) == ["c", "d"]


async def test_no_word_of_a_forgotten_channel_is_left_in_records_either(orchestrator: Orchestrator) -> None:
    await orchestrator.run({**sent(ASKED, ANSWERED), "metadata": {"title": "Zanzibarian parcels"}})
    await orchestrator.run({"operation": "extract", "query": {"text": "zanzibarian parcels"}})
    await orchestrator.run({"operation": "search", "query": {"text": "courier"}})
    answer = await forget(orchestrator, "c")
    assert {name: answer["receipt"][name] for name in ("channels", "messages", "results")} == {
        "channels": 1,
        "messages": 2,
        "results": 1,
    }
    assert traces(orchestrator, "zanzibarian", "quokkalike") == []


async def test_the_record_of_forgetting_does_not_name_the_conversation(orchestrator: Orchestrator) -> None:
    await orchestrator.run(sent(ASKED, ANSWERED, channel="parcelsquarrel"))
    named = {"nickname": "quokkalike", "tags": ["zanzibarian"]}
    assert (await orchestrator.run({"operation": "tag", "channel": "parcelsquarrel", "query": named}))["success"]
    await forget(orchestrator, "parcelsquarrel", dry_run=True)
    await forget(orchestrator, "parcelsquarrel")
    assert traces(orchestrator, "quokkalike", "zanzibarian", "parcelsquarrel") == []


AGAIN = {
    "as it was": sent(ASKED, ANSWERED),
    "grown": sent(ASKED, ANSWERED, THEN),
    "only what is new": sent(THEN),
    "under another name": sent(ASKED, ANSWERED, channel="other"),
}


async def test_a_forgotten_channel_sent_again_is_not_stored(
    orchestrator: Orchestrator, subtests: pytest.Subtests
) -> None:
    await orchestrator.run(sent(ASKED, ANSWERED))
    await forget(orchestrator, "c")
    for how, again in AGAIN.items():
        with subtests.test(how):
            answer = await orchestrator.run(again)
            assert answer["success"]
            assert "it was forgotten" in answer["not_kept"]
            assert await channels(orchestrator) == []


async def test_another_conversation_that_begins_with_a_forgotten_message_is_stored(orchestrator: Orchestrator) -> None:
    await orchestrator.run(sent("continue", "Where were we?"))
    await forget(orchestrator, "c")
    await orchestrator.run(sent("continue", "I read the tests first.", channel="d"))
    assert await channels(orchestrator) == ["d"]


async def test_a_forgotten_session_stays_forgotten_when_its_file_grows_and_when_a_hook_reports_it(
    orchestrator: Orchestrator, tmp_path: Path
) -> None:
    dialogue = Dialogue(session_id(1))
    dialogue.user(ASKED, promptSource="typed")
    dialogue.says(ANSWERED, "msg_1")
    write(tmp_path / ".claude", dialogue)
    await sync(orchestrator, READERS, Paths(tmp_path, {}))
    [name] = await channels(orchestrator)
    await forget(orchestrator, name)
    dialogue.user(THEN, promptSource="typed")
    write(tmp_path / ".claude", dialogue)
    await sync(orchestrator, READERS, Paths(tmp_path, {}))
    payload = {"session_id": session_id(1), "prompt": "Who else knows?"}
    spool.append(str(tmp_path), {"source": "claude-code", "event": "UserPromptSubmit", "at": 1e9, "payload": payload})
    assert await drain(orchestrator, tmp_path)
    assert await channels(orchestrator) == []
    assert traces(orchestrator, "zanzibarian", "quokkalike", "fetches them", "who else") == []


@pytest.mark.both_databases
async def test_forgetting_by_words_time_and_project_can_be_previewed(orchestrator: Orchestrator) -> None:
    old = {"timestamp": "2024-01-01T00:00:00Z"}
    await orchestrator.run({**sent(ASKED, ANSWERED, channel="old", **old), "metadata": {"project": "/a"}})
    await orchestrator.run({**sent(ASKED, "In the shed.", channel="new"), "metadata": {"project": "/b"}})
    await orchestrator.run({**sent("Something else", "entirely"), "metadata": {"project": "/c"}})
    dry = await forget(orchestrator, matching="zanzibarian", dry_run=True)
    assert (dry["receipt"]["is_dry_run"], dry["receipt"]["messages"]) == (True, 2)
    assert len(await channels(orchestrator)) == 3
    assert (await forget(orchestrator, before="2025-01-01T00:00:00Z"))["receipt"]["channels"] == 1
    assert (await forget(orchestrator, project="/b"))["receipt"]["messages"] == 2
    assert await channels(orchestrator) == ["c"]
    await run(orchestrator, "tag", "c", tags=["zanzibarians", "kept"])
    await forget(orchestrator, matching="zanzibarian")
    assert traces(orchestrator, "zanzibarian", "quokkalike") == []
    assert (await run(orchestrator, "list"))["sessions"][0]["tags"] == ["kept"]


@pytest.fixture
def shelved(orchestrator: Orchestrator, tmp_path: Path) -> Orchestrator:
    return Orchestrator(
        orchestrator.registry,
        local_files=LocalFiles(tmp_path / "backups", [], Paths(tmp_path, {}), tmp_path / "resume"),
    )


async def run(orchestrator: Orchestrator, operation: str, channel: str | None = None, **query: Any) -> dict[str, Any]:
    answer = await orchestrator.run({"operation": operation, "channel": channel, "query": query})
    assert answer["success"], answer
    return answer


async def test_restoring_a_backup_returns_nothing_forgotten(shelved: Orchestrator) -> None:
    kept = await shelved.run(sent(ASKED, ANSWERED, THEN, channel="kept"))
    await shelved.run(sent("Hold the zanzibarian door.", channel="gone", meta={"session_id": "s-1"}))
    backup = await run(shelved, "create_backup", stores=False)
    receipt = (await forget(shelved, id=kept["stored_ids"][1]))["receipt"]
    assert receipt["backups"] == [Path(backup["path"]).name]
    await forget(shelved, "gone")
    await run(shelved, "restore_backup", path=backup["path"])
    assert await channels(shelved) == ["kept"]
    assert await texts_of(shelved, "kept") == [ASKED, THEN]
    assert traces(shelved, "quokkalike", "hold the") == []
    again = await shelved.run(sent("And the window?", channel="gone"))
    assert "it was forgotten" in again["not_kept"]


async def test_a_test_case_is_forgotten_with_the_message_it_should_find_and_by_its_words(
    orchestrator: Orchestrator,
) -> None:
    stored = (await orchestrator.run(sent(ASKED, ANSWERED, THEN)))["stored_ids"]
    for at, words in enumerate(("northern gate", "quokkalike courier", "in the morning")):
        question = {"operation": "search", "channel": None, "query": {"text": words}}
        await orchestrator.registry.write(partial(keep_expectation, request=question, message_id=stored[at]))
    assert (await forget(orchestrator, matching="quokkalike"))["receipt"]["cases"] == 1
    await forget(orchestrator, id=stored[0])
    assert [case["message_id"] for case in await orchestrator.registry.read(list_expectations)] == [stored[2]]
    assert traces(orchestrator, "quokkalike", "northern gate") == []


async def briefing_of(orchestrator: Orchestrator, **said: Any) -> str:
    await orchestrator.run(
        {**sent(**said), "messages": [{"role": "user", "text": ANSWERED, "timestamp": "2026-01-05T12:00:00Z"}]}
    )
    answer = await orchestrator.run({"operation": "daily_briefing", "query": {"date": "2026-01-05"}})
    assert answer["success"], answer
    return str(answer["briefing"]["text"])


@pytest.mark.parametrize("way", ["message", "channel", "matching"])
async def test_a_briefing_of_forgotten_messages_is_deleted(orchestrator: Orchestrator, way: str) -> None:
    assert "quokkalike" in await briefing_of(orchestrator)
    if way == "message":
        [message] = await orchestrator.registry.get_conversations("c")
        receipt = (await forget(orchestrator, id=message["id"]))["receipt"]
    elif way == "channel":
        receipt = (await forget(orchestrator, "c"))["receipt"]
    else:
        receipt = (await forget(orchestrator, matching="QUOKKALIKE"))["receipt"]
    assert receipt["results"] == 1
    assert traces(orchestrator, "quokkalike") == []


async def test_words_that_are_only_in_summaries_and_briefings_can_be_forgotten(orchestrator: Orchestrator) -> None:
    stored = await orchestrator.run({**sent("hello"), "metadata": {"title": "x"}})
    await orchestrator.run({"operation": "tag", "channel": "c", "query": {"title": "The quokkalike statue"}})
    await orchestrator.run({"operation": "tag", "channel": "c", "query": {"title": "Statues"}})
    question = {"operation": "search", "channel": None, "query": {"text": "quokkalike parcels"}}
    keep = partial(keep_expectation, request=question, message_id=stored["stored_ids"][0])
    await orchestrator.registry.write(keep)
    assert (await forget(orchestrator, matching="quokkalike"))["receipt"]["cases"] == 1
    assert traces(orchestrator, "quokkalike") == []
    refused = await orchestrator.run({"operation": "delete", "query": {"soft": False, "matching": "quokkalike"}})
    assert not refused["success"], "nothing is left to forget"


@pytest.mark.both_databases
async def test_a_backup_brings_back_no_question_briefing_title_tag_or_metadata_that_was_forgotten(
    shelved: Orchestrator,
) -> None:
    await briefing_of(shelved)
    stored = await shelved.run({**sent("hello", channel="d"), "metadata": {"branch": "quokkalike"}})
    await run(shelved, "tag", "d", title="The quokkalike statue", add_tags=["quokkalikes", "quokkalike", "kept"])
    await run(shelved, "tag", "d", remove_tags=["quokkalike"])
    question = {"operation": "search", "channel": None, "query": {"text": "quokkalike parcels"}}
    await shelved.registry.write(partial(keep_expectation, request=question, message_id=stored["stored_ids"][0]))
    await shelved.run({"operation": "search", "query": {"text": "quokkalike"}})
    backup = await run(shelved, "create_backup", stores=False)
    receipt = (await forget(shelved, matching="quokkalike"))["receipt"]
    assert receipt["texts"] == 3  # the branch has the name of the removed tag
    await run(shelved, "restore_backup", path=backup["path"])
    assert traces(shelved, "quokkalike") == []
    assert [one["tags"] for one in (await run(shelved, "list"))["sessions"]] == [["kept"]]


@pytest.mark.both_databases
async def test_a_file_written_for_another_client_is_deleted_with_its_conversation(
    orchestrator: Orchestrator, tmp_path: Path
) -> None:
    drafts = tmp_path / "resume"
    drafts.mkdir()
    (drafts / "old.json").write_text(f'{{"text": "{ANSWERED}"}}')
    (drafts / "other.json").write_text("{}")
    asked = Orchestrator(
        orchestrator.registry, local_files=LocalFiles(tmp_path / "backups", [], Paths(tmp_path, {}), drafts)
    )
    await asked.run(sent(ASKED, ANSWERED))
    assert (await forget(asked, matching="quokkalike"))["receipt"]["files"] == 1
    assert [file.name for file in drafts.iterdir()] == ["other.json"]


NOTATIONS = {
    "파란 고래": "고래",
    'the "grey" lynx': "lynx",
    "C:\\lairs": "lairs",
    "80% stoat": "stoat",
    "ЖУРАВЛЬ": "журавль",
}
"""Words to forget, and the rarest of them."""


@pytest.mark.both_databases
async def test_words_are_forgotten_in_every_notation_in_which_they_are_stored(
    orchestrator: Orchestrator, subtests: pytest.Subtests
) -> None:
    for words, rare in NOTATIONS.items():
        with subtests.test(words):
            tool = {"name": "Bash", "params": {"command": f"ls '{words}'"}}
            logged = sent("look", "nothing", channel=f"c{len(words)}", tool=tool)
            await orchestrator.run({**logged, "metadata": {"note": {"of": words}}})
            await orchestrator.run(sent(normalize("NFD", words), channel=f"from a Mac {len(words)}"))
            await orchestrator.run({"operation": "search", "query": {"text": words, "to": "2001-01-01T00:00:00Z"}})
            await orchestrator.registry.write(partial(save_view, name=rare, address="/?" + urlencode({"q": words})))
            receipt = (await forget(orchestrator, matching=words.lower()))["receipt"]
            assert (receipt["messages"], receipt["views"]) == (3, 1)
            escaped = quote(rare).lower(), quote(rare.upper()).lower()
            assert traces(orchestrator, rare, normalize("NFD", rare), *escaped) == []


async def test_a_forgotten_title_does_not_come_back_with_the_next_message(orchestrator: Orchestrator) -> None:
    told = {"metadata": {"title": "The quokkalike statue", "branch": "quokkalike", "model": "m"}}
    await orchestrator.run({**sent(ASKED, THEN), **told})
    await forget(orchestrator, matching="quokkalike")
    assert (await orchestrator.run({**sent(ASKED, THEN, "The baker."), **told}))["new_count"] == 1
    assert traces(orchestrator, "quokkalike") == []
    assert "'model': 'm'" in "".join(rows_of(orchestrator.registry))


@pytest.mark.both_databases
async def test_a_forgotten_message_or_title_of_a_session_is_not_read_again(
    orchestrator: Orchestrator, tmp_path: Path
) -> None:
    dialogue = Dialogue(session_id(1))
    dialogue.aside("custom-title", customTitle="The quokkalike statue", sessionId=dialogue.session_id)
    dialogue.user(ASKED, promptSource="typed")
    dialogue.says(ANSWERED, "msg_1")
    write(tmp_path / ".claude", dialogue)
    await sync(orchestrator, READERS, Paths(tmp_path, {}))
    [name] = await channels(orchestrator)
    await forget(orchestrator, name, matching="QUOKKALIKE")
    dialogue.user(THEN, promptSource="typed")
    write(tmp_path / ".claude", dialogue)
    await sync(orchestrator, READERS, Paths(tmp_path, {}))
    assert await texts_of(orchestrator, name) == [ASKED, THEN]
    assert traces(orchestrator, "quokkalike") == []


async def test_a_restored_older_backup_lets_no_later_backup_bring_a_forgotten_message_back(
    shelved: Orchestrator,
) -> None:
    await shelved.run(sent("hello"))
    first = await run(shelved, "create_backup", stores=False)
    await shelved.run(sent("hello", ANSWERED))
    second = await run(shelved, "create_backup", stores=False)
    await forget(shelved, matching="quokkalike")
    for backup in (first, second):
        await run(shelved, "restore_backup", path=backup["path"])
        assert traces(shelved, "quokkalike") == []
    assert await texts_of(shelved) == ["hello"]


async def test_no_copy_of_a_forgotten_row_is_left_in_unused_database_pages(orchestrator: Orchestrator) -> None:
    for number in range(40):
        word = "quokkalike" if number % 2 else "heron"
        await orchestrator.run(sent(f"hello {number}", channel=f"c{number}"))
        await run(orchestrator, "tag", f"c{number}", title="First" * (1 + number % 9), add_tags=[f"{word} {number}"])
        await run(orchestrator, "tag", f"c{number}", title="Then it is longer" * (1 + number % 5))
    await forget(orchestrator, matching="quokkalike")
    assert traces(orchestrator, "quokkalike") == []


@pytest.mark.both_databases
async def test_a_backup_brings_back_no_words_of_a_run_that_was_shortened_later(
    shelved: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_runs, "NEWEST", 10)
    monkeypatch.setattr(recorded_runs, "SHORTEN_EVERY", 5)
    await shelved.run(sent("hello"))
    await run(shelved, "tag", "c", nickname="quokkalike-statue")
    await run(shelved, "tag", "c", add_tags=["kept"])  # its result names the nickname, its request does not
    backup = await run(shelved, "create_backup", stores=False)
    for number in range(20):
        await shelved.run(sent(f"hello {number}", channel="d"))
    await forget(shelved, matching="quokkalike")
    await run(shelved, "restore_backup", path=backup["path"])
    assert traces(shelved, "quokkalike") == []
