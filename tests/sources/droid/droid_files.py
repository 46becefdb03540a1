"""Build Droid's files of version 0.215: a chain of records in a file for each session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from registry.domain import Session
from sources.droid.reader import DroidChat
from tests.sources.anything import ANYTHING, or_anything
from tests.sources.fuzzing import Format, lines_of

Record = dict[str, Any]
SHOP, SESSION = "/home/ann/shop", "5add38a3-6f5a-4615-a2bd-96b71600e6f5"


def says(number: int, role: str, *content: Record, after: int | None = None, **more: Any) -> Record:
    """Return a message that follows another one."""
    parent = {} if after is None else {"parentId": f"m{after}"}
    said = {"role": role, "content": list(content), **more}
    return {
        "type": "message",
        "id": f"m{number}",
        **parent,
        "timestamp": f"2026-11-26T16:28:{number:02}Z",
        "message": said,
    }


def text(words: str) -> Record:
    """Return a text block."""
    return {"type": "text", "text": words}


def working_session() -> list[Record]:
    """Return a session with all usual parts."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x"}}
    look = {"type": "tool_use", "id": "c1", "name": "Execute", "input": {"command": "pytest"}}
    failed = {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": "1 failed"}
    return [
        {"type": "session_start", "id": SESSION, "title": "The empty basket", "version": 2, "cwd": SHOP},
        says(0, "user", text("<system-reminder>\nTools: …\n</system-reminder>")),
        says(1, "user", text("Why is the basket empty? 안녕"), picture, after=0),
        says(2, "assistant", {"type": "thinking", "thinking": "Hm."}, text("I look."), look, after=1, modelId="m-1"),
        says(3, "user", failed, after=2),
        says(4, "assistant", text("It makes a new list."), after=3, modelId="m-1"),
        {"type": "agent_turn_outcome", "turnId": "m1", "reason": "completed"},
    ]


def write(root: Path, records: list[Record], session: str = SESSION) -> Path:
    """Write a session into the folder of its project."""
    file = root / "sessions" / "-home-ann-shop" / f"{session}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(lines_of(records))
    return file


def read(records: list[Record]) -> Session:
    """Parse records into a session."""
    chat = DroidChat(SESSION)
    for record in records:
        chat.read(record)
    return chat.session()


BLOCK = st.fixed_dictionaries(
    {"type": or_anything("text", "thinking", "tool_use", "tool_result", "image")},
    optional={
        "id": or_anything("c1"),
        "tool_use_id": or_anything("c1"),
        **{key: ANYTHING for key in ("text", "thinking", "name", "input", "content", "is_error", "source")},
    },
)
MESSAGE = st.fixed_dictionaries(
    {"role": or_anything("user", "assistant")},
    optional={"content": ANYTHING | st.lists(BLOCK, max_size=3), "modelId": ANYTHING, "visibility": ANYTHING},
)
RECORDS = st.fixed_dictionaries(
    {"type": or_anything("message", "session_start", "compaction_state", "agent_turn_outcome")},
    optional={
        "id": or_anything("m1", "m2"),
        "parentId": or_anything("m1", None),
        "message": ANYTHING | MESSAGE,
        **{key: ANYTHING for key in ("timestamp", "cwd", "title", "parent", "summaryText")},
    },
)
DROID = Format("droid", RECORDS, (working_session(),), lambda records: [read(records)], are_lines=True)
