"""Build Kimi Code's files of version 2.1: a log of records for each agent of a session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from registry.domain import Session
from sources.kimi.reader import AgentLog
from tests.sources.anything import ANYTHING, or_anything
from tests.sources.fuzzing import Format, lines_of

Record = dict[str, Any]
SHOP, SESSION = "/home/ann/shop", "session_e2e14101-cff0-4fcb-b0ea-c530cb59b7f4"
BEGAN = 1_795_710_464_000


def asked(words: str, *parts: Record, **origin: str) -> Record:
    """Return a message to the model, typed by the user if no origin is given."""
    content = [{"type": "text", "text": words}, *parts]
    message = {"role": "user", "content": content, "id": f"msg_{words[:3]}", "origin": origin or {"kind": "user"}}
    return {"type": "context.append_message", "message": message}


def event(kind: str, **more: Any) -> Record:
    """Return an event of a model step."""
    return {"type": "context.append_loop_event", "event": {"type": kind, **more}}


def answer_part(key: str, **part: str) -> Record:
    """Return a part of an answer."""
    return event("content.part", uuid=key, part=part)


def working_session() -> list[Record]:
    """Return a session with all usual parts."""
    records: list[Record] = [
        {"type": "metadata", "protocol_version": "1.5"},
        {"type": "profile.bind", "modelAlias": "k2", "systemPrompt": "You are Kimi."},
        {"type": "turn.prompt", "input": [{"type": "text", "text": "Why is the basket empty? 안녕"}]},
        asked("Why is the basket empty? 안녕", {"type": "image_url", "imageUrl": {"url": "x"}}),
        asked("<system-reminder>\nToday\n</system-reminder>", kind="injection", variant="date_change"),
        event("step.begin", uuid="s1", step=1),
        answer_part("u1", type="think", think="Hm."),
        answer_part("u2", type="text", text="I look."),
        event("tool.call", uuid="u3", toolCallId="c1", name="Bash", args={"command": "pytest"}),
        event("tool.result", toolCallId="c1", result={"output": "1 failed", "isError": True}),
        event("step.end", usage={"inputOther": 100, "output": 50, "inputCacheRead": 7, "inputCacheCreation": 0}),
        event("step.begin", uuid="s2", step=2),
        answer_part("u4", type="text", text="It makes a new list."),
        event("step.end"),
        {"type": "agent.message.appended", "message": {"role": "assistant"}, "kind": "event"},
    ]
    return [{**record, "time": BEGAN + place} for place, record in enumerate(records)]


def write(root: Path, records: list[Record], agent: str = "main", session: str = SESSION, **state: str) -> Path:
    """Write an agent's log into the folder of its session."""
    folder = root / "sessions" / "wd_shop_1b20fbdc3b6d" / session
    file = folder / "agents" / agent / "wire.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(lines_of(records))
    (folder / "state.json").write_text(json.dumps({"id": session, "cwd": SHOP, **state}), encoding="utf-8")
    return file


def read(records: list[Record]) -> Session:
    """Parse records into a session."""
    log = AgentLog(SESSION, SHOP)
    for record in records:
        log.read(record)
    return log.build()


EVENT = st.fixed_dictionaries(
    {"type": or_anything("step.begin", "content.part", "tool.call", "tool.result", "step.end")},
    optional={
        "toolCallId": or_anything("c1"),
        "part": ANYTHING | st.fixed_dictionaries({}, optional={"text": ANYTHING, "think": ANYTHING}),
        **{key: ANYTHING for key in ("uuid", "name", "args", "result", "usage")},
    },
)
RECORDS = st.fixed_dictionaries(
    {
        "type": or_anything(
            *("context.append_message", "context.append_loop_event", "context.undo", "context.apply_compaction"),
            "profile.bind",
        )
    },
    optional={
        "event": ANYTHING | EVENT,
        "message": ANYTHING | st.fixed_dictionaries({"role": or_anything("user")}, optional={"content": ANYTHING}),
        "count": or_anything(1),
        **{key: ANYTHING for key in ("time", "summary", "modelAlias")},
    },
)
KIMI_CODE = Format("kimi-code", RECORDS, (working_session(),), lambda records: [read(records)], are_lines=True)
