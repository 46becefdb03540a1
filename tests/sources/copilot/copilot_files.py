"""Build Copilot's files: event logs of its command line, and chat sessions of VS Code."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Record = dict[str, Any]

BEGIN = datetime(2026, 3, 18, 21, 32, tzinfo=UTC)
BEGIN_MS = int(BEGIN.timestamp() * 1000)
SHOP = "/home/ann/shop"


def session_id(number: int) -> str:
    """Return an id in the client's form."""
    return f"6f0c1a2e-0f3b-4c55-9d2a-{number:012}"


# Copilot CLI


@dataclass
class Log:
    """The events of one session of the command line."""

    session: str = session_id(1)
    events: list[Record] = field(default_factory=list)
    at: datetime = BEGIN

    def add(self, kind: str, **data: Any) -> str:
        """Add an event, and return its id."""
        self.at += timedelta(seconds=10)
        before = self.events[-1]["id"] if self.events else None
        time = self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        event = {"type": kind, "data": data, "id": f"e{len(self.events)}", "timestamp": time, "parentId": before}
        self.events.append(event)
        return str(event["id"])

    def start(self, **more: Any) -> None:
        """Add the first event."""
        context = {"cwd": SHOP, "gitRoot": SHOP, "branch": "main", "repository": "ann/shop"}
        known = {"sessionId": self.session, "version": 1, "copilotVersion": "1.0.68", "context": context}
        self.add("session.start", **(known | more))

    def user(self, text: str, **more: Any) -> str:
        """Add a prompt as typed and as transformed by the client."""
        transformed = f"<current_datetime>2026-03-18</current_datetime>\n\n{text}"
        return self.add("user.message", content=text, transformedContent=transformed, attachments=[], **more)

    def answer(self, text: str, *requests: Record, **more: Any) -> str:
        """Add an answer, optionally with calls."""
        known = {"messageId": f"m{len(self.events)}", "content": text, "model": "claude-sonnet-4.6"}
        return self.add("assistant.message", **known, toolRequests=list(requests), **more)

    def run(self, request: Record, output: str, *, success: bool = True, **more: Any) -> None:
        """Add the execution of a call."""
        named = {key: request[key] for key in ("toolCallId", "arguments")}
        self.add("tool.execution_start", toolName=request["name"], **named, **more)
        outcome: Record = {"result": {"content": output, "detailedContent": output}}
        if not success:
            outcome = {"error": {"message": output, "code": "failure"}}
        self.add("tool.execution_complete", toolCallId=request["toolCallId"], success=success, **(outcome | more))

    def lines(self) -> bytes:
        """Return the content of the log's file."""
        return b"".join(json.dumps(event, ensure_ascii=False).encode() + b"\n" for event in self.events)


def request(call_id: str, name: str, arguments: Any) -> Record:
    """Return a call of an answer."""
    return {"toolCallId": call_id, "name": name, "arguments": arguments, "type": "function"}


def working_log(number: int = 1) -> Log:
    """Return a session with all usual parts and a sub-agent."""
    log = Log(session_id(number))
    log.start()
    log.add("session.info", infoType="folder_trust", message="Folder has been added to trusted folders.")
    log.add("system.message", content="You are the GitHub Copilot CLI. " * 500)
    log.add("session.model_change", newModel="gpt-5.2")
    log.user("Why does the basket lose its items? 안녕", source="user")
    log.add("assistant.turn_start", turnId="0")
    view = request("call_1", "view", {"path": f"{SHOP}/basket.py"})
    log.answer("I will look.", view, reasoningText="The basket first.", outputTokens=33)
    log.run(view, "return []\u2028")
    task = request(
        "call_2", "task", {"description": "Find baskets", "prompt": "Find all baskets", "agent_type": "explore"}
    )
    log.answer("", task)
    log.add("tool.execution_start", toolName="task", toolCallId="call_2", arguments=task["arguments"])
    log.add("subagent.started", toolCallId="call_2", agentName="explore")
    grep = request("call_3", "grep", {"pattern": "basket"})
    log.answer("Searching.", grep, parentToolCallId="call_2")
    log.run(grep, "3 matches", parentToolCallId="call_2")
    log.answer("Three baskets.", parentToolCallId="call_2")
    log.add("tool.execution_complete", toolCallId="call_2", success=True, result={"content": "Three baskets."})
    log.add("subagent.completed", toolCallId="call_2")
    test = request("call_4", "bash", {"command": "pytest"})
    log.answer("", test)
    log.run(test, "1 failed", success=False)
    log.answer("It makes a new list.\n\n```python\nreturn items\n```")
    log.add("session.shutdown", shutdownType="routine")
    return log


def write_log(root: Path, log: Log, note: str = "", *, form: str = "folder") -> Path:
    """Write a log into its folder with its note, or as a single file like older versions."""
    folder = root / "session-state"
    file = folder / log.session / "events.jsonl" if form == "folder" else folder / f"{log.session}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(log.lines())
    if note:
        (file.parent / "workspace.yaml").write_text(note, encoding="utf-8")
    return file


def old_history(number: int = 9) -> Record:
    """Return a session of the first versions: one document."""
    function = {"name": "bash", "arguments": '{"command": "ls"}'}
    return {
        "sessionId": session_id(number),
        "startTime": "2025-10-08T21:10:16.398Z",
        "chatMessages": [
            {"role": "system", "content": "You are Copilot"},
            {"role": "user", "content": "Hello, 안녕"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "function": function}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "basket.py"},
            {"role": "assistant", "content": "One file."},
        ],
        "timeline": [],
    }


