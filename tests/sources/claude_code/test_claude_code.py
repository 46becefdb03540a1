"""Claude Code: sessions as a user sees them."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from registry.domain import Message, Role, Session
from sources.base import FoundSession
from sources.claude_code.reader import ClaudeCode, parse
from sources.kit.loose_json import Record
from tests.sources.claude_code.claude_code_files import (
    BEGIN,
    CWD,
    Dialogue,
    session_id,
    working_session,
    write,
    write_agent,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty configuration folder of the client."""
    folder = tmp_path / "claude"
    (folder / "projects").mkdir(parents=True)
    return folder


def read_changed(root: Path) -> dict[str, FoundSession]:
    """Return all sessions of a store by id."""
    results = ClaudeCode().sessions(root, {})
    return {each.session.session_id: each for each in results if isinstance(each, FoundSession)}


def read(talk: Dialogue) -> Session:
    """Parse the records of a transcript, without a file."""
    return parse(talk.records, talk.session_id)[0].session()


def texts(session: Session, role: Role | None = None) -> list[str]:
    return [message.text for message in session.messages if role in (None, message.role)]


def only(session: Session, role: Role) -> Message:
    [message] = [message for message in session.messages if message.role is role]
    return message


def test_a_session_is_read_in_order() -> None:
    session = read(working_session())

    assert [(message.role.value, message.text) for message in session.messages] == [
        ("user", "Why does the basket lose its items?"),
        ("thinking", "Look at the store."),
        ("assistant", "I read the basket first."),
        ("tool", "Read src/basket.py\n\n1\tdef basket():\n2\t    return []"),
        ("tool", "Bash pytest -q\n\n1 failed"),
        ("assistant", "It makes a new list each time."),
        ("user", "Then fix it, 고쳐 줘"),
        ("assistant", "Done."),
    ]
    assert session.session_id == session_id(1)
    assert session.project == CWD
    assert session.title == "Why does the basket lose its items?"
    assert session.parent is None
    assert session.meta == {}


def test_a_session_rewritten_on_a_resume_keeps_the_order_of_its_file() -> None:
    talk = Dialogue(session_id(1))
    for turn in range(3):
        talk.user(f"Question {turn}")
        talk.calls("Bash", {"command": f"make {turn}"}, f"toolu_{turn}", f"msg_{turn}")
        talk.result(f"toolu_{turn}", "ok")
        talk.says(f"Answer {turn}", f"msg_{turn}_b")
    resumed = (BEGIN + timedelta(days=30)).isoformat()
    for record in talk.records:
        if not isinstance(record["message"]["content"], str):
            record["timestamp"] = resumed
    talk.at = BEGIN + timedelta(days=30)
    talk.user("Question after the resume")
    talk.says("Answer after it", "msg_last")
    session = read(talk)

    in_order = sorted(session.messages, key=lambda message: message.timestamp or BEGIN)
    assert [message.text.split("\n")[0] for message in in_order] == [
        *(line for turn in range(3) for line in (f"Question {turn}", f"Bash make {turn}", f"Answer {turn}")),
        "Question after the resume",
        "Answer after it",
    ]
    inferred = [message for message in session.messages if message.more.get("time") == "inferred"]
    assert len(inferred) == 4, "the last turn keeps its times"
    assert inferred[0].timestamp == session.messages[0].timestamp


def test_a_question_with_a_wrong_clock_leaves_all_times_as_stored() -> None:
    talk = working_session()
    talk.at = BEGIN - timedelta(days=400)
    talk.user("And now?")
    times = [message.more.get("time") for message in read(talk).messages]
    assert times == [None] * len(times)


def test_a_tool_call_keeps_its_parameters_result_and_outcome() -> None:
    reading, testing = (message.more["tool"] for message in read(working_session()).messages if "tool" in message.more)

    assert reading == {
        "name": "Read",
        "params": {"file_path": f"{CWD}/src/basket.py"},
        "result": "1\tdef basket():\n2\t    return []",
        "status": "completed",
    }
    assert (testing["result"], testing["status"]) == ("1 failed", "failed")


