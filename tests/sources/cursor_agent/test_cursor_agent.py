"""Cursor's agent: conversations in its databases as a user sees them."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import sources.kit.sqlite_store
from registry.domain import Role, Session
from registry.errors import StorageError
from sources.base import FoundSession, Paths, Skipped
from sources.cursor_agent import store as cursor_agent_store
from sources.cursor_agent.reader import CursorAgent
from tests.sources.cursor_agent.cursor_agent_files import (
    CWD,
    MODEL,
    SECRET,
    START,
    START_MS,
    AgentFiles,
    agent_id,
    answered,
    asked,
    call,
    encoded,
    environment,
    field,
    hash_of,
    mirror,
    result,
    root,
    system,
    text,
    thought,
    working_session,
)
from tests.sources.reading import fingerprints, texts_of


@pytest.fixture
def cursor(tmp_path: Path) -> AgentFiles:
    """An empty configuration folder."""
    return AgentFiles(tmp_path / ".cursor")


def tools(session: Session) -> list[dict[str, Any]]:
    return [message.more["tool"] for message in session.messages if "tool" in message.more]


# Messages


def test_a_conversation_is_read_in_order(cursor: AgentFiles) -> None:
    cursor.chat(1, *working_session())

    session = cursor.only_session()
    assert texts_of(session) == [
        ("system", "You are an AI coding assistant."),
        ("system", str(environment()["content"])),
        ("user", "Why does the basket lose its items?"),
        ("thinking", "Let me look."),
        ("assistant", "I will read it."),
        ("tool", "Read basket.py\n\n     1|return []"),
        ("tool", "Shell pytest\n\n1 failed"),
        ("assistant", "It makes a new list."),
    ]
    assert (session.session_id, session.project, session.parent) == (agent_id(1), CWD, None)
    assert session.title == "Why does the basket lose its items?"
    assert session.meta == {"mode": "agent", "model": MODEL}
    assert [bool(each.more.get("injected")) for each in session.messages] == [True, True, *[False] * 6]
    assert all(each.more["model"] == MODEL for each in session.messages[3:])
    assert len({each.more["native_id"] for each in session.messages}) == 8


def test_a_conversation_from_another_editor_has_its_title_there(cursor: AgentFiles) -> None:
    cursor.acp(1, *working_session())
    assert (cursor.only_session().title, cursor.only_session().project) == ("From Zed", CWD)


def test_a_tool_call_keeps_its_parameters_result_and_outcome(cursor: AgentFiles) -> None:
    cursor.chat(1, *working_session())
    read, shell = tools(cursor.only_session())
    assert read == {
        "name": "Read",
        "params": {"path": f"{CWD}/basket.py"},
        "result": "     1|return []",
        "status": "completed",
        "id": "t1\nfc_1",
    }
    assert (shell["result"], shell["status"]) == ("1 failed", "failed")


@pytest.mark.parametrize(
    ("output", "seen", "fields", "shown", "status"),
    [
        ([text("line 1"), text("line 2")], None, {}, "line 1\nline 2", "completed"),
        ({"files": ["a"]}, None, {}, '{"files": ["a"]}', "completed"),
        ("No such file", None, {"isError": True}, "No such file", "failed"),
        ("Denied", {"output": {"rejected": {"reason": "no"}}}, {}, "Denied", "rejected"),
        ("Boom", {"isError": True}, {}, "Boom", "failed"),
        ("", {"diffString": "+ a"}, {}, "+ a", "completed"),
        (None, None, {"experimental_content": [text("shown")]}, "shown", "completed"),
    ],
)
def test_results_of_every_form_are_kept(
    cursor: AgentFiles, output: Any, seen: Any, fields: dict[str, Any], shown: str, status: str
) -> None:
    cursor.chat(1, asked("Go"), answered(call("t1", "Edit")), result("t1", "Edit", output, seen, **fields))
    [tool] = tools(cursor.only_session())
    assert (tool["result"], tool["status"]) == (shown, status)


def test_a_long_result_is_shortened_in_the_text_and_stored_whole(cursor: AgentFiles) -> None:
    output = "first" + "x" * 10_000 + "last"
    cursor.chat(1, asked("Go"), answered(call("t1", "Read")), result("t1", "Read", output))
    [found] = cursor.read()
    assert isinstance(found, FoundSession)
    assert tools(found.session)[0]["result"] == output
    shown = found.session.messages[1].text
    assert (len(shown) < 4100, shown.endswith("last")) == (True, True)


def test_a_call_without_result_and_a_result_without_call_are_kept(cursor: AgentFiles) -> None:
    cursor.chat(1, asked("Go"), result("t0", "Shell", "late"), answered(call("t1", "Read", path="/a.py")))
    lost, open_one = tools(cursor.only_session())
    assert (lost["name"], lost["result"], lost["status"]) == ("Shell", "late", "completed")
    assert (open_one["result"], open_one["status"]) == (None, "pending")


def test_calls_in_another_vendors_format_get_their_results(cursor: AgentFiles) -> None:
    function = {"name": "read", "arguments": '{"path": "/a.py"}'}
    cursor.chat(
        1,
        asked("Go"),
        {"role": "assistant", "content": "Sure.", "tool_calls": [{"id": "c1", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "x = 1"},
    )
    assert texts_of(cursor.only_session())[1:] == [("assistant", "Sure."), ("tool", "read /a.py\n\nx = 1")]
    assert tools(cursor.only_session())[0]["params"] == {"path": "/a.py"}


def test_an_answer_with_running_calls_is_read_from_the_state(cursor: AgentFiles) -> None:
    waiting = answered(text("Let me run it."), call("t9", "Shell", command="pytest"))
    cursor.chat(1, asked("Go"), more=(field(4, encoded(waiting)),))
    first = cursor.only_session()
    assert texts_of(first)[1:] == [("assistant", "Let me run it."), ("tool", "Shell pytest")]

    cursor.chat(1, asked("Go"), waiting, result("t9", "Shell", "ok"))
    names = [each.more["native_id"] for each in cursor.only_session().messages]
    assert names == [each.more["native_id"] for each in first.messages]


def test_attached_images_and_files_are_named(cursor: AgentFiles) -> None:
    picture = {"type": "image", "image": {"__type": "Uint8Array", "data": "ffd8"}, "mimeType": "image/png"}
    linked = {"type": "image", "image": "https://example.com/shots/basket.png"}
    files = '<attached_files>\n<code_selection path="src/a.py" lines="1-3">x</code_selection>\n</attached_files>\n'
    cursor.chat(1, asked("What is this?", "", picture, linked, around=files))

    *context, question = cursor.only_session().messages
    assert question.text == "What is this?"
    assert question.more["attachments"] == ["src/a.py", "image/png", "basket.png"]
    assert [(each.role, each.more["injected"]) for each in context] == [(Role.SYSTEM, True)]


def test_an_image_alone_is_a_question(cursor: AgentFiles) -> None:
    cursor.chat(1, {"role": "user", "content": [{"type": "image", "image": "https://example.com/a.png"}]})
    assert texts_of(cursor.only_session()) == [("user", "[a.png]")]


@pytest.mark.parametrize(
    ("given", "typed", "context"),
    [
        ("plain words", "plain words", []),
        ("<b>bold</b> words", "<b>bold</b> words", []),
        ("<user_query>a <user_query> in it</user_query>", "a <user_query> in it", []),
        ("<git_status>\nclean\n</git_status>\nFix it", "Fix it", ["<git_status>\nclean\n</git_status>"]),
        (
            "<rules>r</rules><user_query>Q</user_query>\n<system_reminder>s</system_reminder>",
            "Q",
            ["<rules>r</rules>", "<system_reminder>s</system_reminder>"],
        ),
        ("Fix it\n<system_reminder>s</system_reminder>", "Fix it", ["<system_reminder>s</system_reminder>"]),
        ("<user_info>never closed", "", ["<user_info>never closed"]),
    ],
)
def test_text_that_the_client_added_is_separated(
    cursor: AgentFiles, given: str, typed: str, context: list[str]
) -> None:
    cursor.chat(1, {"role": "user", "content": given}, answered(text("Yes.")))
    messages = cursor.only_session().messages
    assert "".join(each.text for each in messages if each.role is Role.USER) == typed
    assert [each.text for each in messages if each.more.get("injected")] == context


def test_the_same_text_twice_is_two_messages_with_stable_ids(cursor: AgentFiles) -> None:
    again = [asked("continue"), answered(text("Done."))]
    cursor.chat(1, *again, *again)
    before = [each.more["native_id"] for each in cursor.only_session().messages]
    cursor.chat(1, *again, *again, *again)
    after = [each.more["native_id"] for each in cursor.only_session().messages]
    assert len(set(after)) == 6
    assert after[:4] == before


def test_redacted_thoughts_and_signatures_are_omitted(cursor: AgentFiles) -> None:
    cursor.chat(1, asked("Go"), answered({"type": "redacted-reasoning", "data": SECRET}, thought("so"), text("Yes.")))
    session = cursor.only_session()
    assert texts_of(session)[1:] == [("thinking", "so"), ("assistant", "Yes.")]
    assert SECRET not in repr(session)


def test_unknown_parts_are_reported(cursor: AgentFiles) -> None:
    cursor.chat(1, asked("Go"), {"role": "critic", "content": "hm"}, answered({"type": "video"}, text("Yes.")))
    [found] = cursor.read()
    assert isinstance(found, FoundSession)
    assert [one.what for one in found.skipped] == ["1 x record critic", "1 x part video"]


# Summaries, rewinds, older generations


def summary(words: str) -> dict[str, Any]:
    return {"role": "user", "content": words, "providerOptions": {"cursor": {"isSummary": True}}}


def states(cursor: AgentFiles, *prompts: list[dict[str, Any]]) -> None:
    """Write a store with several states, the last one current."""
    for prompt in prompts:
        cursor.chat(1, *prompt)


def test_messages_before_a_summary_are_read_from_the_state_before(cursor: AgentFiles) -> None:
    first = [system(), asked("One"), answered(text("1")), asked("Two"), answered(text("2"))]
    second = [first[0], summary("One and two."), *first[3:], asked("Three"), answered(text("3"))]
    third = [first[0], summary("One to three."), *second[4:], asked("Four")]
    states(cursor, first[:3], first, second[:4], second, third)

    session = cursor.only_session()
    assert texts_of(session, Role.USER, Role.ASSISTANT) == [
        *(("user", "One"), ("assistant", "1"), ("user", "Two"), ("assistant", "2")),
        *(("user", "Three"), ("assistant", "3"), ("user", "Four")),
    ]
    compacted = [each.text for each in session.messages if "compaction" in each.more]
    assert compacted == ["One and two.", "One to three."]


def test_messages_rewound_before_a_summary_are_not_read(cursor: AgentFiles) -> None:
    first, other = [asked("One"), answered(text("1"))], [asked("One"), answered(text("1")), asked("Wrong way")]
    states(cursor, other, [*first, asked("Two")], [summary("So far."), asked("Three")])
    assert [words for _, words in texts_of(cursor.only_session(), Role.USER)] == ["One", "Two", "Three"]


def test_blobs_outside_the_newest_state_are_not_read(cursor: AgentFiles) -> None:
    states(cursor, [asked("One"), asked("Wrong way")], [asked("One"), asked("Right way")])
    assert [words for _, words in texts_of(cursor.only_session())] == ["One", "Right way"]


def test_a_tree_of_nodes_of_the_first_generation_is_read(cursor: AgentFiles) -> None:
    messages = [encoded(each) for each in (asked("One"), answered(text("1")), asked("Two"))]
    nodes = [root_of(messages[:2]), root_of(messages[2:])]
    folder = cursor.root / "chats" / "x" / agent_id(1)
    rows = {sha256(blob).hexdigest(): blob for blob in (*messages, *nodes, root_of(nodes))}
    about = {"latestRootBlobId": sha256(root_of(nodes)).hexdigest()}
    cursor.rows(folder / "store.db", rows, {"0": json.dumps(about)})
    assert [words for _, words in texts_of(cursor.only_session())] == ["One", "1", "Two"]


@pytest.mark.parametrize("padding", [b"", b"\x22\x80\x01"])
def test_a_message_embedded_after_the_references_of_a_node_is_read(cursor: AgentFiles, padding: bytes) -> None:
    one, two = encoded(asked("One")), encoded(asked("Two"))
    node = root_of([one]) + padding + encoded(answered(text("1")))
    state = root_of([node, two]) + padding + encoded(answered(text("2")))
    rows = {sha256(blob).hexdigest(): blob for blob in (one, two, node, state)}
    about = {"latestRootBlobId": sha256(state).hexdigest()}
    cursor.rows(cursor.root / "chats" / "x" / agent_id(1) / "store.db", rows, {"0": json.dumps(about)})
    [found] = cursor.read()
    assert isinstance(found, FoundSession)
    assert [words for _, words in texts_of(found.session)] == ["One", "1", "Two", "2"]
    assert found.skipped == ()


def root_of(blobs: list[bytes]) -> bytes:
    return b"".join(field(1, hash_of(blob)) for blob in blobs)


def test_without_a_prompt_the_displayed_turns_are_read(cursor: AgentFiles) -> None:
    question, answer = field(1, "Why?") + field(2, "m1"), field(1, field(1, "Because."))
    thinking, used = field(3, field(1, "Hm.")), field(2, field(1, b"\x01"))
    steps = b"".join(field(2, hash_of(each)) for each in (thinking, used, answer))
    turn = field(1, field(1, hash_of(question)) + steps + field(3, "r1"))
    cursor.chat(1, more=(field(8, hash_of(turn)),))
    store = next(cursor.root.glob("chats/*/*/store.db"))
    blobs = {sha256(blob).hexdigest(): blob for blob in (question, answer, thinking, used, turn)}
    cursor.rows(store, blobs, {})

    [found] = cursor.read()
    assert isinstance(found, FoundSession)
    assert texts_of(found.session) == [("user", "Why?"), ("thinking", "Hm."), ("assistant", "Because.")]
    assert found.skipped == (Skipped("1 x tool call outside of the prompt", "unknown to this reader"),)


@pytest.mark.parametrize("meta", [{}, {"0": "not JSON"}, {"0": None}], ids=["empty", "damaged", "null"])
def test_without_a_description_the_newest_state_is_read(cursor: AgentFiles, meta: dict[str, Any]) -> None:
    store = cursor.chat(1, *working_session()[:3])
    cursor.chat(1, *working_session())
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("DELETE FROM meta")
    cursor.rows(store, {}, meta)
    assert len(cursor.only_session().messages) == 8


def test_a_description_may_be_plain_json(cursor: AgentFiles) -> None:
    store = cursor.chat(1, *working_session())
    with closing(sqlite3.connect(store)) as connection:
        [[value]] = connection.execute("SELECT value FROM meta").fetchall()
    cursor.rows(store, {}, {"0": bytes.fromhex(value).decode()})
    assert len(cursor.only_session().messages) == 8


# Title, project, times, sub-agents


def test_the_title_is_the_clients_or_the_first_words(cursor: AgentFiles) -> None:
    cursor.chat(1, asked("Fix\nthe basket"), name="New Agent")
    cursor.chat(2, asked("Fix"), name="Basket repair")
    described = cursor.chat(3, asked("Fix"), name="Basket repair").parent
    cursor.describe(described, title="The basket, again")
    titles = {name: session.title for name, session in cursor.sessions().items()}
    assert titles == {agent_id(1): "Fix the basket", agent_id(2): "Basket repair", agent_id(3): "The basket, again"}


def test_the_project_is_the_first_folder_mentioned(cursor: AgentFiles) -> None:
    cursor.describe(cursor.chat(1, environment("/by/context"), asked("?")).parent, cwd="/by/description")
    cursor.chat(2, environment("/by/context"), asked("?"), more=(field(9, "file:///by/state%20of"),))
    cursor.chat(3, environment("/by/context"), asked("?"))
    cursor.chat(4, asked("?"), more=(field(21, field(1, "/by/descriptor") + field(2, "shop")),))
    cursor.chat(5, asked("?"), answered(call("t1", "Read", path="/by/hash/of/it/a.py")), cwd="/by/hash")
    cursor.chat(6, asked("?"), cwd="/by/description")
    cursor.chat(7, asked("?"), cwd="/known/nowhere")
    assert {name: session.project for name, session in cursor.sessions().items()} == {
        agent_id(1): "/by/description",
        agent_id(2): "/by/state of",
        agent_id(3): "/by/context",
        agent_id(4): "/by/descriptor",
        agent_id(5): "/by/hash",
        agent_id(6): "/by/description",
        agent_id(7): None,
    }


def test_a_question_has_its_stored_time_and_the_rest_follows_it(cursor: AgentFiles) -> None:
    cursor.chat(
        1, system(), asked("One", "9:05 PM"), answered(text("1")), asked("Two", "11:59 PM"), answered(text("2"))
    )
    session = cursor.only_session()
    times = [(each.timestamp, each.more.get("time")) for each in session.messages]
    assert times[1] == (datetime(2026, 4, 27, 1, 5, tzinfo=UTC), None)
    assert times[3] == (datetime(2026, 4, 27, 3, 59, tzinfo=UTC), None)
    assert [mark for _, mark in times] == ["inferred", None, "inferred", None, "inferred"]
    assert times[0][0] == START
    assert times[2][0] == datetime(2026, 4, 27, 1, 5, 20, tzinfo=UTC)


def test_a_question_without_a_time_has_its_turns_time(cursor: AgentFiles) -> None:
    cursor.chat(1, asked("One"), answered(text("1")), asked("Two"), more=(field(26, START_MS + 3_600_000),))
    *_, question = cursor.only_session().messages
    assert (question.timestamp, question.more.get("time")) == (START + timedelta(hours=1), None)


@pytest.mark.parametrize(("minutes", "step"), [(1, 15), (9 * 24 * 60, 20)])
def test_without_times_the_last_turn_has_the_last_change_and_the_rest_the_beginning(
    cursor: AgentFiles, minutes: int, step: int
) -> None:
    store = cursor.chat(1, asked("One"), answered(text("1")), asked("Two"), answered(text("2")), answered(text("3")))
    cursor.describe(store.parent, updatedAtMs=START_MS + minutes * 60_000)
    end, seconds = START + timedelta(minutes=minutes), timedelta(seconds=step)
    messages = cursor.only_session().messages
    assert [each.timestamp for each in messages] == [
        *(START, START + seconds),
        *(end - 2 * seconds, end - seconds, end),
    ]
    assert all(each.more["time"] == "inferred" for each in messages)


def test_new_messages_are_later_than_all_read_before(cursor: AgentFiles) -> None:
    messages = [asked("One", "9:05 PM"), *(answered(text(f"{number}")) for number in range(30))]
    folder = cursor.chat(1, *messages).parent
    cursor.describe(folder, updatedAtMs=START_MS + 60 * 60_000)
    before = cursor.read()
    cursor.chat(1, *messages, asked("Two", "9:06 PM"), answered(text("last")))
    cursor.describe(folder, updatedAtMs=START_MS + 61 * 60_000)

    [earlier], [later] = before, cursor.read(fingerprints(before))
    assert isinstance(earlier, FoundSession)
    assert isinstance(later, FoundSession)
    newest = max(each.timestamp for each in earlier.session.messages if each.timestamp)
    assert all(each.timestamp and each.timestamp >= newest for each in later.session.messages[31:])


def test_a_sub_agent_names_its_parent(cursor: AgentFiles) -> None:
    cursor.chat(1, *working_session())
    cursor.chat(2, asked("Look for lists"))
    cursor.transcript(2, *mirror(), parent=1)
    sessions = cursor.sessions()
    assert (sessions[agent_id(2)].parent, sessions[agent_id(2)].meta["relation"]) == (agent_id(1), "sub-agent")


# Fingerprint


def test_only_changed_conversations_are_read_again(cursor: AgentFiles) -> None:
    cursor.chat(1, *working_session())
    cursor.chat(2, *working_session()[:3])
    seen = fingerprints(cursor.read())
    assert cursor.read(seen) == []

    cursor.chat(2, *working_session())
    [found] = cursor.read(seen)
    assert isinstance(found, FoundSession)
    assert found.session.session_id == agent_id(2)


def test_a_change_of_each_relevant_file_is_noticed(cursor: AgentFiles) -> None:
    store = cursor.chat(1, *working_session())
    seen = [fingerprints(cursor.read())]
    cursor.chat(1, *working_session(), asked("More"), wal=True)
    seen.append(fingerprints(cursor.read()))
    cursor.describe(store.parent, title="Named")
    seen.append(fingerprints(cursor.read()))
    cursor.transcript(2, *mirror())
    seen.append(fingerprints(cursor.read()))
    cursor.transcript(2, *mirror(), *mirror())
    seen.append(fingerprints(cursor.read()))
    assert len({str(each) for each in seen}) == 5
    assert fingerprints(cursor.read()) == seen[-1]


def test_many_locked_databases_delay_reading_once(cursor: AgentFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources.kit.sqlite_store, "WAIT_S", 0.4)
    with ExitStack() as stack:
        for number in range(1, 4):
            locked = cursor.chat(number, *working_session())
            client = stack.enter_context(closing(sqlite3.connect(locked, isolation_level=None)))
            client.execute("PRAGMA journal_mode=delete")
            client.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()
        with pytest.raises(StorageError, match="3 conversations in use"):
            list(CursorAgent().sessions(cursor.root, {}))
    assert 0.4 <= time.monotonic() - began < 1.2


def test_a_locked_database_is_reported_after_a_wait_and_read_next_time(cursor: AgentFiles) -> None:
    cursor.chat(1, *working_session())
    locked = cursor.chat(2, *working_session())
    with closing(sqlite3.connect(locked, isolation_level=None)) as client:
        client.execute("PRAGMA journal_mode=delete")
        client.execute("BEGIN EXCLUSIVE")
        sessions = CursorAgent().sessions(cursor.root, {})
        found = next(sessions)
        assert isinstance(found, FoundSession)
        with pytest.raises(StorageError, match="1 conversation in use"):
            next(sessions)
    seen = {found.key: found.fingerprint}
    [later] = cursor.read(seen)
    assert isinstance(later, FoundSession)
    assert later.session.session_id == agent_id(2)


@pytest.mark.parametrize("content", [b"", b"no database" * 500], ids=["empty", "damaged"])
def test_only_the_damaged_database_is_lost(cursor: AgentFiles, content: bytes) -> None:
    cursor.chat(1, *working_session())
    broken = cursor.chat(2, *working_session())
    broken.write_bytes(content)
    outcome = cursor.read()
    [skipped] = [one for one in outcome if isinstance(one, Skipped)]
    assert skipped.what == str(broken.parent)
    assert [one.session.session_id for one in outcome if isinstance(one, FoundSession)] == [agent_id(1)]


def test_only_missing_torn_and_too_long_messages_are_lost(cursor: AgentFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursor_agent_store, "MAX_LINE_BYTES", 2000)
    prompt = [asked("One"), asked("x" * 3000), asked("Two"), asked("torn"), asked("gone"), answered(text("1"))]
    store = cursor.chat(1, *prompt)
    torn, gone = (sha256(encoded(each)).hexdigest() for each in prompt[3:5])
    cursor.rows(store, {torn: b'{"role": "us'}, {})
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("DELETE FROM blobs WHERE id = ?", (gone,))
    [found] = cursor.read()
    assert isinstance(found, FoundSession)
    assert [words for _, words in texts_of(found.session)] == ["One", "Two", "1"]
    assert [(one.what, one.why) for one in found.skipped] == [
        ("1 x message", "longer than 32 MB"),
        ("1 x message", "not a JSON object"),
        ("1 x message", "not stored"),
    ]


def test_a_torn_state_is_read_up_to_the_damage(cursor: AgentFiles) -> None:
    blobs = [encoded(each) for each in (asked("One"), asked("Two"))]
    torn = root([hash_of(blob) for blob in blobs])[:60]
    rows = {sha256(blob).hexdigest(): blob for blob in blobs} | {"root": torn}
    cursor.rows(cursor.root / "chats" / "x" / agent_id(1) / "store.db", rows, {"0": '{"latestRootBlobId": "root"}'})
    [found] = cursor.read()
    assert isinstance(found, FoundSession)
    assert [words for _, words in texts_of(found.session)] == ["One"]
    assert "damaged" in found.skipped[0].why


def test_a_missing_state_is_reported(cursor: AgentFiles) -> None:
    folder = cursor.root / "chats" / "x" / agent_id(1)
    cursor.rows(folder / "store.db", {}, {"0": '{"latestRootBlobId": "gone"}'})
    assert cursor.read() == [Skipped(str(folder), "the state of the conversation is not stored")]


def test_if_the_latest_state_is_missing_an_earlier_one_is_read_and_that_is_reported(cursor: AgentFiles) -> None:
    cursor.chat(1, asked("One"))
    cursor.chat(1, asked("One"), asked("Two"), latestRootBlobId="gone", lastUsedModel="default")
    [found] = cursor.read()
    assert isinstance(found, FoundSession)
    assert [words for _, words in texts_of(found.session)] == ["One", "Two"]
    assert "model" not in found.session.meta
    assert [one.why for one in found.skipped] == ["its latest state is not stored; an earlier one was read"]


def test_empty_conversations_are_reported_and_read_once(
    cursor: AgentFiles,
) -> None:
    cursor.describe(cursor.root / "chats" / "x" / agent_id(1), hasConversation=False, cwd=CWD)
    cursor.chat(2, system(), environment())
    found, silent, begun = cursor.read()
    assert isinstance(found, FoundSession)
    assert found.session.messages == ()
    assert begun == Skipped("1 conversation", "not begun yet")
    assert silent == Skipped("1 conversation", "no messages in it")
    assert cursor.read(fingerprints([found])) == [begun]


def test_an_unfinished_reader_closes_the_store(cursor: AgentFiles) -> None:
    for number in range(3):
        store = cursor.chat(number, *working_session())
    sessions = CursorAgent().sessions(cursor.root, {})
    next(sessions)
    sessions.close()  # type: ignore[attr-defined]
    with closing(sqlite3.connect(store)) as client:
        client.execute("VACUUM")


# Location


def test_the_folder_is_the_configured_one_or_the_usual_ones(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for folder in (home / ".cursor" / "chats", home / ".config" / "cursor" / "chats", tmp_path / "own" / "projects"):
        folder.mkdir(parents=True)

    def find(**environment: str) -> list[Path]:
        return list(CursorAgent().find(Paths(home, environment)))

    assert find() == [home / ".cursor", home / ".config" / "cursor"]
    assert find(CTXR_CURSOR_AGENT_DIR=str(tmp_path / "own")) == [tmp_path / "own"]
    assert find(CURSOR_CONFIG_DIR=str(tmp_path / "own")) == [tmp_path / "own"]
    assert find(CTXR_CURSOR_AGENT_DIR=str(tmp_path / "none")) == []


def test_rare_folders_of_before_2026_are_read(cursor: AgentFiles) -> None:
    blobs = [encoded(each) for each in working_session()]
    cursor.store(cursor.root / "agent-sessions" / agent_id(1), blobs)
    cursor.store(cursor.root / "conversations" / "x" / agent_id(2), blobs)
    lines = "".join(json.dumps(record) + "\n" for record in mirror())
    (cursor.root / "sessions").mkdir()
    (cursor.root / "sessions" / f"{agent_id(3)}.jsonl").write_text(lines, encoding="utf-8")
    assert set(cursor.sessions()) == {agent_id(number) for number in (1, 2, 3)}
