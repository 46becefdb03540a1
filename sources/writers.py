"""Build a client's session file that continues a conversation. To add a client, add its function to `_WRITERS`."""

import json
import re
import secrets
import time
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from string import ascii_letters, digits
from typing import Any
from uuid import UUID, uuid4

from registry.domain import Role, format_time, now
from registry.errors import InvalidRequest
from sources.base import Paths
from sources.client import Client
from sources.clients import CLAUDE_CODE, CODEX, COPILOT_CLI, GEMINI_CLI, KILO, OPENCODE, QWEN_CODE
from sources.kit.files import read_small_text
from sources.kit.jsonc import settings_in
from sources.kit.loose_json import mapping, objects, read_json, string, text_at
from sources.writing import (
    Call,
    Json,
    NewSession,
    Tools,
    Transfer,
    TransferPart,
    Writer,
    calls_for,
    json_lines,
    link_records,
    times_of,
    with_times,
)


def _flat(folder: str) -> str:
    """Return the name by which Claude Code and Qwen Code store a project's folder."""
    folder = re.sub(r"[\U00010000-\U0010ffff]", "--", folder)  # they count UTF-16: an emoji is two characters
    return re.sub("[^a-zA-Z0-9]", "-", folder)


def _claude_code(chat: Transfer, version: str, paths: Paths, _: Path) -> NewSession:
    """Build `projects/<folder>/<session>.jsonl`: records, each linked to the one before, and the title."""
    session_id = str(uuid4())
    folder = CLAUDE_CODE.history_in(paths) / "projects" / _flat(chat.folder)
    common = {
        "isSidechain": False,
        "userType": "external",
        "cwd": chat.folder,
        "sessionId": session_id,
        "version": version,
        "gitBranch": "",
    }
    records = (
        {**common, "type": message["role"], "message": message, "timestamp": at}
        for part, at in with_times(chat.messages)
        for message in _claude_code_messages(part)
    )
    title = {"type": "custom-title", "customTitle": chat.title, "sessionId": session_id}
    text = json_lines([*link_records(records, "uuid", "parentUuid"), *([title] if chat.title else [])])
    return NewSession(session_id, folder / f"{session_id}.jsonl", text)