def test_the_first_result_of_a_call_is_used() -> None:
    talk = Dialogue(session_id(1))
    talk.user("Read it")
    talk.calls("Read", {"file_path": "/a.py"}, "toolu_1", "msg_1")
    talk.result("toolu_1", "x = 1")
    talk.result("toolu_1", "x = 2", is_error=True)
    [tool] = (message.more["tool"] for message in read(talk).messages if "tool" in message.more)
    assert (tool["result"], tool["status"]) == ("x = 1", "completed")


def test_every_message_has_an_id_a_time_and_its_model() -> None:
    messages = read(working_session()).messages

    ids = [message.more["native_id"] for message in messages]
    assert len(set(ids)) == len(ids)
    assert ids[1:5] == ["msg_1:thinking", "msg_1", "toolu_1", "toolu_2"]
    assert messages[0].timestamp == datetime(2026, 5, 4, 9, 0, 10, tzinfo=UTC)
    assert all("time" not in message.more for message in messages)
    assert {message.more.get("model") for message in messages} == {None, "claude-opus-4-5"}


def test_the_tokens_of_an_answer_are_counted_once() -> None:
    counted = [message.more["usage"] for message in read(working_session()).messages if "usage" in message.more]

    assert counted[0] == {"input_tokens": 12, "output_tokens": 57}
    assert len(counted) == 4


def test_an_answer_in_many_records_is_one_message_even_around_a_tool_call() -> None:
    talk = Dialogue(session_id(1))
    talk.user("Search and tell")
    talk.says("First part.", "msg_1")
    talk.calls("WebSearch", {"query": "baskets"}, "srv_1", "msg_1")
    talk.assistant(
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"type": "text", "text": "3 hits"}]},
        message_id="msg_1",
    )
    talk.says("Second part.", "msg_1")
    talk.says("Second part.", "msg_1")

    session = read(talk)
    assert texts(session, Role.ASSISTANT) == ["First part.\n\nSecond part."]
    assert texts(session, Role.TOOL) == ["WebSearch baskets\n\n3 hits"]


def test_a_refused_call_a_running_call_and_a_lost_call_are_told_apart() -> None:
    talk = Dialogue(session_id(1))
    talk.calls("Edit", {"file_path": f"{CWD}/a.py"}, "toolu_1", "msg_1")
    talk.result(
        "toolu_1", "The user doesn't want to proceed with this tool use.", "User rejected tool use", is_error=True
    )
    talk.calls("Bash", {"command": "sleep 9"}, "toolu_2", "msg_2")
    talk.result("toolu_gone", "late news")

    tools = [message.more["tool"] for message in read(talk).messages]
    assert [(tool["name"], tool["status"]) for tool in tools] == [
        ("Edit", "rejected"),
        ("Bash", "pending"),
        ("tool", "completed"),
    ]


def test_a_service_error_is_an_error_not_an_answer() -> None:
    talk = Dialogue(session_id(1))
    talk.user("Hello")
    talk.says("API Error: 529 overloaded", "msg_1", model="<synthetic>", isApiErrorMessage=True)
    talk.says("No response requested.", "msg_2", model="<synthetic>")
    talk.add("system", subtype="api_error", error={"message": "Connection reset"}, level="error")

    session = read(talk)
    assert texts(session, Role.ERROR) == ["API Error: 529 overloaded", "Connection reset"]
    assert texts(session, Role.ASSISTANT) == []
    assert all("model" not in message.more for message in session.messages)


