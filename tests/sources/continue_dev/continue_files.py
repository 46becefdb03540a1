"""Build Continue's files: a document for each session, and their list."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Record = dict[str, Any]

BEGAN = 1_795_331_123_618
SHOP = "/home/ann/shop"
SESSION = "058a46b9-21f6-49f2-bce9-0ff8ac335a59"


def item(role: str, content: Any, *, states: list[Record] | None = None, beside: Any = None, **message: Any) -> Record:
    """Return an item of a history."""
    found = {"message": {"role": role, "content": content, **message}, "contextItems": []}
    return found | ({"toolCallStates": states} if states else {}) | (beside or {})


def tool_state(key: str, name: str, params: Record, output: str, status: str = "done") -> Record:
    """Return the state of a call."""
    call = {"id": key, "type": "function", "function": {"name": name, "arguments": json.dumps(params)}}
    shown = [{"name": "Tool Result", "description": "", "content": output}] if output else []
    return {"toolCallId": key, "toolCall": call, "status": status, "parsedArgs": params, "output": shown}


def working_history() -> list[Record]:
    """Return a history with all usual parts."""
    usage = {"prompt_tokens": 90, "completion_tokens": 4, "total_tokens": 94, "model": "gpt-4o"}
    picture = [
        {"type": "text", "text": "Why is the basket empty? 안녕"},
        {"type": "imageUrl", "imageUrl": {"url": "…"}},
    ]
    shown = {"contextItems": [{"name": "basket.py", "description": "", "content": "return []"}]}
    looked = tool_state("c1", "Read", {"filepath": f"{SHOP}/basket.py"}, "return []")
    ran = tool_state("c2", "Bash", {"command": "pytest"}, "1 failed", "errored")
    thought = {"reasoning": {"active": False, "text": "It returns a new list."}}
    return [
        item("user", picture, beside=shown),
        item("assistant", "I will look.", states=[looked], usage=usage, toolCalls=[looked["toolCall"]], beside=thought),
        item("assistant", "", states=[ran], toolCalls=[ran["toolCall"]]),
        item("assistant", "It makes a new list."),
    ]


def write(store: Path, history: list[Record], session: str = SESSION, **described: Any) -> Path:
    """Write a session and its entry in the list."""
    record = {"sessionId": session, "title": "Untitled Session", "workspaceDirectory": SHOP, **described}
    file = store / "sessions" / f"{session}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**record, "history": history}), encoding="utf-8")
    listed = [{"sessionId": session, "title": "Untitled Session", "dateCreated": str(BEGAN)}]
    (store / "sessions" / "sessions.json").write_text(json.dumps(listed), encoding="utf-8")
    return file
