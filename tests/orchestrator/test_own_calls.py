"""Test that a search finds the conversation asked for, never the chats in which it was asked for before."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import TextContent

from mcp_server.server import create_server
from orchestrator.answer.digests import hint_text, recap, start_note
from orchestrator.service import Orchestrator
from orchestrator.sync import spool
from orchestrator.sync.drain import drain
from orchestrator.sync.sync import sync
from registry.ingest.merge_channels import merge_channels
from registry.ingest.own_calls import OTHER_TOOLS, RECALL_TOOLS
from registry.search.retrieval import find_messages
from registry.search.scope import Scope
from registry.storage.conversations.channels import channels_by_number, list_channels
from registry.storage.conversations.messages import by_numbers
from registry.storage.index.rebuild_index import reindex
from registry.storage.paging import Page
from registry.text.times.spans import Span
from sources.base import Paths
from sources.readers import READERS
from tests.sources.claude_code import claude_code_files
from tests.sources.claude_code.claude_code_files import Dialogue
from tests.sources.codex import codex_files
from tests.sources.codex.codex_files import Rollout
from tests.sources.cursor.cursor_files import CursorFiles, asked, called
from tests.sources.gemini import gemini_files
from tests.sources.gemini.gemini_files import Chat
from tests.sources.qwen import qwen_files

pytestmark = pytest.mark.anyio

ASKED = "continue the fibonacci conversation"
MARK = "recalled: extract — fibonacci memoize"
TOLD = "Memoize fibonacci with functools.cache: it is O(n) then."
ANSWER = json.dumps(
    {
        "ok": True,
        "tool": "extract",
        "result": {"channel": "long-ago", "messages": [{"role": "assistant", "text": TOLD}]},
    }
)
PARAMS = {"query": {"text": "fibonacci memoize", "also": ["피보나치"]}}
CALL = "mcp__context-registry__extract"


async def run_sync(orchestrator: Orchestrator, home: Path) -> int:
    reports = await sync(orchestrator, READERS, Paths(home, {}))
    assert [report.skipped for report in reports if report.skipped] == []
    return sum(report.new_messages for report in reports)


async def found(orchestrator: Orchestrator, words: str = "fibonacci memoize functools O(n)") -> list[str]:
    """Return the texts that hold one of the words, best first."""

    def work(tx: Any) -> list[str]:
        own = [one.candidate.number for one in find_messages(tx, words, Scope()).ranked if one.base_score]
        texts = {row.number: row.text for row in by_numbers(tx, own)}
        return [texts[number] for number in own]

    return await orchestrator.registry.read(work)


async def channels(orchestrator: Orchestrator, words: str) -> list[str]:
    """Return the channels found, best first."""

    def work(tx: Any) -> list[str]:
        ranked = find_messages(tx, words, Scope()).channels
        rows = channels_by_number(tx, [one.number for one in ranked])
        return [rows[one.number].name for one in ranked]

    return await orchestrator.registry.read(work)


async def stored(orchestrator: Orchestrator) -> list[dict[str, Any]]:
    """Return the messages of the only channel."""
    page = await orchestrator.registry.read(lambda tx: list_channels(tx, {}, Page(limit=100)))
    [channel] = page["items"]
    return await orchestrator.registry.get_conversations(channel["channel"], limit=1000)


async def roles_and_texts(orchestrator: Orchestrator) -> list[tuple[str, str]]:
    return [(message["role"], message["text"]) for message in await stored(orchestrator)]


def claude_asks(home: Path, name: str = CALL, answer: str | None = ANSWER, params: Any = PARAMS) -> Dialogue:
    """Return a chat in Claude Code that only asks for another one, with or without its answer."""
    talk = Dialogue(claude_code_files.session_id(7))
    talk.user(ASKED)
    talk.calls(name, params, "toolu_1", "msg_1")
    if answer is not None:
        talk.result("toolu_1", [{"type": "text", "text": answer}])
        talk.says("That was about speed.", "msg_2")
    claude_code_files.write(home / ".claude", talk)
    return talk


async def test_answers_of_our_tools_in_claude_code_are_not_found_again(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    talk = claude_asks(empty_home)
    assert await run_sync(orchestrator, empty_home) == 3
    assert await roles_and_texts(orchestrator) == [
        ("user", ASKED),
        ("tool", MARK),
        ("assistant", "That was about speed."),
    ]
    assert await found(orchestrator) == []
    assert TOLD not in json.dumps(await stored(orchestrator))
    talk.user("And now in Rust, please: fibonacci with a table.")
    claude_code_files.write(empty_home / ".claude", talk)
    assert await run_sync(orchestrator, empty_home) == 1
    assert await found(orchestrator) == ["And now in Rust, please: fibonacci with a table."]
    assert [text for _, text in await roles_and_texts(orchestrator)][:2] == [ASKED, MARK]


async def test_answers_of_our_tools_in_codex_are_not_found_again(orchestrator: Orchestrator, empty_home: Path) -> None:
    talk = Rollout(codex_files.thread_id(7))
    talk.meta()
    talk.turn("t1")
    talk.message("user", ASKED)
    talk.call("context-registry__extract", PARAMS, "call_1", ANSWER)
    talk.message("assistant", "That was about speed.")
    codex_files.write(empty_home / ".codex", talk)
    assert await run_sync(orchestrator, empty_home) == 3
    assert ("tool", MARK) in await roles_and_texts(orchestrator)
    assert await found(orchestrator) == []


NOTES = (
    *(start_note.compose_note([], sentences, "s1")["note"] for sentences in (["use pnpm"], [])),
    *(f"{head}\n- {TOLD}" for head in (start_note.HEAD, recap.HEAD, hint_text.HEAD)),
    f"Context Registry, quoted from 2026-05-04: {TOLD}",
)


@pytest.mark.parametrize("client", ["codex", "gemini-cli", "qwen-code"])
async def test_text_that_our_hooks_give_to_a_model_is_not_stored_in_its_chat(
    orchestrator: Orchestrator, empty_home: Path, client: str
) -> None:
    """Otherwise a conversation's words would stay there when it is forgotten."""
    mark = "told: a note of Context Registry"
    codex, qwen, gemini, expected = Rollout(codex_files.thread_id(7)), qwen_files.Chat(), Chat(), []
    codex.meta()
    for at, note in enumerate(NOTES):
        asked, other = f"{ASKED} {at}", f"<environment_context>{note}</environment_context>"
        if client == "codex":
            codex.message("developer", note)
            codex.message("developer", f"Answer in Korean.\n\n{note}\n\nBe brief.")
            codex.message("user", other)
            expected += [("system", mark), ("system", f"Answer in Korean.\n\n{mark}\n\nBe brief."), ("system", other)]
        elif client == "qwen-code":
            tag = "qwen:user-prompt-submit-context"
            qwen.user(asked, f"<{tag}>\n{note}\n</{tag}>", systemPayload={"displayText": asked})
            expected += [("system", mark), ("user", asked)]
        else:
            tagged, files = (
                f"<hook_context>{note}</hook_context>",
                "\n--- Content from referenced files ---\nx = 1\n---",
            )
            gemini.user(f"{tagged}\n\n{asked}", files, tagged)
            expected += [("system", f"{mark}\n{files}{mark}"), ("user", asked)]
    if client == "codex":
        codex_files.write(empty_home / ".codex", codex)
    elif client == "qwen-code":
        qwen_files.write(empty_home / ".qwen", qwen)
    else:
        gemini_files.write(empty_home / ".gemini", gemini)
    await run_sync(orchestrator, empty_home)
    assert sorted(await roles_and_texts(orchestrator)) == sorted(expected)
    assert mark not in await found(orchestrator, mark)


