"""Goose's format for `tests/sources/test_fuzz.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from registry.domain import Session
from sources.goose.reader import GooseDialogue
from sources.kit.loose_json import Record
from tests.sources.anything import ANYTHING, or_anything
from tests.sources.fuzzing import Format
from tests.sources.goose.goose_files import working_messages

PART = st.fixed_dictionaries(
    {"type": or_anything("text", "thinking", "toolRequest", "toolResponse", "image", "systemNotification")},
    optional={
        "text": ANYTHING,
        "thinking": ANYTHING,
        "id": or_anything("c1"),
        "toolCall": ANYTHING | st.fixed_dictionaries({"value": ANYTHING, "status": or_anything("error")}),
        "toolResult": ANYTHING | st.fixed_dictionaries({"value": ANYTHING, "status": or_anything("error")}),
        "msg": ANYTHING,
    },
)
MESSAGE = st.fixed_dictionaries(
    {"role": or_anything("user", "assistant")},
    optional={
        "content": ANYTHING | st.lists(PART, max_size=3),
        "created": ANYTHING,
        "id": ANYTHING,
        "metadata": ANYTHING,
    },
)


def read(records: list[Record]) -> Session:
    """Parse records into a session."""
    talk = GooseDialogue("s", described={})
    for record in records:
        talk.read(record)
    return talk.session()


GOOSE = Format("goose", MESSAGE, (working_messages(),), lambda records: [read(records)], are_lines=True)
