"""Copilot's command line: sessions as a user sees them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from registry.domain import Role, Session
from sources.base import FoundSession, Skipped
from sources.copilot.cli import CopilotCli, EventLog, events_of
from tests.sources.copilot.copilot_files import SHOP, Log, old_history, request, session_id, working_log, write_log
from tests.sources.reading import texts_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty folder of the client."""
    folder = tmp_path / "home" / ".copilot"
    (folder / "session-state").mkdir(parents=True)
    return folder


def read(log: Log) -> list[Session]:
    """Parse a log into its session and those of its sub-agents, without a file."""
    reading = EventLog(log.session)
    for event in log.events:
        reading.read(event)
    return list(reading.sessions())


def scan(root: Path, seen: Mapping[str, str] | None = None) -> list[FoundSession | Skipped]:
    return list(CopilotCli().sessions(root, seen or {}))


def read_changed(root: Path, seen: Mapping[str, str] | None = None) -> dict[str, FoundSession]:
    """Return the store's changed sessions by id."""
    return {each.session.session_id: each for each in scan(root, seen) if isinstance(each, FoundSession)}


def test_a_session_is_read_in_order_without_its_sub_agents_messages() -> None:
    session, _ = read(working_log())

    assert texts_of(session) == [
        ("user", "Why does the basket lose its items? 안녕"),
        ("thinking", "The basket first."),
        ("assistant", "I will look."),
        ("tool", "view basket.py\n\nreturn []\u2028"),
        ("tool", "task Find baskets\n\nThree baskets."),
        ("tool", "bash pytest\n\n1 failed"),
        ("assistant", "It makes a new list.\n\n```python\nreturn items\n```"),
    ]
    assert (session.session_id, session.project) == (session_id(1), SHOP)
    assert session.title == "Why does the basket lose its items? 안녕"
    assert session.meta == {}
    assert all(message.timestamp and "time" not in message.more for message in session.messages)
    assert session.messages[2].more == {
        "native_id": "e6",
        "model": "claude-sonnet-4.6",
        "usage": {"output_tokens": 33},
    }


def test_a_tool_call_keeps_its_parameters_result_and_outcome() -> None:
    tools = [message.more["tool"] for message in read(working_log())[0].messages if "tool" in message.more]

    assert tools[0] == {
        "name": "view",
        "params": {"path": f"{SHOP}/basket.py"},
        "result": "return []\u2028",
        "status": "completed",
    }
    assert [tool["status"] for tool in tools] == ["completed", "completed", "failed"]


def test_a_command_with_an_error_exit_is_failed() -> None:
    log = Log()
    request = {"toolCallId": "c1", "name": "bash", "arguments": {"command": "make"}}
    log.run(request, "no rule", shellExecution={"exitCode": 2})
    assert read(log)[0].messages[0].more["tool"]["status"] == "failed"


def test_the_tokens_of_an_answer_are_counted_once() -> None:
    log = Log()
    log.user("Hi")
    tokens = {"inputTokens": 100, "outputTokens": 50, "cacheReadTokens": 30, "cacheWriteTokens": 0}
    for call_id in ("a1", "a2"):
        log.add("session.usage_record", usage={"apiCallId": call_id, **tokens})
        log.answer("Hello", apiCallId=call_id)
    log.add(
        "session.shutdown", modelMetrics={"claude-sonnet-4.6": {"usage": {"inputTokens": 200, "outputTokens": 100}}}
    )

    counted = [message.more.get("usage") for message in read(log)[0].messages]
    one = {"input_tokens": 70, "output_tokens": 50, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 0}
    assert counted == [None, one, one]


def test_a_sub_agents_turns_are_a_session_of_their_own() -> None:
    main, agent = read(working_log())

    assert texts_of(agent) == [
        ("assistant", "Searching."),
        ("tool", "grep basket\n\n3 matches"),
        ("assistant", "Three baskets."),
    ]
    assert (agent.parent, agent.title, agent.project) == (main.session_id, "Find baskets", SHOP)
    assert agent.meta == {"relation": "sub-agent"}


def test_the_task_and_the_model_of_a_sub_agent_are_not_those_of_its_caller() -> None:
    log = Log()
    log.start(selectedModel="large")
    log.user("Count the files")
    log.answer("", request("c1", "task", {"description": "Count", "prompt": "Count *.py"}))
    log.add("subagent.started", toolCallId="c1", agentName="explore")
    log.add("session.model_change", source="agent", newModel="small")
    log.user("Count *.py", source="agent-1")
    for event in log.events[-3:]:
        event["agentId"] = "a1"
    log.add("assistant.message", content="Seven.")

    main, agent = read(log)
    assert texts_of(agent) == [("user", "Count *.py")]
    assert texts_of(main) == [("user", "Count the files"), ("tool", "task Count"), ("assistant", "Seven.")]
    assert main.messages[-1].more["model"] == "large"


def test_a_refused_call_a_call_without_a_result_and_a_result_without_a_call_are_kept() -> None:
    log = Log()
    log.answer("", request("c1", "bash", '{"command": "rm"}'), request("c2", "bash", "not JSON"))
    log.add("tool.execution_complete", toolCallId="c1", success=False, error={"message": "No", "code": "rejected"})
    log.add("tool.execution_complete", toolCallId="gone", success=False, result={"content": "exit code: 1"})

    tools = [message.more["tool"] for message in read(log)[0].messages]
    assert [(tool["params"], tool["result"], tool["status"]) for tool in tools] == [
        ({"command": "rm"}, "No", "rejected"),
        ({"input": "not JSON"}, None, "pending"),
        ({}, "exit code: 1", "failed"),
    ]


