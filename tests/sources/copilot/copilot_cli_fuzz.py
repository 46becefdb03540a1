"""Copilot CLI's format for `tests/sources/test_fuzz.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from registry.domain import Session
from sources.copilot.cli import EventLog
from sources.kit.loose_json import Record
from tests.sources.anything import ANYTHING, or_anything
from tests.sources.copilot.copilot_files import working_log
from tests.sources.fuzzing import Format

KINDS = (
    *("session.start", "session.context_changed", "session.model_change", "session.title_changed", "session.error"),
    *("session.snapshot_rewind", "session.compaction_complete", "session.shutdown", "abort", "user.message"),
    *("assistant.message", "assistant.reasoning", "tool.execution_start", "tool.execution_complete"),
    *("subagent.started", "subagent.failed"),
)
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
    {"type": or_anything(*KINDS)}, optional={"id": IDS, "data": DATA | ANYTHING, "timestamp": ANYTHING}
)


def read(events: list[Record]) -> list[Session]:
    """Parse events into sessions."""
    reading = EventLog("s", described={"name": "  "})
    for event in events:
        reading.read(event)
    return list(reading.sessions())


COPILOT_CLI = Format("copilot-cli", EVENT, (working_log().events,), read, are_lines=True)
