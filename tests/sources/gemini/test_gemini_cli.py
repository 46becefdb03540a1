"""Gemini CLI: chats as a user sees them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from registry.domain import Role, Session
from sources.base import FoundSession, Skipped
from sources.gemini import reader as gemini_reader
from sources.gemini.reader import GeminiCli
from sources.kit import files
from tests.sources.gemini.gemini_files import SHOP, Chat, call, session_id, slot_of, working_chat, write
from tests.sources.reading import texts_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The client's folder with one project and no chat."""
    folder = tmp_path / "home" / ".gemini"
    (folder / "tmp" / "shop").mkdir(parents=True)
    (folder / "tmp" / "shop" / ".project_root").write_text(SHOP + "\n", encoding="utf-8")
    return folder


def read(chat: Chat, project: str | None = SHOP) -> Session:
    """Parse the records of a journal, without a file."""
    reading = gemini_reader.GeminiChat(chat.session, project or "")
    for record in [chat.header, *chat.lines]:
        reading.read(record)
    return reading.session()


def scan(root: Path, seen: Mapping[str, str] | None = None) -> list[FoundSession | Skipped]:
    return list(GeminiCli().sessions(root, seen or {}))


def read_changed(root: Path, seen: Mapping[str, str] | None = None) -> dict[str, FoundSession]:
    """Return the store's changed chats by id."""
    return {each.session.session_id: each for each in scan(root, seen) if isinstance(each, FoundSession)}


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_a_chat_is_read_in_order_in_either_form(root: Path, form: str) -> None:
    write(root, working_chat(), form=form)
    [each] = read_changed(root).values()

    assert texts_of(each.session) == [
        ("system", "This is the Gemini CLI. We are setting up the context for our chat.\nToday is Tuesday."),
        ("user", "Why does the basket lose its items? 안녕"),
        ("thinking", "**Reading**\nThe basket is in basket.py."),
        ("assistant", "I will look."),
        ("tool", "read_file basket.py\n\nreturn []"),
        ("tool", "run_shell_command pytest\n\n1 failed"),
        ("tool", "write_file a\n\nUser did not allow tool call"),
        ("system", "Request cancelled."),
        ("error", "[API Error: quota]"),
        ("assistant", "It makes a new list.\n\n```python\nreturn items\n```"),
    ]
    assert (each.session.session_id, each.session.project) == (session_id(1), SHOP)
    assert each.session.title == "Why does the basket lose its items? 안녕"
    assert [message.more.get("injected") for message in each.session.messages if message.role is Role.SYSTEM] == [
        True,
        True,
    ]
    assert each.skipped == ()


def test_messages_keep_their_ids_models_times_and_tokens() -> None:
    _, asked, thought, answer, *_ = read(working_chat()).messages

    assert asked.more == {"native_id": "m1"}
    assert thought.more["native_id"] == "m3:thinking"
    assert thought.more["usage"] == {"input_tokens": 90, "output_tokens": 4}
    assert answer.more == {"native_id": "m3", "model": "gemini-3-flash-preview"}
    times = [message.timestamp for message in (asked, thought, answer) if message.timestamp]
    assert len(times) == 3
    assert times == sorted(set(times)), "every message has its own time"


def test_a_tool_call_keeps_its_parameters_result_and_outcome() -> None:
    tools = [message.more["tool"] for message in read(working_chat()).messages if "tool" in message.more]

    assert tools[0] == {
        "name": "read_file",
        "params": {"file_path": f"{SHOP}/basket.py"},
        "result": "return []",
        "status": "completed",
    }
    assert [tool["status"] for tool in tools] == ["completed", "failed", "rejected"]


def test_a_failed_command_is_recognised_by_its_exit_code() -> None:
    chat = Chat()
    ran = "<untrusted_context>\nOutput: {}\nProcess Group PGID: 7\n</untrusted_context>"
    outputs = {"make a": ran.format("make: no rule\nExit Code: 2"), "make b": ran.format("built")}
    chat.gemini("", *(call("run_shell_command", {"command": command}, output) for command, output in outputs.items()))
    assert [message.more["tool"]["status"] for message in read(chat).messages] == ["failed", "completed"]


