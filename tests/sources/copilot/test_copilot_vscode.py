"""Copilot Chat in VS Code: sessions as a user sees them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from registry.domain import Role, Session
from sources.base import FoundSession, Paths, Skipped
from sources.copilot.chat import VsCodeChat
from sources.copilot.vscode import CopilotVscode, replayed
from sources.kit.jsonl import Damage
from tests.sources.copilot.copilot_files import (
    SHOP,
    Record,
    as_log,
    asked,
    chat,
    lines_of,
    note_workspace,
    session_id,
    tool,
    working_chat,
    working_log,
    write_chat,
)
from tests.sources.cursor.cursor_files import writing
from tests.sources.reading import texts_of
from tests.sources.untouched import opened_files, state_of

SAID = [
    ("user", "Why does the basket lose its items? 안녕"),
    ("thinking", "The basket first."),
    ("assistant", "I will look at `basket.py` now."),
    ("tool", "copilot_readFile Reading basket.py\n\nRead basket.py"),
    ("tool", "run_in_terminal pytest\n\n1 failed"),
    ("assistant", "It makes a new list.\n\n```python\nreturn items\n```"),
    ("user", "Fix it"),
    ("assistant", "Done."),
]


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A `User` folder with one empty workspace."""
    folder = tmp_path / "home" / ".config" / "Code" / "User"
    note_workspace(folder)
    return folder


def read(session: Record) -> Session:
    return VsCodeChat("file name", given=session, project=SHOP).session()


def scan(user: Path, seen: Mapping[str, str] | None = None) -> list[FoundSession | Skipped]:
    return list(CopilotVscode().sessions(user, seen or {}))


def read_changed(user: Path, seen: Mapping[str, str] | None = None) -> dict[str, FoundSession]:
    """Return the store's changed sessions by id."""
    return {each.session.session_id: each for each in scan(user, seen) if isinstance(each, FoundSession)}


def tools_of(session: Session) -> list[dict[str, Any]]:
    return [message.more["tool"] for message in session.messages if "tool" in message.more]


def index(user: Path, titles: dict[str, str], place: str = "workspaceStorage/w1") -> Path:
    """Write the client's list of sessions, in a database that also contains a secret."""
    entries = {key: {"sessionId": key, "title": title} for key, title in titles.items()}
    database = user / place / "state.vscdb"
    with writing(database) as connection:
        rows = [
            ("chat.ChatSessionStore.index", json.dumps({"version": 1, "entries": entries})),
            ("secret://x", "gho_1"),
        ]
        connection.executemany("INSERT INTO ItemTable VALUES (?, ?)", rows)
    return database


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_a_session_is_read_in_order_in_either_form(user: Path, form: str) -> None:
    given = working_chat()
    del given["requests"][0]["result"]["metadata"]
    write_chat(user, given, form=form)
    [each] = read_changed(user).values()

    assert texts_of(each.session) == SAID
    assert (each.session.title, each.session.project) == ("Basket bug", SHOP)
    assert each.session.meta == {}
    assert each.skipped == ()


def test_messages_keep_their_ids_models_attachments_and_times() -> None:
    question, thought, answer, *_ = read(working_chat()).messages

    assert question.more == {"native_id": "r1", "attachments": ["basket.py"]}
    assert thought.more == {"native_id": "r1:1", "model": "claude-sonnet-4-6", "time": "inferred"}
    assert answer.more == {"native_id": "r1:2", "model": "claude-sonnet-4-6", "time": "inferred"}
    assert answer.timestamp == question.timestamp
    assert read(chat(1, asked("r", "Hi", {"value": "Ho"}))).messages[1].more["model"] == "claude-sonnet-4.6"