async def test_a_system_message_that_only_mentions_the_product_is_stored_unchanged(orchestrator: Orchestrator) -> None:
    rules = "Context Registry: our product. Deploy on Mondays."
    messages = [{"role": "system", "text": rules}, {"role": "user", "text": ASKED}]
    await orchestrator.run({"operation": "save", "channel": "c", "messages": messages})
    assert ("system", rules) in await roles_and_texts(orchestrator)


async def test_answers_of_our_tools_in_cursor_are_not_found_again(orchestrator: Orchestrator, empty_home: Path) -> None:
    wrapped = {"tools": [{"name": "extract", "parameters": json.dumps(PARAMS), "serverName": "context-registry"}]}
    call = called("b-2", "mcp_context-registry_extract", wrapped, {"result": ANSWER})
    cursor = CursorFiles(empty_home / ".config" / "Cursor" / "User")
    cursor.conversation("c-1", asked("b-1", ASKED), call)
    await run_sync(orchestrator, empty_home)
    assert await roles_and_texts(orchestrator) == [("user", ASKED), ("tool", MARK)]
    assert await found(orchestrator) == []


NAMES = [
    "mcp__context-registry__extract",
    "mcp__plugin_context-registry_context-registry__extract",
    "mcp_context-registry_extract",
    "mcp-context-registry-user-context-registry-extract",
    "mcp_context-regis_extract",
    "context-registry.extract",
    "context_registry_extract",
    "context-registry-extract",
]


