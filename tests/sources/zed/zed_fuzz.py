"""Zed's format for `tests/sources/test_fuzz.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from registry.domain import Session
from sources.kit.loose_json import Record
from sources.zed.reader import Thread
from tests.sources.anything import ANYTHING, or_anything
from tests.sources.fuzzing import Format
from tests.sources.zed.zed_files import working_messages

BLOCK = st.fixed_dictionaries(
    {}, optional={"Text": ANYTHING, "Thinking": ANYTHING, "Mention": ANYTHING, "Image": ANYTHING, "ToolUse": ANYTHING}
)
HELD = st.fixed_dictionaries(
    {"content": ANYTHING | st.lists(BLOCK, max_size=3)}, optional={"id": ANYTHING, "tool_results": ANYTHING}
)
FIRST_YEAR = st.fixed_dictionaries(
    {"role": or_anything("user", "assistant", "system")},
    optional={"segments": ANYTHING, "tool_uses": ANYTHING, "tool_results": ANYTHING, "context": ANYTHING},
)
MESSAGE = st.fixed_dictionaries({}, optional={"User": HELD | ANYTHING, "Agent": HELD | ANYTHING}) | FIRST_YEAR


def _read(records: list[Record]) -> list[Session]:
    thread = Thread("s", "/home/ann/shop", "any")
    for record in records:
        thread.read(record)
    return [thread.build()]


_OLD: Record = {"role": "user", "segments": [{"type": "text", "text": "Why?"}], "context": "", "tool_uses": [], "id": 1}
ZED = Format("zed", MESSAGE, ([_OLD, *(each for each in working_messages() if each != "Resume")],), _read)