def test_a_call_has_the_models_parameters_and_result_if_they_are_stored() -> None:
    given = working_chat()
    given["requests"][0]["response"] = [part for part in given["requests"][0]["response"] if "toolCallId" in part][:1]

    assert tools_of(read(given))[0] == {
        "name": "read_file",
        "params": {"filePath": f"{SHOP}/basket.py"},
        "result": "return []",
        "status": "completed",
    }
    given["requests"][0]["response"][0]["toolCallId"] = "another id, but as many calls as parts"
    assert tools_of(read(given))[0]["params"] == {"filePath": f"{SHOP}/basket.py"}
    given["requests"][0]["response"] = [{"value": "Nothing is shown of the call."}]
    assert texts_of(read(given))[1:3] == [
        ("assistant", "Nothing is shown of the call."),
        ("tool", f"read_file {SHOP}/basket.py\n\nreturn []"),
    ]


def test_a_call_has_its_outcome() -> None:
    cases: list[tuple[Record, str, str | None]] = [
        ({"isConfirmed": {"type": 0}}, "rejected", "Read a"),
        ({"isConfirmed": False}, "rejected", "Read a"),
        ({"isConfirmed": True}, "completed", "Read a"),
        ({"isComplete": False}, "pending", None),
        (
            {"resultDetails": {"input": "{}", "output": [{"value": "no"}, {"value": "way"}], "isError": True}},
            "failed",
            "no\nway",
        ),
        ({"resultDetails": [{"scheme": "file", "path": "/a"}]}, "completed", "Read a"),
        (
            {"toolSpecificData": {"kind": "terminal", "command": "ls", "terminalCommandState": {"exitCode": 0}}},
            "completed",
            "Read a",
        ),
    ]
    for fields, status, result in cases:
        [call] = tools_of(read(chat(1, asked("r1", "?", tool("c", "copilot_readFile", "Reading a", **fields)))))
        assert (call["status"], call["result"]) == (status, result)


def test_results_of_calls_are_read_from_trees_too() -> None:
    given = working_chat()
    tree = {
        "node": {
            "children": [{"children": [{"text": "def "}, {"text": "basket"}]}, {"text": "()", "lineBreakBefore": True}]
        }
    }
    given["requests"][0]["result"]["metadata"]["toolCallResults"] = {"call_1": {"content": [{"value": tree}, 7]}}
    assert tools_of(read(given))[0]["result"] == "def basket\n()"


def test_an_edit_of_a_file_becomes_a_call() -> None:
    group = {"kind": "textEditGroup", "uri": {"scheme": "file", "path": f"{SHOP}/a.py"}, "done": True}
    edits = [[{"text": "x = "}, {"text": "1"}], [], {"text": "y"}]
    [call] = tools_of(read(chat(1, asked("r1", "?", group | {"edits": edits}))))
    assert (call["name"], call["params"]) == ("edit", {"path": f"{SHOP}/a.py", "edits": ["x = 1", "y"]})


def test_parts_of_a_thought_are_joined_and_end_markers_dropped() -> None:
    parts = [{"kind": "thinking", "id": "t", "value": text} for text in ("One", [" and", " two"], "", [])]
    other = {"kind": "thinking", "id": "u", "value": "Three"}
    assert texts_of(read(chat(1, asked("r1", "?", *parts, other))))[1:] == [
        ("thinking", "One and two"),
        ("thinking", "Three"),
    ]


def test_errors_and_warnings_become_messages_and_an_undone_request_is_marked() -> None:
    failed = asked("r1", "One", result={"errorDetails": {"message": "Sorry, no quota"}})
    warned = asked("r3", "Three", {"value": "Wait"}, {"kind": "warning", "content": {"value": "Half the quota"}})
    undone = asked("r2", "Two", {"value": "No"}, shouldBeRemovedOnSend={"requestId": "r2"})
    assert texts_of(read(chat(1, warned)))[1:] == [("assistant", "Wait"), ("system", "Half the quota")]
    session = read(chat(1, failed, undone))

    assert texts_of(session)[1] == ("error", "Sorry, no quota")
    assert [message.more.get("superseded") for message in session.messages] == [None, None, True, True]


