"""Build Pi's files of version 0.73: a tree of entries in a file for each session."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from registry.domain import Session
from sources.pi.reader import Tree
from tests.sources.anything import ANYTHING, or_anything
from tests.sources.fuzzing import Format

Record = dict[str, Any]

BEGIN = datetime(2026, 11, 25, 23, 4, tzinfo=UTC)
SHOP = "/home/ann/shop"
SESSION = "01a214f3-a4ee-715b-8681-c980c639a0ed"


@dataclass
class Dialogue:
    """The entries of a session."""

    lines: list[Record] = field(default_factory=list)
    parent: str | None = None

    def __post_init__(self) -> None:
        self.lines.append({"type": "session", "version": 3, "id": SESSION, "timestamp": self.now(), "cwd": SHOP})

    def now(self) -> str:
        """Return the time, ten seconds after the last entry."""
        at = BEGIN + timedelta(seconds=10 * len(self.lines))
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def add(self, kind: str, **more: Any) -> None:
        """Add an entry that follows the last."""
        own = f"e{len(self.lines)}"
        self.lines.append({"type": kind, "id": own, "parentId": self.parent, "timestamp": self.now(), **more})
        self.parent = own

    def says(self, role: str, *content: Record, **more: Any) -> None:
        """Add a message."""
        self.add("message", message={"role": role, "content": list(content), **more})

    def answers(self, *content: Record, **more: Any) -> None:
        """Add a message of the model."""
        usage = {"input": 100, "output": 50, "cacheRead": 0}
        self.says("assistant", *content, model="claude-sonnet-4-6", usage=usage, **more)


def text(words: str) -> Record:
    """Return a text part."""
    return {"type": "text", "text": words}


def call(key: str, name: str, **params: Any) -> Record:
    """Return a part with a tool call."""
    return {"type": "toolCall", "id": key, "name": name, "arguments": params}


def working_session() -> Dialogue:
    """Return a session with all usual parts."""
    talk = Dialogue()
    talk.add("model_change", provider="anthropic", modelId="claude-sonnet-4-6")
    talk.says("user", text("Why is the basket empty? 안녕"), {"type": "image", "mimeType": "image/png", "data": "x"})
    talk.answers(
        {"type": "thinking", "thinking": "It returns a new list."},
        text("I will look."),
        call("c1", "read", path=f"{SHOP}/basket.py"),
    )
    talk.says("toolResult", text("return []"), toolCallId="c1", toolName="read", isError=False)
    talk.answers(call("c2", "bash", command="pytest"))
    talk.says("toolResult", text("1 failed"), toolCallId="c2", toolName="bash", isError=True)
    talk.answers(text("It makes a new list."))
    return talk


def write(root: Path, talk: Dialogue, session: str = SESSION) -> Path:
    """Write a session into the folder of its project."""
    file = root / "sessions" / "--home-ann-shop--" / f"2026-11-25T23-04-00-000Z_{session}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in talk.lines), encoding="utf-8")
    return file


PART = st.fixed_dictionaries(
    {"type": or_anything("text", "thinking", "toolCall", "image")},
    optional={key: ANYTHING for key in ("text", "thinking", "id", "name", "arguments", "mimeType")},
)
MESSAGE = st.fixed_dictionaries(
    {"role": or_anything("user", "assistant", "toolResult", "bashExecution", "custom", "branchSummary")},
    optional={
        "content": ANYTHING | st.lists(PART, max_size=3),
        "toolCallId": or_anything("c1", "c2"),
        **{key: ANYTHING for key in ("command", "output", "exitCode", "summary", "model", "usage", "errorMessage")},
    },
)
RECORDS = st.fixed_dictionaries(
    {"type": or_anything("message", "session", "compaction", "branch_summary", "custom_message", "session_info")},
    optional={
        "id": or_anything("e1", "e2"),
        "parentId": or_anything("e1", None),
        "message": ANYTHING | MESSAGE,
        **{key: ANYTHING for key in ("timestamp", "cwd", "parentSession", "summary", "content", "name")},
    },
)


def read(records: list[Record]) -> Session:
    """Parse records into a session."""
    tree = Tree(SESSION)
    for record in records:
        tree.read(record)
    return tree.session()


PI = Format("pi", RECORDS, (working_session().lines,), lambda records: [read(records)], are_lines=True)