def test_typed_text_is_separated_from_text_that_the_client_added() -> None:
    cases: list[tuple[Any, list[str], list[str]]] = [
        ("Just a question", ["Just a question"], []),
        ("<ide_opened_file>The user opened a.py</ide_opened_file>", [], ["The user opened a.py"]),
        (
            "<ide_selection>lines 1-2</ide_selection>\n<ide_opened_file>a.py</ide_opened_file>\nWhat is this?",
            ["What is this?"],
            ["lines 1-2", "a.py"],
        ),
        (
            [{"type": "text", "text": "<system-reminder>Be brief</system-reminder>"}, {"type": "text", "text": "Go"}],
            ["Go"],
            ["Be brief"],
        ),
        (
            "Go on\n\n<system-reminder>Todo is empty</system-reminder>\n<system-reminder>Be brief</system-reminder>",
            ["Go on"],
            ["Todo is empty", "Be brief"],
        ),
        ("<system-reminder>never closed", [], ["<system-reminder>never closed"]),
        ("<local-command-stdout>\x1b[1mSet model\x1b[22m</local-command-stdout>", [], ["Set model"]),
        ("<bash-input>ls -a</bash-input>", ["! ls -a"], []),
        ("<bash-stdout>a.py</bash-stdout><bash-stderr></bash-stderr>", [], ["a.py"]),
        ("<task-notification>agent done</task-notification>", [], ["agent done"]),
        (
            "<command-message>review is running…</command-message>\n<command-name>/review</command-name>\n"
            "<command-args>src 42</command-args>",
            ["/review src 42"],
            [],
        ),
        ("<command-name>clear</command-name><command-args></command-args>", ["/clear"], []),
        (
            [
                {"type": "text", "text": "<command-name>/plan</command-name>"},
                {"type": "text", "text": "You are a planner."},
            ],
            ["/plan"],
            ["You are a planner."],
        ),
        ("Caveat: The messages below were generated", [], ["Caveat: The messages below were generated"]),
        ("[Request interrupted by user for tool use]", [], ["[Request interrupted by user for tool use]"]),
        ("How do I write <system-reminder> in XML?", ["How do I write <system-reminder> in XML?"], []),
    ]
    for sent, typed, context in cases:
        talk = Dialogue(session_id(1))
        talk.user(sent)

        session = read(talk)
        assert texts(session, Role.USER) == typed
        assert texts(session, Role.SYSTEM) == context
        assert all(
            message.more.get("injected") is (message.role is Role.SYSTEM or None) for message in session.messages
        )


@pytest.mark.parametrize("flag", [{"isMeta": True}, {"isVisibleInTranscriptOnly": True}, {"promptSource": "system"}])
def test_a_record_marked_as_the_clients_is_not_the_users(flag: Record) -> None:
    talk = Dialogue(session_id(1))
    talk.user("Base directory for this skill: /x", **flag)

    session = read(talk)
    assert only(session, Role.SYSTEM).more["injected"] is True
    assert session.title is None


def test_a_queued_prompt_is_the_users() -> None:
    talk = Dialogue(session_id(1))
    talk.user("Start")
    talk.add("attachment", attachment={"type": "queued_command", "prompt": "And add a test"})
    talk.add("attachment", attachment={"type": "task_reminder", "content": "x"})
    talk.aside("queue-operation", operation="enqueue", content="And add a test")

    assert texts(read(talk)) == ["Start", "And add a test"]


def test_images_and_files_are_attached_by_name() -> None:
    talk = Dialogue(session_id(1))
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk=" * 1000}}
    talk.user([{"type": "text", "text": "What is wrong here?"}, picture])
    talk.add("attachment", attachment={"type": "file", "filename": "/home/ann/shop/a.py", "content": {"text": "x"}})
    talk.user([picture])

    first, second = read(talk).messages
    assert first.more["attachments"] == ["image/png", "/home/ann/shop/a.py"]
    assert (second.text, second.more["attachments"]) == ("[image/png]", ["image/png"])