def test_a_session_of_an_early_version_is_read_in_order() -> None:
    request = {
        "message": "Hi",
        "response": ["Hello ", {"value": "you"}, {"kind": "markdownContent", "content": {"value": "!"}}],
    }
    session = read({"creationDate": 1714900000000, "computedTitle": "Greeting", "requests": [request, None]})

    assert texts_of(session) == [("user", "Hi"), ("assistant", "Hello you!")]
    assert (session.session_id, session.title) == ("file name", "Greeting")
    assert [message.more["time"] for message in session.messages] == ["inferred", "inferred"]
    assert all(message.timestamp for message in session.messages)


def test_automatic_attachments_are_not_named() -> None:
    kinds: list[Record] = [{"kind": kind, "name": kind} for kind in ("implicit", "workspace", "tool", "image", "file")]
    kinds.append({"kind": "promptFile", "name": "rules", "automaticallyAdded": True})
    session = read(chat(1, asked("r", "", variableData={"variables": kinds})))
    assert (session.messages[0].text, session.messages[0].more["attachments"]) == ("[image] [file]", ["image", "file"])


def test_an_unnamed_session_gets_its_title_from_the_list(user: Path) -> None:
    for number, where in ((1, "w1"), (2, "")):
        given = working_chat(number)
        del given["customTitle"]
        write_chat(user, given, workspace=where)
    index(user, {session_id(1): "Listed"})
    index(user, {session_id(2): "In a window"}, "globalStorage")

    sessions = read_changed(user)
    assert [sessions[session_id(number)].session.title for number in (1, 2)] == ["Listed", "In a window"]
    assert sessions[session_id(2)].session.project is None


def test_with_a_damaged_list_only_titles_are_lost(user: Path) -> None:
    given = working_chat()
    del given["customTitle"]
    write_chat(user, given)
    (user / "workspaceStorage" / "w1" / "state.vscdb").write_bytes(b"no database" * 500)

    [each] = scan(user)
    assert isinstance(each, FoundSession)
    assert each.session.title == "Why does the basket lose its items? 안녕"
    assert [skipped.what.split(" /")[0] for skipped in each.skipped] == ["the titles in"]


def test_the_log_is_read_if_a_session_has_both_forms(user: Path) -> None:
    write_chat(user, chat(1, asked("r1", "Old")), form="json")
    log = write_chat(user, working_chat())
    os.utime(log)
    [each] = scan(user)
    assert isinstance(each, FoundSession)
    assert len(each.session.messages) == 8

    log.unlink()
    [again] = read_changed(user, {each.key: each.fingerprint}).values()
    assert (again.key, again.session.messages[0].text) == (each.key, "Old")


def test_a_log_is_replayed_and_invalid_changes_are_reported() -> None:
    damage = Damage()
    lines: list[Record] = [
        {"kind": 1, "k": ["early"], "v": 1},
        {"kind": 0, "v": {"a": {"b": [1, 2, 3]}, "c": 4}},
        {"kind": 2, "k": ["a", "b"], "v": [9], "i": 1},
        {"kind": 2, "k": ["a", "new"], "v": [5]},
        {"kind": 2, "k": ["a", "b"], "i": 1},
        {"kind": 1, "k": ["a", "b", 1], "v": "appended"},
        {"kind": 3, "k": ["c"]},
        *({"kind": 1, "k": path, "v": 0} for path in (["a", "b", 7], ["x", "y"], [], "k", [None])),
        *({"kind": 2, "k": path, "v": [0]} for path in (["a"], ["a", "b", 0])),
        {"kind": 9, "k": ["a"]},
    ]
    assert replayed(lines, damage) == {"a": {"b": [1, "appended"], "new": [5]}}
    assert {(skipped.what, skipped.why) for skipped in damage.skipped()} == {
        ("line 1", "a change before the object that it changes"),
        ("line 8 and 7 more", "a change to a path that does not exist"),
    }


def test_a_log_without_its_beginning_is_reported_once_and_the_others_are_read(user: Path) -> None:
    write_chat(user, working_chat(2))
    file = write_chat(user, working_chat(1))
    file.write_bytes(lines_of(as_log(working_chat())[1:]))
    torn = write_chat(user, working_chat(3), form="json")
    torn.write_bytes(torn.read_bytes()[:-9])

    everything = [each for each in scan(user) if isinstance(each, FoundSession)]
    reasons = {each.key: [skipped.why for skipped in each.skipped] for each in everything if not each.session.messages}
    assert reasons == {
        str(file.with_suffix("")): ["a change before the object that it changes", "no conversation in it"],
        str(torn.with_suffix("")): ["not a JSON object", "no conversation in it"],
    }
    assert scan(user, {each.key: each.fingerprint for each in everything}) == []


