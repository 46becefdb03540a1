"""Continue's format for `tests/sources/test_fuzz.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from registry.domain import Session
from sources.continue_dev.reader import ContinueChat
from sources.kit.loose_json import Record
from tests.sources.anything import ANYTHING, or_anything
from tests.sources.continue_dev.continue_files import working_history
from tests.sources.fuzzing import Format

CALL = st.fixed_dictionaries({"id": or_anything("c1"), "function": ANYTHING})
ITEM = st.fixed_dictionaries(
    {
        "message": ANYTHING
        | st.fixed_dictionaries(
            {"role": or_anything("user", "assistant", "tool", "thinking", "system")},
            optional={"content": ANYTHING, "toolCalls": ANYTHING | st.lists(CALL), "usage": ANYTHING},
        )
    },
    optional={
        "contextItems": ANYTHING,
        "reasoning": ANYTHING | st.fixed_dictionaries({"text": ANYTHING, "startAt": ANYTHING}),
        "toolCallStates": ANYTHING
        | st.lists(st.fixed_dictionaries({"toolCallId": or_anything("c1"), "toolCall": CALL, "output": ANYTHING})),
    },
)


def _read(records: list[Record]) -> list[Session]:
    talk = ContinueChat("s")
    talk.read({"workspaceDirectory": "/home/ann/shop", "history": records})
    return [talk.session()]


CONTINUE = Format("continue", ITEM, (working_history(),), _read)
