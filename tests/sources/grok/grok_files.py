"""Build Grok CLI's files of version 1.0.41: a folder with a stream of updates for each session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from registry.domain import Session
from sources.grok.reader import Updates
from tests.sources.anything import ANYTHING, or_anything
from tests.sources.fuzzing import Format

Record = dict[str, Any]

BEGIN_MS = 1_795_647_654_966
SHOP = "/home/ann/shop"
SESSION = "01a214f0-cb32-7cc1-9752-c7816294c148"


def updates(*given: Record) -> list[Record]:
    """Return the lines of a session, one second apart."""
    return [
        {
            "timestamp": BEGIN_MS // 1000 + place,
            "method": "session/update",
            "params": {"sessionId": SESSION, "update": update, "_meta": {"agentTimestampMs": BEGIN_MS + 1000 * place}},
        }
        for place, update in enumerate(given)
    ]


def asked(text: str, index: int = 0) -> Record:
    """Return a prompt."""
    about = {"modelId": "grok-4.6", "promptIndex": index}
    return {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}, "_meta": about}


def chunk(text: str, kind: str = "agent_message_chunk") -> Record:
    """Return a piece of an answer or a thought."""
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def called(key: str, name: str, **params: Any) -> Record:
    """Return a tool call."""
    about = {"x.ai/tool": {"name": name}}
    return {"sessionUpdate": "tool_call", "toolCallId": key, "title": name, "rawInput": params, "_meta": about}


def result(key: str, text: str, exit_code: int | None = None) -> Record:
    """Return the end of a tool call."""
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    output: Record = {} if exit_code is None else {"rawOutput": {"exit_code": exit_code, "output_for_prompt": text}}
    return {"sessionUpdate": "tool_call_update", "toolCallId": key, "status": "completed", "content": content, **output}


def done(tokens: int = 50) -> Record:
    """Return the end of a turn."""
    return {"sessionUpdate": "turn_completed", "usage": {"inputTokens": 100, "outputTokens": tokens}}


def working_session() -> list[Record]:
    """Return a session with all usual parts."""
    return updates(
        asked("Why is the basket empty? 안녕"),
        chunk("It returns ", "agent_thought_chunk"),
        chunk("a new list.", "agent_thought_chunk"),
        chunk("I will"),
        chunk(" look."),
        called("c1", "read_file", target_file=f"{SHOP}/basket.py"),
        {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": None, "title": "Read"},
        result("c1", "return []"),
        called("c2", "run_terminal_command", command="pytest"),
        result("c2", "1 failed", 1),
        chunk("It makes a new list."),
        done(),
    )


def write(root: Path, lines: list[Record], session: str = SESSION, **summary: Any) -> Path:
    """Write a session into its folder, with its summary."""
    folder = root / "sessions" / "%2Fhome%2Fann%2Fshop" / session
    folder.mkdir(parents=True, exist_ok=True)
    about = {"info": {"id": session, "cwd": SHOP}, "generated_title": "The empty basket", **summary}
    (folder / "summary.json").write_text(json.dumps(about), encoding="utf-8")
    file = folder / "updates.jsonl"
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return file


UPDATE = st.fixed_dictionaries(
    {
        "sessionUpdate": or_anything(
            *("user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"),
            *("turn_completed", "rewind_marker", "auto_compact_completed", "background_tasks"),
        )
    },
    optional={
        "content": ANYTHING | st.fixed_dictionaries({"type": or_anything("text", "image"), "text": ANYTHING}),
        "toolCallId": or_anything("c1"),
        "status": or_anything("completed", "failed"),
        **{key: ANYTHING for key in ("title", "rawInput", "rawOutput", "_meta", "usage", "target_prompt_index")},
    },
)
RECORDS = st.fixed_dictionaries(
    {"params": ANYTHING | st.fixed_dictionaries({"update": UPDATE}, optional={"_meta": ANYTHING})},
    optional={"timestamp": ANYTHING},
)


def read(records: list[Record]) -> Session:
    """Parse records into a session."""
    talk = Updates(SESSION, SHOP)
    for record in records:
        talk.read(record)
    return talk.build()


GROK_CLI = Format("grok-cli", RECORDS, (working_session(),), lambda records: [read(records)], are_lines=True)