def test_a_conversation_keeps_only_as_many_images_as_fit_into_memory() -> None:
    talk = Dialogue(session_id(1))
    content = b"GIF89a" + bytes(4_900_000)
    data = b64encode(content).decode()
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": data}}
    for number in range(15):
        talk.user([{"type": "text", "text": f"Look at picture {number}"}, picture])

    messages = read(talk).messages
    assert [len(message.images) for message in messages] == [1] * 13 + [0] * 2
    assert all(message.more["attachments"] == ["image/gif"] for message in messages)


def test_a_compaction_is_a_system_message_and_repeats_nothing() -> None:
    talk = Dialogue(session_id(1))
    talk.user("Long story")
    talk.says("Longer answer", "msg_1")
    repeated = talk.records[-1]
    talk.add("system", subtype="compact_boundary", content="Conversation compacted", logicalParentUuid=talk.parent,
             compactMetadata={"trigger": "auto", "preTokens": 155000})  # fmt: skip
    talk.user("This session is being continued from a previous conversation. Summary: …", isCompactSummary=True)
    talk.records.append(repeated)
    talk.user("Go on")

    session = read(talk)
    assert texts(session, Role.USER) == ["Long story", "Go on"]
    assert texts(session, Role.ASSISTANT) == ["Longer answer"]
    boundary, summary = (message for message in session.messages if message.role is Role.SYSTEM)
    assert boundary.more["compaction"] == {"trigger": "auto", "preTokens": 155000}
    assert summary.more["compaction"] == {}
    assert boundary.more["injected"] is summary.more["injected"] is True


def test_a_rewound_prompt_is_kept_and_marked() -> None:
    talk = Dialogue(session_id(1))
    talk.user("Hello")
    fork = talk.says("Hi", "msg_1")
    talk.user("Delete everyhting")
    left = talk.says("Really?", "msg_2")
    talk.parent = fork
    talk.user("Delete nothing")
    talk.says("Fine.", "msg_3")
    talk.parent = left
    talk.add("system", subtype="turn_duration")  # written late

    marked = {message.text: message.more.get("superseded", False) for message in read(talk).messages}
    assert marked == {
        "Hello": False,
        "Hi": False,
        "Delete everyhting": True,
        "Really?": True,
        "Delete nothing": False,
        "Fine.": False,
    }


def test_results_of_parallel_tools_outside_the_last_chain_are_kept() -> None:
    talk = Dialogue(session_id(1))
    talk.user("Read both")
    one = talk.calls("Read", {"file_path": "a"}, "toolu_1", "msg_1")
    talk.calls("Read", {"file_path": "b"}, "toolu_2", "msg_1")
    talk.result("toolu_2", "b")
    talk.parent = one
    talk.result("toolu_1", "a")
    talk.says("Both are read.", "msg_2")
    assert not any("superseded" in message.more for message in read(talk).messages)


def test_parallel_tools_lost_parents_and_cycles_supersede_nothing() -> None:
    talk = Dialogue(session_id(1))
    talk.user("Read both", parentUuid="gone")
    one = talk.calls("Read", {"file_path": "a"}, "toolu_1", "msg_1")
    two = talk.calls("Read", {"file_path": "b"}, "toolu_2", "msg_1")
    talk.parent = one
    talk.result("toolu_1", "a")
    talk.parent = two
    talk.result("toolu_2", "b")
    talk.user("Next", uuid="x", parentUuid="y")
    talk.user("Last", uuid="y", parentUuid="x")

    messages = read(talk).messages
    assert len(messages) == 5
    assert not any("superseded" in message.more for message in messages)


def test_a_message_without_a_time_gets_the_one_before_marked_as_inferred() -> None:
    talk = Dialogue(session_id(1))
    talk.user("No time at all", timestamp=None)
    talk.user("Timed")
    talk.user("Bad time", timestamp="yesterday")

    first, second, third = read(talk).messages
    assert first.timestamp == second.timestamp == third.timestamp
    assert [message.more.get("time") for message in (first, second, third)] == ["inferred", None, "inferred"]


