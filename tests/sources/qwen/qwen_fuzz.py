"""Qwen Code's format for `tests/sources/test_fuzz.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from registry.domain import Session
from sources.kit.loose_json import Record
from sources.qwen.reader import QwenChat
from tests.sources.anything import ANYTHING, or_anything
from tests.sources.fuzzing import Format
from tests.sources.qwen.qwen_files import working_chat

IDS = or_anything("r1", "r2", "c1", "")
PART = st.fixed_dictionaries(
    {},
    optional={
        "text": or_anything("Hi", "--- Content from referenced files ---"),
        "thought": ANYTHING,
        "functionCall": ANYTHING | st.fixed_dictionaries({"id": IDS, "name": ANYTHING, "args": ANYTHING}),
        "functionResponse": ANYTHING | st.fixed_dictionaries({"id": IDS, "response": ANYTHING}),
    },
)
RECORDS = st.fixed_dictionaries(
    {"type": or_anything("user", "assistant", "tool_result", "system")},
    optional={
        "uuid": IDS,
        "parentUuid": IDS,
        "timestamp": ANYTHING,
        "subtype": or_anything("rewind", "custom_title", "notification"),
        "provenance": or_anything("real_user", "system"),
        "message": ANYTHING | st.fixed_dictionaries({"parts": ANYTHING | st.lists(PART, max_size=3)}),
        "systemPayload": ANYTHING | st.fixed_dictionaries({"customTitle": ANYTHING, "displayText": ANYTHING}),
        "toolCallResult": ANYTHING,
        "usageMetadata": ANYTHING,
        "forkedFrom": ANYTHING,
        "cwd": ANYTHING,
        "model": ANYTHING,
    },
)


def read(records: list[Record]) -> Session:
    """Parse records into a session."""
    chat = QwenChat("s")
    for record in records:
        chat.read(record)
    return chat.session()


QWEN_CODE = Format("qwen-code", RECORDS, (working_chat().lines,), lambda records: [read(records)], are_lines=True)