@pytest.mark.parametrize("workspace", ["w1", ""])
def test_a_transcript_is_read_only_without_its_session_now_and_before(user: Path, workspace: str) -> None:
    place = user / "workspaceStorage" / workspace if workspace else user / "globalStorage"
    folder = place / "GitHub.copilot-chat" / "transcripts"
    folder.mkdir(parents=True)
    for number in (1, 2):
        log = working_log(number)
        log.events[0]["data"].pop("context")
        (folder / f"{log.session}.jsonl").write_bytes(log.lines())
    session = write_chat(user, working_chat(1), workspace=workspace)

    sessions = read_changed(user)
    assert texts_of(sessions[session_id(1)].session) != texts_of(sessions[session_id(2)].session)
    assert len(sessions[session_id(2)].session.messages) == 7
    assert (sessions[session_id(2)].session.project, len(sessions)) == (SHOP if workspace else None, 3)

    session.unlink()
    assert scan(user, {each.key: each.fingerprint for each in sessions.values()}) == []


def test_only_changed_sessions_are_read_again(user: Path) -> None:
    write_chat(user, working_chat(1))
    file = write_chat(user, working_chat(2))
    seen = {each.key: each.fingerprint for each in read_changed(user).values()}
    assert scan(user, seen) == []

    with file.open("ab") as log:
        log.write(lines_of([{"kind": 2, "k": ["requests", 1, "response"], "v": [{"value": " More."}]}]) + b'{"kind":')
    [changed] = read_changed(user, seen).values()
    assert changed.session.messages[-1].text == "Done. More."
    assert [skipped.why for skipped in changed.skipped] == ["incomplete line"]


def test_unknown_parts_are_counted(user: Path) -> None:
    write_chat(user, chat(1, asked("r1", "Hi", {"kind": "brandNew"}, 7)))
    [each] = read_changed(user).values()
    assert each.skipped == (Skipped("1 x part brandNew", "unknown to this reader"),)


def test_nothing_in_the_clients_folder_changes_and_no_secret_is_read(user: Path) -> None:
    given = working_chat(1)
    del given["customTitle"]
    write_chat(user, given)
    write_chat(user, working_chat(2), workspace="")
    database = index(user, {})
    (user / "workspaceStorage" / "w1" / "GitHub.copilot-chat").mkdir()
    for name in ("settings.json", "workspaceStorage/w1/GitHub.copilot-chat/token.json"):
        (user / name).write_text('{"token": "gho_secret"}', encoding="utf-8")
    before = state_of(user)
    with opened_files() as opened:
        [store] = CopilotVscode().find(Paths(user.parents[2], {}))
        everything = read_changed(store)

    assert len(everything) == 2
    assert "gho_" not in repr(everything)
    assert state_of(user) == before
    inside = {Path(path).name for path in opened if path.startswith(str(user))}
    assert inside <= {f"{session_id(1)}.jsonl", f"{session_id(2)}.jsonl", "workspace.json", database.name}
    assert Role.USER in {message.role for message in everything[session_id(1)].session.messages}


def test_all_editions_of_vs_code_are_found_and_a_variable_can_name_another_folder(user: Path, tmp_path: Path) -> None:
    home = user.parents[2]
    server = home / ".vscode-server" / "data" / "User"
    insiders = home / "Library" / "Application Support" / "Code - Insiders" / "User"
    for folder in (server, insiders):
        note_workspace(folder)

    assert list(CopilotVscode().find(Paths(home, {}))) == [user, insiders, server]
    assert list(CopilotVscode().find(Paths(tmp_path, {"CTXR_VSCODE_DIR": str(user)}))) == [user]
    assert list(CopilotVscode().find(Paths(tmp_path, {}))) == []