def test_the_most_reliable_title_is_used() -> None:
    talk = Dialogue(session_id(1))
    talk.user("/x")
    leaf = talk.user("First words")
    titles: list[tuple[Record, str]] = [
        ({"type": "last-prompt", "lastPrompt": "Last words"}, "First words"),
        ({"type": "summary", "leafUuid": "elsewhere", "summary": "Not mine"}, "First words"),
        ({"type": "summary", "leafUuid": leaf, "summary": "By summary"}, "By summary"),
        ({"type": "ai-title", "aiTitle": "By the model"}, "By the model"),
        ({"type": "ai-title", "aiTitle": "By the model, later"}, "By the model, later"),
        ({"type": "custom-title", "customTitle": "By the user"}, "By the user"),
        ({"type": "ai-title", "aiTitle": "By the model, too late"}, "By the user"),
    ]
    talk.records[0]["message"]["content"] = "<command-name>/model</command-name>"
    for record, expected in titles:
        talk.records.append(record)
        assert read(talk).title == expected


def test_a_session_renamed_by_command_has_the_new_name() -> None:
    talk = working_session()
    talk.add("system", subtype="local_command", content="<command-name>/rename</command-name>\n"
             "<command-message>rename</command-message>\n<command-args>Basket bug</command-args>")  # fmt: skip
    talk.aside("ai-title", aiTitle="Basket loses items", sessionId=talk.session_id)

    assert read(talk).title == "Basket bug"


def test_a_summary_in_another_file_is_the_title_of_its_session(root: Path) -> None:
    talk = working_session()
    write(root, talk)
    later = Dialogue(session_id(2))
    later.aside("summary", summary="Basket bug found", leafUuid=talk.parent)
    write(root, later)

    sessions = read_changed(root)
    assert sessions[talk.session_id].session.title == "Basket bug found"
    assert sessions[later.session_id].session.messages == ()


def test_the_project_is_the_first_folder_or_the_one_moved_to() -> None:
    talk = Dialogue(session_id(1), cwd=f"{CWD}/.claude/worktrees/brave-otter")
    talk.user("In a worktree")
    assert read(talk).project == CWD

    talk.cwd = "/home/ann/tools"
    talk.user("Now elsewhere")
    talk.cwd = "/home/ann/tools/deeper"
    talk.user("And deeper")
    assert read(talk).project == "/home/ann/tools"

    talk.aside("relocated", relocatedCwd="/home/ann/moved")
    assert read(talk).project == "/home/ann/moved"


def test_a_fork_of_a_current_version_names_its_origin() -> None:
    talk = working_session()
    fork = Dialogue(session_id(2), common={"forkedFrom": {"sessionId": talk.session_id, "messageUuid": talk.parent}})
    fork.user("Another way")

    session = read(fork)
    assert (session.parent, session.meta["relation"]) == (session_id(1), "fork")


def test_a_fork_of_an_old_version_shares_message_ids_with_its_origin(root: Path) -> None:
    origin = working_session()
    fork = Dialogue(session_id(2))
    fork.records = [{**record, "sessionId": fork.session_id} for record in origin.records]
    fork.records.append({**origin.records[1], "uuid": "fork-1", "timestamp": "2026-05-05T09:00:00Z"})
    write(root, origin)
    write(root, fork)

    first, second = (read_changed(root)[each.session_id].session.messages[:8] for each in (origin, fork))
    assert [message.more["native_id"] for message in first] == [message.more["native_id"] for message in second]


def test_a_session_resumed_by_an_old_version_in_a_new_file_names_the_one_before() -> None:
    talk = Dialogue(session_id(1))
    talk.user("Before")
    talk.common = {"sessionId": session_id(2)}
    talk.user("After")

    session = parse(talk.records, session_id(2))[0].session()
    assert (session.session_id, session.parent, session.meta["relation"]) == (session_id(2), session_id(1), "resume")