# Copilot Chat in VS Code


def chat(number: int, *requests: Record, **more: Any) -> Record:
    """Return a chat session as one document."""
    names = {"requesterUsername": "ann", "responderUsername": "GitHub Copilot"}
    times = {"creationDate": BEGIN_MS, "lastMessageDate": BEGIN_MS + 60_000}
    return {"version": 3, "sessionId": session_id(number), **names, **times, "requests": list(requests), **more}


def asked(request_id: str, text: str, *response: Any, **more: Any) -> Record:
    """Return a question with the parts of its answer."""
    known = {
        "requestId": request_id,
        "timestamp": BEGIN_MS + 10_000,
        "message": {"text": text, "parts": [{"kind": "text", "text": text}]},
        "variableData": {"variables": []},
        "modelId": "copilot/claude-sonnet-4.6",
        "agent": {"id": "github.copilot.editsAgent"},
        "response": list(response),
        "result": {"timings": {"totalElapsed": 5000}, "metadata": {"toolCallRounds": [], "toolCallResults": {}}},
    }
    return known | more


def tool(call_id: str, tool_id: str, message: str, **more: Any) -> Record:
    """Return a tool call as a part of an answer."""
    words = {"invocationMessage": {"value": message}, "pastTenseMessage": {"value": message.replace("Reading", "Read")}}
    known = {"kind": "toolInvocationSerialized", "toolId": tool_id, "toolCallId": call_id, "isComplete": True}
    return known | {"isConfirmed": {"type": 1}} | words | more


def working_chat(number: int = 1) -> Record:
    """Return a session with all usual parts."""
    call = {"id": "call_1", "name": "read_file", "arguments": json.dumps({"filePath": f"{SHOP}/basket.py"})}
    rounds = [{"response": "I will look.", "toolCalls": [call], "thinking": {"text": "The basket first."}}]
    result = {"$mid": 20, "content": [{"$mid": 21, "value": "return []"}]}
    metadata = {"toolCallRounds": rounds, "toolCallResults": {"call_1": result}, "resolvedModel": "claude-sonnet-4-6"}
    uri = {"scheme": "file", "path": f"{SHOP}/basket.py", "fsPath": f"{SHOP}/basket.py"}
    files = [{"kind": "file", "name": "basket.py", "value": uri}]
    terminal = {"kind": "terminal", "commandLine": {"original": "pytest"}, "terminalCommandState": {"exitCode": 1}}
    output = {"terminalCommandOutput": {"text": "1 failed"}}
    return chat(
        number,
        asked(
            *("r1", "Why does the basket lose its items? 안녕"),
            {"kind": "mcpServersStarting", "didStartServerIds": []},
            {"kind": "thinking", "value": "The basket first.", "id": "t1"},
            {"value": "I will look at "},
            {"kind": "inlineReference", "inlineReference": uri, "name": "basket.py"},
            {"value": " now."},
            {"kind": "prepareToolInvocation", "toolName": "read_file"},
            tool("call_1", "copilot_readFile", "Reading basket.py"),
            tool("call_2", "run_in_terminal", "Running", toolSpecificData=terminal | output),
            {"kind": "progressMessage", "content": {"value": "Working"}},
            {"value": "It makes a new list.\n\n```python\nreturn items\n```"},
            {"kind": "undoStop", "id": "u1"},
            result={"timings": {}, "metadata": metadata},
            variableData={"variables": files},
        ),
        asked("r2", "Fix it", {"value": "Done."}, timestamp=BEGIN_MS + 60_000),
        customTitle="Basket bug",
    )


def as_log(session: Record) -> list[Record]:
    """Return a session as log lines: an empty session, then its changes."""
    lines: list[Record] = [{"kind": 0, "v": session | {"requests": []}}]
    for place, given in enumerate(copy.deepcopy(session["requests"])):
        parts, result = given["response"], given.pop("result")
        lines.append({"kind": 2, "k": ["requests"], "v": [given | {"response": []}]})
        lines.append({"kind": 2, "k": ["requests", place, "response"], "v": [{"value": "Still thin"}, *parts[:1]]})
        lines.append({"kind": 2, "k": ["requests", place, "response"], "v": parts, "i": 0})
        lines.append({"kind": 1, "k": ["requests", place, "result"], "v": result})
        lines.append({"kind": 1, "k": ["inputState"], "v": {"inputText": "unsent"}})
        lines.append({"kind": 3, "k": ["inputState"]})
    return lines


def lines_of(records: list[Record]) -> bytes:
    """Return records as JSON lines."""
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def write_chat(user: Path, session: Record, *, workspace: str = "w1", form: str = "jsonl") -> Path:
    """Write a session into its workspace, or with `workspace=""` to those without one."""
    folder = user / "workspaceStorage" / workspace / "chatSessions"
    folder = folder if workspace else user / "globalStorage" / "emptyWindowChatSessions"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{session['sessionId']}.{form}"
    file.write_bytes(lines_of(as_log(session)) if form == "jsonl" else json.dumps(session).encode())
    return file


def note_workspace(user: Path, workspace: str = "w1", folder: str = f"file://{SHOP}") -> None:
    """Write the folder of a workspace."""
    place = user / "workspaceStorage" / workspace
    place.mkdir(parents=True, exist_ok=True)
    (place / "workspace.json").write_text(json.dumps({"folder": folder}), encoding="utf-8")
