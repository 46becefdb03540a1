"""Gemini CLI's format for `tests/sources/test_fuzz.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from registry.domain import Session
from sources.gemini import reader as gemini_reader
from sources.kit.loose_json import Record
from tests.sources.anything import ANYTHING, or_anything
from tests.sources.fuzzing import Format
from tests.sources.gemini.gemini_files import working_chat

IDS = or_anything("m1", "m2", "m3", "")
TEXTS = or_anything("Hi", "<session_context>", "x --- Content from referenced files --- Content from @a:", "")
PARTS = TEXTS | st.lists(
    st.fixed_dictionaries({}, optional={"text": TEXTS, "inlineData": ANYTHING, "thought": ANYTHING})
)
CALL = st.fixed_dictionaries(
    {"name": or_anything("shell")},
    optional={
        "id": IDS,
        "args": ANYTHING,
        "status": or_anything("success", "error", "cancelled", "executing", "odd"),
        "result": ANYTHING | st.lists(st.fixed_dictionaries({"functionResponse": ANYTHING})),
        "resultDisplay": ANYTHING,
    },
)
MESSAGE = st.fixed_dictionaries(
    {"type": or_anything("user", "gemini", "info", "error")},
    optional={
        "id": IDS,
        "timestamp": ANYTHING,
        "content": PARTS,
        "displayContent": PARTS,
        "thoughts": ANYTHING | st.lists(st.fixed_dictionaries({"subject": ANYTHING, "description": ANYTHING})),
        "tokens": ANYTHING,
        "model": ANYTHING,
        "toolCalls": ANYTHING | st.lists(CALL, max_size=2),
    },
)
HEADER = st.fixed_dictionaries(
    {},
    optional={
        "sessionId": ANYTHING,
        "summary": TEXTS,
        "directories": ANYTHING,
        "projectHash": ANYTHING,
        "messages": ANYTHING | st.lists(MESSAGE | ANYTHING, max_size=4),
    },
)
RECORDS = (
    MESSAGE | HEADER | st.fixed_dictionaries({"$rewindTo": IDS}) | st.fixed_dictionaries({"$set": HEADER | ANYTHING})
)


def read(records: list[Record], agent_of: str | None = None) -> Session:
    """Parse records into a session."""
    chat = gemini_reader.GeminiChat("s", agent_of=agent_of)
    for record in records:
        chat.read(record)
    return chat.session()


GEMINI_CLI = Format(
    "gemini-cli",
    RECORDS,
    ([working_chat().header, *working_chat().lines],),
    lambda records: [read(records)],
    are_lines=True,
)