def sub_agent(name: str) -> Dialogue:
    """Return a sub-agent's records, which have the session id of their caller."""
    talk = Dialogue(session_id(1), common={"isSidechain": True, "agentId": name})
    talk.user("Find all baskets")
    talk.says("There are three.", f"msg_{name}")
    return talk


def test_a_sub_agent_is_its_own_session_with_its_caller_as_parent(root: Path) -> None:
    talk = working_session()
    talk.calls("Task", {"description": "Find baskets", "prompt": "Find all baskets"}, "toolu_9", "msg_9")
    talk.result("toolu_9", "There are three.", {"status": "completed", "agentId": "a1"})
    write(root, talk)
    meta = {"agentType": "Explore", "description": "Find baskets", "toolUseId": "toolu_9"}
    write_agent(root, sub_agent("a1"), "a1", meta)
    journal = write_agent(root, sub_agent("a2"), "a2", under="workflows/wf_7").with_name("journal.jsonl")
    journal.write_text('{"type":"user","message":{"content":"no conversation"}}\n', encoding="utf-8")

    sessions = read_changed(root)
    assert sorted(sessions) == [talk.session_id, "agent-a1", "agent-a2"]
    agent = sessions["agent-a1"].session
    assert texts(agent) == ["Find all baskets", "There are three."]
    assert (agent.parent, agent.title) == (talk.session_id, "Find baskets")
    assert agent.meta["relation"] == "sub-agent"
    assert sessions["agent-a2"].session.parent == talk.session_id


def test_a_sub_agents_file_next_to_its_callers_is_read(root: Path) -> None:
    write(root, working_session())
    write(root, sub_agent("b1"), stem="agent-b1")

    session = read_changed(root)["agent-b1"].session
    assert (session.parent, session.title) == (session_id(1), "Find all baskets")


def test_a_sub_agent_written_between_the_records_of_its_caller_is_split_off(root: Path) -> None:
    talk = working_session()
    main = read(talk)
    for name in ("first", "second"):
        talk.parent, talk.common = None, {"isSidechain": True}
        talk.user(f"Prompt of {name}", uuid=name)
        talk.says(f"Answer of {name}", f"msg_{name}")
    write(root, talk)

    sessions = read_changed(root)
    assert sessions[talk.session_id].session.messages == main.messages
    assert texts(sessions["agent-first"].session) == ["Prompt of first", "Answer of first"]
    assert sessions["agent-second"].session.parent == talk.session_id


def test_a_large_output_is_read_from_its_own_file(root: Path) -> None:
    talk = Dialogue(session_id(1))
    talk.calls("Bash", {"command": "make"}, "toolu_1", "msg_1")
    stub = f"<persisted-output>\nFull output saved to: /h/{talk.session_id}/tool-results/b1.txt\nPreview: …"
    talk.result("toolu_1", stub)
    talk.calls("Bash", {"command": "cat"}, "toolu_2", "msg_2")
    talk.result("toolu_2", stub.replace("b1", "purged"))
    file = write(root, talk)
    outputs = file.with_suffix("") / "tool-results"
    outputs.mkdir(parents=True)
    (outputs / "b1.txt").write_text("the whole output", encoding="utf-8")

    whole, purged = read_changed(root)[talk.session_id].session.messages
    assert whole.more["tool"]["result"] == "the whole output"
    assert purged.more["tool"]["result"].startswith("<persisted-output>")


def test_unknown_records_are_counted_and_the_rest_is_read() -> None:
    talk = working_session()
    known = read(talk).messages
    talk.aside("brand-new", payload={})
    talk.aside("brand-new", payload={})
    talk.add("system", subtype="horoscope", content="Leo")
    talk.assistant({"type": "dance"}, message_id="msg_8")

    [transcript] = parse(talk.records, talk.session_id)
    assert transcript.session().messages == known
    assert {skipped.what for skipped in transcript.skipped()} == {
        "2 x record brand-new",
        "1 x system record horoscope",
        "1 x block dance",
    }
    assert known[0].timestamp > BEGIN if known[0].timestamp else False
