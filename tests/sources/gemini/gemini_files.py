"""Build Gemini CLI's files: documents, journals, chats of sub-agents, notes of projects."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

Record = dict[str, Any]

BEGIN = datetime(2026, 5, 5, 19, 54, tzinfo=UTC)
SHOP = "/home/ann/shop"


def session_id(number: int) -> str:
    """Return an id in the client's form."""
    return f"1a9d8b97-3d6d-4e23-b7df-{number:012}"


def slot_of(project: str) -> str:
    """Return the folder name of a project without a short name."""
    return sha256(project.encode()).hexdigest()


@dataclass
class Chat:
    """The messages of one chat."""

    session: str = session_id(1)
    header: Record = field(default_factory=dict)
    lines: list[Record] = field(default_factory=list)
    at: datetime = BEGIN

    def __post_init__(self) -> None:
        time = self.time()
        known = {"sessionId": self.session, "projectHash": slot_of(SHOP), "startTime": time, "lastUpdated": time}
        self.header = known | {"kind": "main"} | self.header

    def time(self) -> str:
        """Return the next time, as the client writes it."""
        self.at += timedelta(seconds=10)
        return self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def add(self, kind: str, content: Any, **more: Any) -> Record:
        """Add a message of any type."""
        message = {"id": f"m{len(self.lines)}", "timestamp": self.time(), "type": kind, "content": content, **more}
        self.lines.append(message)
        return message

    def user(self, *texts: str, **more: Any) -> Record:
        """Add a user message."""
        return self.add("user", [{"text": text} for text in texts], **more)

    def gemini(self, text: str, *calls: Record, **more: Any) -> Record:
        """Add an answer. A journal has it first without its calls."""
        answer: Record = {"thoughts": [], "model": "gemini-3-flash-preview", "tokens": {"input": 90, "output": 4}}
        message = self.add("gemini", text, **(answer | more))
        if calls:
            self.lines.append(message | {"toolCalls": list(calls)})
        return message

    def set(self, **fields: Any) -> None:
        """Add a line of the journal that changes the header."""
        self.lines.append({"$set": fields})

    def journal(self) -> bytes:
        """Return the content of a `.jsonl` file."""
        return b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in [self.header, *self.lines])

    def document(self) -> bytes:
        """Return the content of a `.json` file: the last version of each message."""
        messages = {line["id"]: line for line in self.lines if "id" in line}
        return json.dumps(self.header | {"messages": list(messages.values())}, indent=2).encode()


def call(name: str, args: Record, output: Any = None, status: str = "success", **more: Any) -> Record:
    """Return a tool call with its result."""
    call_id = f"{name}_1778010879448_{sum(map(ord, str(args)))}"
    key = "error" if status == "error" else "output"
    response = {"functionResponse": {"id": call_id, "name": name, "response": {key: output}}}
    result = [] if output is None else [response]
    return {"id": call_id, "name": name, "args": args, "status": status, "result": result, **more}


def working_chat(number: int = 1) -> Chat:
    """Return a chat with all usual parts."""
    chat = Chat(session_id(number))
    chat.user("This is the Gemini CLI. We are setting up the context for our chat.\nToday is Tuesday.")
    chat.user("Why does the basket lose its items? 안녕")
    chat.set(lastUpdated=chat.time())
    thought = {"subject": "Reading", "description": "The basket is in basket.py.", "timestamp": chat.time()}
    chat.gemini("I will look.", call("read_file", {"file_path": f"{SHOP}/basket.py"}, "return []"), thoughts=[thought])
    chat.gemini(
        "",
        call("run_shell_command", {"command": "pytest"}, "1 failed", "error"),
        call("write_file", {"file_path": "a"}, "User did not allow tool call", "cancelled"),
    )
    chat.add("info", "Request cancelled.")
    chat.add("error", "[API Error: quota]")
    chat.gemini("It makes a new list.\n\n```python\nreturn items\n```")
    return chat


def write(root: Path, chat: Chat, *, slot: str = "shop", form: str = "jsonl", agent_of: str = "") -> Path:
    """Write a chat into its folder, a sub-agent's into its session's folder."""
    folder = root / "tmp" / slot / "chats" / agent_of
    folder.mkdir(parents=True, exist_ok=True)
    stem = chat.session if agent_of else f"session-{BEGIN:%Y-%m-%dT%H-%M}-{chat.session[-8:]}"
    file = folder / f"{stem}.{form}"
    file.write_bytes(chat.journal() if form == "jsonl" else chat.document())
    return file