def _claude_code_messages(part: TransferPart) -> Iterator[Json]:
    """Yield a message for each block, with one id for all blocks of an answer, then a message for each result."""
    if part.role is Role.USER:
        yield {"role": "user", "content": part.text}
        return
    calls = calls_for(part, Tools(read=("Read", "file_path"), run=("Bash", "command")), "toolu_")
    blocks: list[Json] = [{"type": "text", "text": part.text}] if part.text else []
    blocks += [{"type": "tool_use", "id": id_, "name": call.name, "input": call.params} for id_, call in calls]
    answer = {
        "id": f"msg_{uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": "unknown",
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
    yield from ({**answer, "content": [block]} for block in blocks)
    for id_, call in calls:
        result = {"type": "tool_result", "tool_use_id": id_, "content": call.result, "is_error": call.failed}
        yield {"role": "user", "content": [result]}


_CODEX_CONTENT = {Role.USER: ("input_text", "user_message"), Role.ASSISTANT: ("output_text", "agent_message")}


def _codex(chat: Transfer, version: str, paths: Paths, _: Path) -> NewSession:
    """Build `sessions/Y/M/D/rollout-<time>-<id>.jsonl`: metadata, then each message for the model and for display."""
    session_id, started = str(_uuid7()), now().astimezone()
    folder = CODEX.history_in(paths) / "sessions" / f"{started:%Y/%m/%d}"
    path = folder / f"rollout-{started:%Y-%m-%dT%H-%M-%S}-{session_id}.jsonl"
    began = format_time(started)
    meta = {
        "id": session_id,
        "session_id": session_id,
        "timestamp": began,
        "cwd": chat.folder,
        "originator": "context-registry",
        "cli_version": version,
        "source": "cli",
    }
    records = [{"timestamp": began, "type": "session_meta", "payload": meta}]
    for message, at in with_times(chat.messages):
        records += ({"timestamp": at, "type": kind, "payload": payload} for kind, payload in _codex_payloads(message))
    return NewSession(session_id, path, json_lines(records))


def _codex_payloads(message: TransferPart) -> Iterator[tuple[str, Json]]:
    content, event = _CODEX_CONTENT[message.role]
    if message.text:
        block = {"type": content, "text": message.text}
        yield "response_item", {"type": "message", "role": str(message.role), "content": [block]}
        yield "event_msg", {"type": event, "message": message.text}
    calls = calls_for(message, Tools(read=("read_file", "path"), run=("shell_command", "command")))
    for id_, call in calls:
        arguments = json.dumps(call.params, ensure_ascii=False)
        yield "response_item", {"type": "function_call", "name": call.name, "arguments": arguments, "call_id": id_}
    for id_, call in calls:
        yield "response_item", {"type": "function_call_output", "call_id": id_, "output": call.result}


def _uuid7() -> UUID:
    """Return a version 7 UUID, by whose time Codex sorts. Python has a function for it from 3.14 on."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(secrets.token_bytes(10))
    return UUID(int=value & ~(0xF << 76) & ~(0x3 << 62) | 0x7 << 76 | 0x2 << 62)


def _copilot(chat: Transfer, version: str, paths: Paths, _: Path) -> NewSession:
    """Build `session-state/<id>/events.jsonl`, the events of an ended session, and `workspace.yaml` next to it."""
    session_id, began = str(uuid4()), format_time(now())
    folder = COPILOT_CLI.history_in(paths) / "session-state" / session_id
    note: Json = {
        "id": session_id,
        "cwd": chat.folder,
        "name": chat.title,
        "user_named": bool(chat.title),
        "created_at": began,
        "updated_at": began,
    }
    flat = "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in note.items())
    start = {"sessionId": session_id, "version": 1, "producer": "copilot-agent", "copilotVersion": version}
    events = [
        _copilot_event("session.start", began, startTime=began, context={"cwd": chat.folder}, **start),
        *_copilot_events(chat),
    ]
    text = json_lines(link_records(events, "id", "parentId"))
    return NewSession(session_id, folder / "events.jsonl", text, {folder / "workspace.yaml": flat})


def _copilot_event(kind: str, at: str, **data: Any) -> Json:
    return {"type": kind, "data": data, "timestamp": at}


def _copilot_events(chat: Transfer) -> Iterator[Json]:
    turn = -1
    for message, at in with_times(chat.messages):
        if message.role is Role.USER:
            turn += 1
            text = {"content": message.text, "transformedContent": message.text}
            yield _copilot_event("user.message", at, **text, attachments=[], messageId=str(uuid4()))
        else:
            yield _copilot_event("assistant.turn_start", at, turnId=str(turn))
            yield from (_copilot_event(kind, at, **data, turnId=str(turn)) for kind, data in _copilot_answer(message))
            yield _copilot_event("assistant.turn_end", at, turnId=str(turn))


def _copilot_answer(message: TransferPart) -> Iterator[tuple[str, Json]]:
    calls = calls_for(message, Tools(read=("view", "path"), run=("bash", "command")))
    requests = [
        {"toolCallId": id_, "name": call.name, "arguments": call.params, "type": "function"} for id_, call in calls
    ]
    yield "assistant.message", {"content": message.text, "toolRequests": requests, "messageId": str(uuid4())}
    for id_, call in calls:
        yield "tool.execution_start", {"toolCallId": id_, "toolName": call.name, "arguments": call.params}
        result = {"error": {"message": call.result}} if call.failed else {"result": {"content": call.result}}
        yield "tool.execution_complete", {"toolCallId": id_, "success": not call.failed, **result}


_GEMINI_TOOLS = Tools(read=("read_file", "file_path"), run=("run_shell_command", "command"))


def _gemini(chat: Transfer, version: str, paths: Paths, _: Path) -> NewSession:
    """Build `tmp/<project>/chats/session-<time>-<id>.jsonl`. Raises InvalidRequest if the project is unknown there."""
    session_id, started, home = str(uuid4()), now(), GEMINI_CLI.history_in(paths)
    slot = text_at(read_json(read_small_text(home / "projects.json")), "projects", chat.folder)
    if not slot:
        raise InvalidRequest(
            "Gemini CLI doesn't know this folder yet.", f"Start gemini once in {chat.folder}, then try again"
        )
    # The name must not end in the beginning of the session's id: version 0.61 deletes such files at its next start,
    # after a session was resumed.
    path = home / "tmp" / slot / "chats" / f"session-{started:%Y-%m-%dT%H-%M}-{uuid4().hex[:8]}.jsonl"
    header = {
        "sessionId": session_id,
        "projectHash": sha256(chat.folder.encode()).hexdigest(),
        "startTime": format_time(started),
        "lastUpdated": format_time(started),
        "kind": "main",
    }
    return NewSession(session_id, path, json_lines([header, *_gemini_records(chat)]))


def _gemini_records(chat: Transfer) -> Iterator[Json]:
    for message, at in with_times(chat.messages):
        is_question = message.role is Role.USER
        content: Any = [{"text": message.text}] if is_question else message.text
        record = {"id": str(uuid4()), "timestamp": at, "type": "user" if is_question else "gemini", "content": content}
        calls = [
            {
                "id": id_,
                "name": call.name,
                "args": call.params,
                "result": [{"functionResponse": _gemini_response(id_, call)}],
                "status": "error" if call.failed else "success",
                "timestamp": at,
                "resultDisplay": call.result,
                "displayName": call.name,
                "description": "",
            }
            for id_, call in calls_for(message, _GEMINI_TOOLS)
        ]
        yield {**record, "toolCalls": calls} if calls else record


def _gemini_response(id_: str, call: Call) -> Json:
    return {"id": id_, "name": call.name, "response": {"error" if call.failed else "output": call.result}}


def _opencode(client: Client, chat: Transfer, version: str, paths: Paths, drafts: Path) -> NewSession:
    """Build the JSON document of `opencode export`, which the client imports into its own database."""
    ids, model = _Ids(), _chosen_model(client, paths)
    session_id = ids.new("ses", descending=True)
    times_ms = [round(at.timestamp() * 1000) for at in times_of(chat.messages)]
    info = {
        "id": session_id,
        "slug": session_id[-8:].lower(),
        "projectID": "global",
        "directory": chat.folder,
        "title": chat.title,
        "version": version,
        "time": {"created": times_ms[0], "updated": times_ms[-1]},
    }
    messages, question = [], ""
    for message, at in zip(chat.messages, times_ms, strict=True):
        message_id = ids.new("msg")
        question = message_id if message.role is Role.USER else question
        part = {"sessionID": session_id, "messageID": message_id}
        parts = [{"id": ids.new("prt"), **part, **given} for given in _opencode_parts(message, at)]
        about = {**_opencode_info(message, at, chat.folder, question, model), "id": message_id, "sessionID": session_id}
        messages.append({"info": about, "parts": parts})
    text = json.dumps({"info": info, "messages": messages}, ensure_ascii=False)
    return NewSession(session_id, drafts / f"{session_id}.json", text)


def _chosen_model(client: Client, paths: Paths) -> dict[str, str]:
    """Return the user's model, because the client uses the one named in a session. Raises InvalidRequest if none."""
    home = paths.folder("XDG_CONFIG_HOME", ".config") / client.source
    state = paths.folder("XDG_STATE_HOME", ".local", "state") / client.source
    for name in (f"{client.source}.jsonc", f"{client.source}.json", "config.json"):
        settings = settings_in(read_small_text(home / name))
        provider, _, model = text_at(settings, "model").partition("/")
        if model:
            return {"providerID": provider, "modelID": model}
    for chosen in objects(mapping(read_json(read_small_text(state / "model.json"))).get("recent")):
        if chosen.get("modelID"):
            return {"providerID": string(chosen.get("providerID")), "modelID": string(chosen["modelID"])}
    raise InvalidRequest(f"{client.name} has no model chosen yet.", f"Choose one in {client.source}, then try again")


def _opencode_parts(message: TransferPart, at: int) -> Iterator[Json]:
    if message.text:
        yield {"type": "text", "text": message.text}
    for id_, call in calls_for(message, Tools(read=("read", "filePath"), run=("bash", "command"))):
        state: Json = {"status": "completed", "output": call.result, "title": call.name, "metadata": {}}
        if call.failed:
            state = {"status": "error", "error": call.result}
        state |= {"input": call.params, "time": {"start": at, "end": at}}
        yield {"type": "tool", "callID": id_, "tool": call.name, "state": state}


def _opencode_info(message: TransferPart, at: int, folder: str, question: str, model: dict[str, str]) -> Json:
    if message.role is Role.USER:
        return {"role": "user", "time": {"created": at}, "agent": "build", "model": model}
    return {
        "role": "assistant",
        "time": {"created": at, "completed": at},
        "parentID": question,
        "mode": "build",
        "agent": "build",
        "path": {"cwd": folder, "root": folder},
        "cost": 0,
        "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
        "finish": "tool-calls" if message.calls else "stop",
        **model,
    }


class _Ids:
    """Creates ids as the client does, which sorts messages by them: 48 bits of time and a counter, then letters."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._now = round(now().timestamp() * 1000)

    def new(self, kind: str, *, descending: bool = False) -> str:
        value = (self._now << 12) + next(self._numbers)
        value = (~value if descending else value) & (2**48 - 1)
        return f"{kind}_{value:012x}" + "".join(secrets.choice(digits + ascii_letters) for _ in range(14))


def _qwen(chat: Transfer, version: str, paths: Paths, _: Path) -> NewSession:
    """Build `projects/<folder>/chats/<session>.jsonl`: records, each linked to the one before, and the title."""
    session_id = str(uuid4())
    folder = QWEN_CODE.history_in(paths) / "projects" / _flat(chat.folder)
    path = folder / "chats" / f"{session_id}.jsonl"
    common = {"sessionId": session_id, "cwd": chat.folder, "version": version}
    records = [
        {"timestamp": time, **record}
        for message, time in with_times(chat.messages)
        for record in _qwen_records(message)
    ]
    if chat.title:
        title = {"subtype": "custom_title", "systemPayload": {"customTitle": chat.title, "titleSource": "auto"}}
        records.append({"timestamp": format_time(now()), "type": "system", **title})
    linked = link_records(({**common, **record} for record in records), "uuid", "parentUuid")
    return NewSession(session_id, path, json_lines(linked))


def _qwen_records(message: TransferPart) -> Iterator[Json]:
    if message.role is Role.USER:
        yield {"type": "user", "message": {"role": "user", "parts": [{"text": message.text}]}}
        return
    calls = calls_for(message, _GEMINI_TOOLS)
    parts: list[Json] = [{"text": message.text}] if message.text else []
    parts += [{"functionCall": {"id": id_, "name": call.name, "args": call.params}} for id_, call in calls]
    yield {"type": "assistant", "model": "unknown", "message": {"role": "model", "parts": parts}}
    for id_, call in calls:
        status = {"callId": id_, "status": "error" if call.failed else "success", "resultDisplay": call.result}
        content = {"role": "user", "parts": [{"functionResponse": _gemini_response(id_, call)}]}
        yield {"type": "tool_result", "message": content, "toolCallResult": status}


_IMPORT = ("import", "{}")
_WRITERS = (
    Writer(CLAUDE_CODE, "claude", "2.1.332", ("--resume", "{}"), _claude_code),
    Writer(CODEX, "codex", "0.171.0", ("resume", "{}"), _codex),
    Writer(GEMINI_CLI, "gemini", "0.61.0", ("--resume", "{}"), _gemini),
    Writer(OPENCODE, "opencode", "1.18.33", ("-s", "{}"), partial(_opencode, OPENCODE), _IMPORT),
    Writer(KILO, "kilo", "7.7.9", ("-s", "{}"), partial(_opencode, KILO), _IMPORT),
    Writer(COPILOT_CLI, "copilot", "1.0.102", ("--resume={}",), _copilot),
    Writer(QWEN_CODE, "qwen", "0.24.4", ("--resume", "{}"), _qwen),
)
WRITERS = {writer.client.source: writer for writer in _WRITERS}