def test_messages_sent_in_the_users_name_are_separated_and_attachments_named() -> None:
    log = Log()
    log.user("Skill instructions", source="skill-pdf")
    picture = {"type": "file", "path": "/tmp/shot.png", "displayName": "shot.png"}
    log.add("user.message", content="", attachments=[picture, {"type": "directory", "path": "/a"}, None])

    skill, sent = read(log)[0].messages
    assert (skill.role, skill.more["injected"]) == (Role.SYSTEM, True)
    assert (sent.role, sent.text, sent.more["attachments"]) == (Role.USER, "[shot.png] [/a]", ["shot.png", "/a"])


def test_a_repeated_thought_is_kept_once_and_a_compaction_an_abort_and_an_error_become_messages() -> None:
    log = Log()
    log.user("Hi")
    log.add("assistant.reasoning", reasoningId="r", content="Hm.")
    log.answer("Hello", reasoningText="Hm.")
    log.add("session.compaction_complete", success=True, summaryContent="We greeted.")
    log.add("abort", reason="user initiated")
    log.add("session.error", errorType="quota", message="No quota left")

    assert texts_of(read(log)[0])[1:] == [
        ("thinking", "Hm."),
        ("assistant", "Hello"),
        ("system", "We greeted."),
        ("system", "[Turn aborted: user initiated]"),
        ("error", "No quota left"),
    ]


def test_rewound_turns_are_kept_and_marked() -> None:
    log = Log()
    log.user("one")
    second = log.user("two")
    log.answer("answer two")
    log.add("session.snapshot_rewind", upToEventId=second, eventsRemoved=2)
    log.add("session.snapshot_rewind", upToEventId="unknown")
    log.user("three")

    [session] = read(log)
    assert [message.text for message in session.messages if "superseded" not in message.more] == ["one", "three"]
    assert len(session.messages) == 4


@pytest.mark.parametrize("form", ["folder", "file"])
def test_a_session_is_found_in_either_place_with_its_note(root: Path, form: str) -> None:
    log = working_log()
    log.events.pop(0)
    note = f'id: {log.session}\ncwd: {SHOP}\nbranch: fix\nname: "Basket: the \\"bug\\""\nuser_named: true\n'
    write_log(root, log, note if form == "folder" else "", form=form)

    session = read_changed(root)[log.session].session
    noted = ('Basket: the "bug"', SHOP) if form == "folder" else ("Why does the basket lose its items? 안녕", None)
    assert (session.title, session.project) == noted


@pytest.mark.parametrize(
    ("line", "title"),
    [("name: Basket bug", "Basket bug"), ("name: 'Ann''s bug'", "Ann's bug"), ("name: null", None), ("name:", None)],
)
def test_a_name_is_read_as_it_was_written(root: Path, line: str, title: str | None) -> None:
    log = Log()
    log.answer("Hi")
    write_log(root, log, f"{line}\nsummary: |-\n  name of all\n")
    assert read_changed(root)[log.session].session.title == title


def test_a_renamed_session_is_read_again(root: Path) -> None:
    write_log(root, working_log(), "name: Old")
    seen = {each.key: each.fingerprint for each in read_changed(root).values()}
    write_log(root, working_log(), "name: Newer")
    assert read_changed(root, seen)[session_id(1)].session.title == "Newer"


def test_a_session_of_the_first_versions_is_read_in_order(root: Path) -> None:
    folder = root / "history-session-state"
    folder.mkdir()
    (folder / "session_9.json").write_text(json.dumps(old_history()), encoding="utf-8")

    [each] = read_changed(root).values()
    assert texts_of(each.session) == [
        ("user", "Hello, 안녕"),
        ("tool", "bash ls\n\nbasket.py"),
        ("assistant", "One file."),
    ]
    assert each.session.session_id == session_id(9)
    assert {(str(message.timestamp)[:10], message.more.get("time")) for message in each.session.messages} == {
        ("2025-10-08", "inferred")
    }
    assert each.skipped == ()
    assert len(list(events_of({"chatMessages": [None, 7, {"role": "odd"}]}))) == 2


def test_empty_and_unknown_files_are_reported_once(root: Path) -> None:
    empty = Log(session_id(3))
    empty.start()
    file = write_log(root, empty)
    odd = working_log()
    odd.add("brand.new")
    for known in ("subagent.configured", "model.turn_started", "model.message", "model.messages_snapshot"):
        odd.add(known)
    odd.add("hook.start", parentToolCallId="says-nothing")
    write_log(root, odd)
    (root / "session-state" / session_id(4)).mkdir()
    (root / "session-state" / "damaged.json").write_text("[", encoding="utf-8")

    sessions = read_changed(root)
    assert not [name for name in sessions if "says-nothing" in name]
    assert sessions[session_id(3)].skipped == (Skipped(str(file), "no conversation in it"),)
    assert sessions[session_id(1)].skipped == (Skipped("1 x event brand.new", "unknown to this reader"),)
    assert sessions["damaged"].skipped[0] == Skipped("the file", "not a JSON object")
    assert scan(root, {each.key: each.fingerprint for each in sessions.values()}) == []