async def test_our_tools_are_recognised_by_any_name_a_client_gives_them(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    talk = claude_asks(empty_home, NAMES[0], "It timed out.")
    for at, name in enumerate(NAMES[1:], 2):
        talk.calls(name, PARAMS, f"toolu_{at}", f"msg_1{at}")
        talk.result(f"toolu_{at}", [{"type": "text", "text": "It timed out."}])
    claude_code_files.write(empty_home / ".claude", talk)
    await run_sync(orchestrator, empty_home)
    assert [text for role, text in await roles_and_texts(orchestrator) if role == "tool"] == [MARK] * len(NAMES)


@pytest.mark.parametrize("name", ["extract", "mcp__memory__extract"])
async def test_a_tool_with_the_name_of_one_of_ours_counts_only_if_it_answers_in_our_format(
    orchestrator: Orchestrator, empty_home: Path, name: str
) -> None:
    claude_asks(empty_home, name, json.dumps({"ok": True, "pages": [TOLD]}))
    await run_sync(orchestrator, empty_home)
    assert len(await found(orchestrator)) == 2
    claude_asks(empty_home, name, json.dumps([{"type": "text", "text": ANSWER}]))
    assert await run_sync(orchestrator, empty_home) == 0
    assert await found(orchestrator) == []
    assert ("tool", MARK) in await roles_and_texts(orchestrator)


async def test_reading_a_file_that_quotes_our_answers_is_stored_unchanged(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    claude_asks(empty_home, "Read", f"# The interface\n\n{ANSWER}", {"file_path": "docs/interface.md"})
    await run_sync(orchestrator, empty_home)
    assert len(await found(orchestrator)) == 2


async def test_a_chat_that_logs_itself_every_turn_is_found_by_its_questions(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    sent = {"channel": "c", "messages": [{"role": "user", "text": "How do I memoize fibonacci?"}]}
    claude_asks(empty_home, "mcp__context-registry__conversation_log", '{"ok":true}', sent)
    await run_sync(orchestrator, empty_home)
    assert ("tool", "called: conversation_log — c") in await roles_and_texts(orchestrator)
    assert await found(orchestrator) == [ASKED]


async def test_a_long_message_is_found_although_the_model_searched_because_of_it(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    talk = claude_asks(empty_home)
    question = "Write a memoize decorator for fibonacci and " + "a test of it, " * 40
    talk.records[0]["message"]["content"] = question
    claude_code_files.write(empty_home / ".claude", talk)
    await run_sync(orchestrator, empty_home)
    assert await found(orchestrator) == [question.strip()]


async def test_a_question_is_found_until_the_tool_call_is_read(orchestrator: Orchestrator, empty_home: Path) -> None:
    talk = Dialogue(claude_code_files.session_id(7))
    talk.user(ASKED)
    claude_code_files.write(empty_home / ".claude", talk)
    await run_sync(orchestrator, empty_home)
    assert await found(orchestrator) == [ASKED]
    claude_asks(empty_home, answer=None)
    await run_sync(orchestrator, empty_home)
    assert await found(orchestrator) == []
    claude_asks(empty_home)
    await run_sync(orchestrator, empty_home)
    assert await found(orchestrator) == []
    assert [text for _, text in await roles_and_texts(orchestrator)] == [ASKED, MARK, "That was about speed."]


async def test_a_question_sent_by_a_hook_is_found_until_the_tool_call_is_read(
    orchestrator: Orchestrator, empty_home: Path, tmp_path: Path
) -> None:
    talk = claude_asks(empty_home)
    at = datetime.fromisoformat(talk.records[0]["timestamp"]).astimezone(UTC).timestamp()
    payload = {"session_id": talk.session_id, "prompt": ASKED, "prompt_id": "p-1", "cwd": claude_code_files.CWD}
    event = {"source": "claude-code", "event": "UserPromptSubmit", "at": at, "payload": payload}
    spool.append(str(tmp_path / "spool"), event)
    await drain(orchestrator, tmp_path / "spool")
    assert await found(orchestrator) == [ASKED]
    assert await run_sync(orchestrator, empty_home) == 2
    assert await found(orchestrator) == []
    spool.append(str(tmp_path / "spool"), event)
    await drain(orchestrator, tmp_path / "spool")
    assert [text for _, text in await roles_and_texts(orchestrator)] == [ASKED, MARK, "That was about speed."]


def pasted_result(text: str) -> dict[str, Any]:
    return {"role": "tool", "text": text}


def result_with_name(text: str) -> dict[str, Any]:
    return {"role": "tool", "text": text, "name": CALL, "result": text}


def result_with_tool(text: str) -> dict[str, Any]:
    return {"role": "tool", "text": f"extract\n{text}", "tool": {"name": "extract", "params": PARAMS, "result": text}}


@pytest.mark.parametrize(
    ("shape", "mark"),
    [
        (pasted_result, "recalled: extract — long-ago"),
        (result_with_name, "recalled: extract — long-ago"),
        (result_with_tool, MARK),
    ],
)
async def test_answers_of_our_tools_are_logged_as_one_mark(
    orchestrator: Orchestrator, shape: Callable[[str], dict[str, Any]], mark: str
) -> None:
    chat = [{"role": "user", "text": ASKED}, shape(ANSWER), {"role": "assistant", "text": "That was about speed."}]
    log = {"operation": "conversation_log", "channel": "c", "messages": chat, "source": "cursor"}
    first = await orchestrator.run(log)
    again = await orchestrator.run({**log, "messages": [*chat, {"role": "user", "text": "Thanks!"}]})
    assert (len(set(first["stored_ids"])), again["stored_ids"][:3]) == (3, first["stored_ids"])
    assert [text for _, text in await roles_and_texts(orchestrator)] == [
        ASKED,
        mark,
        "That was about speed.",
        "Thanks!",
    ]
    assert TOLD not in json.dumps(await stored(orchestrator))
    assert await found(orchestrator) == []


async def test_a_chat_that_asks_ranks_after_the_one_it_asks_for(orchestrator: Orchestrator, empty_home: Path) -> None:
    talk = claude_asks(empty_home)
    talk.aside("ai-title", aiTitle="Continue the fibonacci conversation", sessionId=talk.session_id)
    claude_code_files.write(empty_home / ".claude", talk)
    await run_sync(orchestrator, empty_home)
    chat = [{"role": "user", "text": "How do I make fibonacci fast?"}, {"role": "assistant", "text": TOLD}]
    await orchestrator.run({"operation": "conversation_log", "channel": "c", "messages": chat, "source": "cursor"})
    assert await channels(orchestrator, ASKED) == ["c"]
    answer = await orchestrator.run({"operation": "extract", "query": {"text": ASKED}})
    assert (answer["channel"], answer.get("candidates") or []) == ("c", [])
    talk.user("And now in Rust: fibonacci with a table.")
    claude_code_files.write(empty_home / ".claude", talk)
    await run_sync(orchestrator, empty_home)
    assert len(await channels(orchestrator, ASKED)) == 2


async def test_messages_of_the_asking_chat_get_no_score_for_their_date(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    claude_asks(empty_home)
    await run_sync(orchestrator, empty_home)
    day = Span(claude_code_files.BEGIN, claude_code_files.BEGIN + timedelta(days=1))
    ranked = await orchestrator.registry.read(lambda tx: find_messages(tx, "nothing", Scope(), dates=[day]).ranked)
    assert [one.candidate.role for one in ranked if one.base_score] == ["assistant"]


async def test_a_question_stays_excluded_when_its_channel_turns_out_to_be_another(orchestrator: Orchestrator) -> None:
    log = {"operation": "conversation_log", "source": "cursor"}
    question, answer = {"role": "user", "text": ASKED}, {"role": "assistant", "text": "That was about speed."}
    await orchestrator.run({**log, "channel": "session", "messages": [question, answer]})
    await orchestrator.run({**log, "channel": "named", "messages": [question, pasted_result(ANSWER), answer]})
    await orchestrator.registry.write(lambda tx: merge_channels(tx, 2, 1))
    assert [role for role, _ in await roles_and_texts(orchestrator)].count("tool") == 1
    assert await found(orchestrator) == []


async def test_excluded_messages_stay_excluded_when_the_index_is_rebuilt(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    claude_asks(empty_home)
    await run_sync(orchestrator, empty_home)
    assert await reindex(orchestrator.registry, lambda done, total: None, everything=True) == 3
    assert await found(orchestrator) == []
    assert await found(orchestrator, "speed") == ["That was about speed."]


async def test_a_mark_can_be_deleted_and_restored(orchestrator: Orchestrator, empty_home: Path) -> None:
    claude_asks(empty_home)
    await run_sync(orchestrator, empty_home)
    for message in await stored(orchestrator):
        await orchestrator.registry.delete_conversation(message["id"])
    await reindex(orchestrator.registry, lambda done, total: None, everything=True)
    assert await found(orchestrator, "speed") == []


async def test_text_of_our_prompts_is_not_found_as_the_users(orchestrator: Orchestrator) -> None:
    async with Client(create_server(orchestrator.run)) as client:
        [given] = (await client.get_prompt("continue", {"text": "fibonacci memoize"})).messages
    assert isinstance(given.content, TextContent)
    chat = [{"role": "user", "text": given.content.text}, {"role": "assistant", "text": "Which one?"}]
    await orchestrator.run({"operation": "conversation_log", "channel": "c", "messages": chat, "source": "cursor"})
    assert await found(orchestrator) == []
    assert len(await stored(orchestrator)) == 2


async def test_a_question_logged_by_the_model_is_excluded_once_its_session_has_recalled(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    chat = [{"role": "user", "text": ASKED}, {"role": "assistant", "text": "That was about speed."}]
    meta = {"session_id": claude_code_files.session_id(7), "project": claude_code_files.CWD}
    log = {"operation": "conversation_log", "channel": "c", "messages": chat, "source": "claude-code"}
    await orchestrator.run({**log, "metadata": meta})
    assert await found(orchestrator) == [ASKED]
    claude_asks(empty_home)
    assert await run_sync(orchestrator, empty_home) == 1
    assert await found(orchestrator) == []
    await orchestrator.run({**log, "metadata": meta})
    assert len(await stored(orchestrator)) == 3


async def test_every_tool_of_the_server_is_recognised_as_ours(orchestrator: Orchestrator) -> None:
    async with Client(create_server(orchestrator.run)) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert names <= {*RECALL_TOOLS, *OTHER_TOOLS}
