"""Whatever a log of Copilot holds: it is read or passed over, without a crash and without an end of time."""

from __future__ import annotations

import copy
import io
import json

from hypothesis import given
from hypothesis import strategies as st

from registry.domain import Session, storable
from sources.copilot.cli import events_of, noted
from sources.copilot.events import _EVENTS, Events
from sources.kit.jsonl import Damage, Record, read_lines, records_of
from tests.sources.anything import ANYTHING, DEEP, change, check, or_anything
from tests.sources.copilot.copilot_files import Log, old_history, request, working_log

IDS = or_anything("e1", "e2", "")
CALLS = or_anything("c1", "c2", "")
REQUEST = st.fixed_dictionaries(
    {}, optional={"toolCallId": CALLS, "name": ANYTHING, "arguments": or_anything('{"a": 1}', "{", '{"a":' * 5000)}
)
DATA = st.fixed_dictionaries(
    {},
    optional={
        "toolCallId": CALLS,
        "parentToolCallId": or_anything("c1", ""),
        "toolRequests": ANYTHING | st.lists(REQUEST, max_size=3),
        "result": ANYTHING,
        "attachments": ANYTHING | st.lists(st.dictionaries(st.sampled_from(["path", "displayName"]), ANYTHING)),
        "context": ANYTHING | st.fixed_dictionaries({"cwd": or_anything("/a", "C:\\a")}),
        "upToEventId": IDS,
        **{key: ANYTHING for key in ("content", "reasoningText", "success", "error", "model", "source", "sessionId")},
        **{key: ANYTHING for key in ("message", "title", "newModel", "arguments", "toolName", "agentName", "reason")},
    },
)
EVENT = st.fixed_dictionaries(
    {"type": or_anything(*_EVENTS)}, optional={"id": IDS, "data": DATA | ANYTHING, "timestamp": ANYTHING}
)


def read(events: list[Record]) -> list[Session]:
    reading = Events("s", {"name": "  "})
    for event in events:
        reading.read(event)
    sessions = list(reading.sessions())
    for session in sessions:
        check(session)
    return sessions


@given(st.lists(EVENT, max_size=12))
def test_any_events_make_sessions(events: list[Record]) -> None:
    read(events)


@given(st.binary() | st.lists(st.sampled_from([b"{", b"}", b'"data":', b"{}", b"\n", b"\xff"])).map(b"".join))
def test_any_bytes_are_read_or_told(data: bytes) -> None:
    read(list(records_of(read_lines(io.BytesIO(data)), Damage())))


WHOLE = working_log().lines()


@given(st.integers(0, len(WHOLE)))
def test_a_log_cut_anywhere_keeps_what_was_written_before(length: int) -> None:
    read(list(records_of(read_lines(io.BytesIO(WHOLE[:length])), Damage())))


@given(st.data())
def test_a_real_log_with_any_value_changed_is_still_read(data: st.DataObject) -> None:
    events = copy.deepcopy(working_log().events)
    for _ in range(data.draw(st.integers(1, 4))):
        change(data, data.draw(st.sampled_from([event for event in events if event])))
    read(events)


@given(st.data())
def test_an_old_document_with_any_value_changed_is_still_read(data: st.DataObject) -> None:
    history = old_history()
    for _ in range(data.draw(st.integers(1, 4))):
        if history:
            change(data, history)
    read(list(events_of(history)))


@given(st.text() | st.lists(st.sampled_from(["name:", " ", '"', "'", "\n", "cwd: x", "\\"])).map("".join))
def test_any_note_is_some_words(text: str) -> None:
    assert all(isinstance(storable(value), str) for value in noted(text).values())


def test_a_bottomless_parameter_and_result_do_no_harm() -> None:
    log = Log()
    log.answer("", request("c1", "bash", DEEP))
    log.add("tool.execution_complete", toolCallId="c1", success=True, result=DEEP)
    json.dumps([dict(message.more) for message in read(log.events)[0].messages])


def test_fifty_thousand_rewound_turns_take_no_time() -> None:
    events: list[Record] = []
    for number in range(50_000):
        events.append({"type": "user.message", "id": f"e{number}", "data": {"content": f"{number}"}})
        events.append({"type": "session.snapshot_rewind", "data": {"upToEventId": f"e{number}"}})
    assert len(read(events)[0].messages) == 50_000
