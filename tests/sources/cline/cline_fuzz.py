"""Cline's two formats for `tests/sources/test_fuzz.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from registry.domain import Session
from sources.cline.reader import ClineDialogue, Task
from sources.kit.loose_json import Record, mapping
from tests.sources.anything import ANYTHING, or_anything
from tests.sources.cline.cline_files import working_session, working_view
from tests.sources.fuzzing import Format

KINDS = or_anything("task", "text", "tool", "command", "command_output", "followup", "api_req_started", "error")
SAID = st.fixed_dictionaries(
    {},
    optional={
        "ts": ANYTHING,
        "say": KINDS,
        "ask": KINDS,
        "text": or_anything("Hi", '{"tool": "readFile", "path": 7}', '{"question": []}', "{"),
        "partial": ANYTHING,
        "images": ANYTHING,
        "files": ANYTHING,
        "modelInfo": ANYTHING,
    },
)
BLOCK = st.fixed_dictionaries(
    {"type": or_anything("text", "thinking", "tool_use", "tool_result", "image")},
    optional={
        "text": or_anything("<user_input>a</user_input>", "<environment_details>"),
        "thinking": ANYTHING,
        "id": or_anything("c1"),
        "tool_use_id": or_anything("c1"),
        "name": ANYTHING,
        "input": ANYTHING,
        "content": ANYTHING,
    },
)
SENT = st.fixed_dictionaries(
    {"role": or_anything("user", "assistant")},
    optional={
        "content": ANYTHING | st.lists(BLOCK, max_size=4),
        "id": or_anything("m1"),
        "ts": ANYTHING,
        "modelInfo": ANYTHING,
        "metrics": ANYTHING,
    },
)


def _read(reading: Task | ClineDialogue, records: list[Record]) -> list[Session]:
    for record in records:
        reading.read(mapping(record))
    return [reading.build()]


CLINE_TASK = Format("cline-task", SAID, (working_view(),), lambda records: _read(Task("s"), records))
CLINE_SESSION = Format("cline-session", SENT, (working_session(),), lambda records: _read(ClineDialogue("s"), records))