def test_the_displayed_text_is_used_if_a_result_is_not_stored() -> None:
    cases: list[tuple[object, str]] = [
        ("plain", "plain"),
        ({"fileDiff": "--- a\n+++ b"}, "--- a\n+++ b"),
        ([[{"text": "red  "}, {"text": "  "}], [{"text": "green"}], 7], "red\ngreen\n"),
        ({"summary": "FoundSession 1 item(s).", "files": ["a"]}, "FoundSession 1 item(s)."),
        ({"other": 1}, '{"other": 1}'),
    ]
    for display, shown in cases:
        chat = Chat()
        chat.gemini("", call("shell", {}, None, resultDisplay=display))
        [message] = read(chat).messages
        assert message.more["tool"]["result"] == shown


def test_a_running_call_has_no_result_until_it_is_written() -> None:
    chat = Chat()
    message = chat.gemini("Running.", call("shell", {"command": "make"}, None, "executing"))
    assert read(chat).messages[-1].more["tool"]["status"] == "pending"

    chat.lines.append(message | {"toolCalls": [call("shell", {"command": "make"}, "done")]})
    assert texts_of(read(chat)) == [("assistant", "Running."), ("tool", "shell make\n\ndone")]


def test_files_of_a_prompt_are_named_and_their_contents_separated() -> None:
    chat = Chat()
    chat.user("Explain @src/a.py", "\n--- Content from referenced files ---", "\nContent from @src/a.py:\n", "x = 1\n")
    picture = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    chat.add("user", [{"text": "And this?"}, picture, {"functionResponse": {"name": "x"}}])
    chat.user("Long review instructions", displayContent="/review")

    explain, contents, look, review, expanded = read(chat).messages
    assert (explain.text, explain.more["attachments"]) == ("Explain @src/a.py", ["src/a.py"])
    assert (contents.role, contents.more["injected"], "x = 1" in contents.text) == (Role.SYSTEM, True, True)
    assert (look.text, look.more["attachments"]) == ("And this?", ["image/png"])
    assert (review.text, expanded.text, expanded.role) == ("/review", "Long review instructions", Role.SYSTEM)


def test_an_image_read_by_a_tool_is_not_a_question() -> None:
    chat = Chat()
    chat.user("What is in pic.png?")
    response = {"functionResponse": {"name": "read_file", "response": {"output": "Binary content provided"}}}
    chat.add("user", [response, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}])

    _, picture = read(chat).messages
    assert (picture.role, picture.text, picture.more["attachments"]) == (Role.SYSTEM, "[image/png]", ["image/png"])


def test_rewound_messages_are_kept_and_marked() -> None:
    chat = Chat()
    for text in ("one", "two", "three"):
        chat.user(text)
    chat.lines += [{"$rewindTo": "m1"}, {"$rewindTo": "unknown"}]
    chat.user("four")
    chat.lines.append(chat.lines[2])  # repeated

    standing = [message.text for message in read(chat).messages if "superseded" not in message.more]
    assert standing == ["one", "four", "three"]
    assert len(read(chat).messages) == 4


def test_a_summarised_history_keeps_its_original_messages() -> None:
    chat = working_chat()
    masked = {"id": "m1", "type": "user", "content": [{"text": "<masked>"}]}
    summary = {"id": "s1", "type": "user", "content": [{"text": "<state_snapshot>baskets</state_snapshot>"}]}
    chat.set(messages=[summary, {"id": "s2", "type": "gemini", "content": "Got it."}, masked])
    chat.user("Go on")

    session = read(chat)
    assert texts_of(session, Role.USER) == [
        ("user", "Why does the basket lose its items? 안녕"),
        ("user", "Go on"),
    ]
    assert texts_of(session)[-3:-1] == [
        ("system", "<state_snapshot>baskets</state_snapshot>"),
        ("system", "Got it."),
    ]


def test_messages_in_a_journals_header_are_read() -> None:
    chat = Chat()
    chat.set(messages=[{"id": "a", "type": "user", "content": "Hi"}, {"type": "gemini", "content": "Ho"}, None, 7])
    assert texts_of(read(chat)) == [("user", "Hi"), ("assistant", "Ho")]
    assert [message.more.get("time") for message in read(chat).messages] == ["inferred", "inferred"]


def test_the_title_is_the_summary_if_there_is_one() -> None:
    chat = working_chat()
    chat.set(summary="Basket bug")
    assert read(chat).title == "Basket bug"


