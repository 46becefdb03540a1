"""Antigravity's format for `tests/sources/test_fuzz.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from registry.domain import Session
from sources.antigravity.reader import AntigravityTranscript
from sources.kit.loose_json import Record
from tests.sources.antigravity.antigravity_files import working_steps
from tests.sources.anything import ANYTHING, or_anything
from tests.sources.fuzzing import Format

CALL = st.fixed_dictionaries({"name": or_anything("view_file")}, optional={"args": ANYTHING, "arguments": ANYTHING})
STEPS = st.fixed_dictionaries(
    {
        "type": or_anything("USER_INPUT", "PLANNER_RESPONSE", "VIEW_FILE", "ERROR_MESSAGE", "CHECKPOINT"),
    },
    optional={
        "step_index": or_anything(0, 1, 2),
        "source": or_anything("USER_EXPLICIT", "MODEL", "SYSTEM"),
        "status": or_anything("DONE", "ERROR"),
        "created_at": ANYTHING,
        "content": or_anything("<USER_REQUEST>Hi", "Created At: x\n", "<ADDITIONAL_METADATA>"),
        "thinking": ANYTHING,
        "tool_calls": ANYTHING | st.lists(CALL, max_size=3),
        "error": or_anything("invalid tool call"),
        "exit_code": ANYTHING,
    },
)


def read(records: list[Record]) -> Session:
    """Parse steps into a session."""
    transcript = AntigravityTranscript("s")
    for record in records:
        transcript.read(record)
    return transcript.session()


ANTIGRAVITY = Format("antigravity", STEPS, (working_steps().lines,), lambda records: [read(records)], are_lines=True)