def test_a_sub_agents_chat_names_its_callers_session(root: Path) -> None:
    write(root, working_chat())
    agent = Chat("qclszz", {"kind": "subagent", "summary": "Three baskets were found."})
    context = "\n<loaded_context>\nThe following are instructions provided by a tool server\n</loaded_context>"
    agent.user(context, "Find baskets")
    write(root, agent, agent_of=session_id(1))

    session = read_changed(root)["qclszz"].session
    assert texts_of(session) == [("user", "Find baskets"), ("system", context.strip())]
    assert (session.parent, session.title, session.meta["relation"]) == (session_id(1), "Find baskets", "sub-agent")


def test_the_project_is_found_by_its_note_name_hash_or_folder(root: Path) -> None:
    projects = {"projects": {"/home/ann/named": "named", "/home/ann/hashed": "other"}}
    (root / "projects.json").write_text(json.dumps(projects), encoding="utf-8")
    slots = ("shop", "named", slot_of("/home/ann/hashed"), slot_of(SHOP), "unknown", "nowhere")
    for number, slot in enumerate(slots):
        write(root, working_chat(number), slot=slot)
    for number, directories in ((4, ["/home/ann/listed"]), (5, [])):
        chat = Chat(session_id(number), {"projectHash": "f" * 64, "directories": directories})
        chat.user("Hi")
        write(root, chat, slot=slots[number])

    projects_found = [read_changed(root)[session_id(number)].session.project for number in range(6)]
    assert projects_found == [SHOP, "/home/ann/named", "/home/ann/hashed", SHOP, "/home/ann/listed", None]


def test_a_document_is_read_before_the_journal_to_which_it_was_converted(root: Path) -> None:
    document = write(root, Chat(session_id(1), {"summary": "Old"}), form="json")
    journal = write(root, working_chat())
    os.utime(document, (1, 1))
    found = [each for each in scan(root) if isinstance(each, FoundSession)]
    assert [each.key for each in found] == [str(document), str(journal.with_suffix(""))]
    assert [len(each.session.messages) for each in found] == [0, 10]


@pytest.mark.parametrize("damage", [b"", b"[1]", b'{"messages": [', b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_document_is_reported_once_and_the_others_are_read(root: Path, damage: bytes) -> None:
    write(root, working_chat(2))
    file = write(root, working_chat(3), form="json")
    file.write_bytes(damage)

    everything = scan(root)
    assert read_changed(root)[session_id(2)].session.messages
    damaged = next(each for each in everything if isinstance(each, FoundSession) and not each.session.messages)
    assert damaged.skipped[-1] == Skipped(str(file), "no conversation in it")
    assert scan(root, {each.key: each.fingerprint for each in everything if isinstance(each, FoundSession)}) == []


def test_a_document_too_large_for_memory_is_reported_and_the_others_are_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files.read_document, "__defaults__", (2**20,))
    write(root, working_chat(2))
    large = Chat(session_id(3))
    large.user("x" * 2**20)
    file = write(root, large, form="json")

    assert Skipped(str(file), "too large to be read as a whole") in scan(root)
    assert list(read_changed(root)) == [session_id(2)]


def test_unknown_records_are_counted(root: Path) -> None:
    chat = working_chat()
    chat.add("plan", "new")
    chat.lines.append({"brand": "new"})
    write(root, chat)

    [each] = read_changed(root).values()
    assert {skipped.what for skipped in each.skipped} == {"1 x message plan", "1 x record without type"}


def test_text_added_by_hooks_to_the_first_prompt_is_not_the_users() -> None:
    note, prompt, hint = (
        "<hook_context>A note.</hook_context>",
        "Why does it lose items?",
        "<hook_context>A hint.</hook_context>",
    )
    for parts, shown, injected in (
        ([f"{note}\n\n{prompt}"], None, note),
        ([f"{note}\n\n{prompt}", hint], f"{note}\n\n{prompt}", f"{note}\n\n{hint}"),
        ([prompt, hint], prompt, hint),
        ([f"{note}\n\n{prompt}"], f"<hook_context>A note on @a.</hook_context>\n\n{prompt}", note),
    ):
        chat = Chat()
        chat.user(*parts, **({"displayContent": shown} if shown else {}))
        assert texts_of(read(chat)) == [("user", prompt), ("system", injected)]
