"""A conversation as a chat of Gemini CLI's."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from registry.domain import Role, format_time, now
from registry.errors import InvalidRequest
from sources.base import Places
from sources.gemini.client import GEMINI_CLI
from sources.kit.files import small_text
from sources.kit.jsonl import mapping, string
from sources.kit.loose_json import read_json
from sources.writing import Call, Carried, Toolbox, Written, called, lines, stamped

_TOOLS = Toolbox(read=("read_file", "file_path"), run=("run_shell_command", "command"))


class GeminiWriter:
    """Writes `tmp/<project>/chats/session-<time>-<id>.jsonl`."""

    client = GEMINI_CLI
    program = "gemini"
    tested = "0.61.0"

    def opens(self, session_id: str) -> tuple[str, ...]:
        """The command that goes on with a session."""
        return (self.program, "--resume", session_id)

    def write(self, talk: Carried, version: str, places: Places, drafts: Path) -> Written:
        """A header and the messages. InvalidRequest where the client does not know the project yet."""
        session_id, here = str(uuid4()), now()
        named = places.environment.get("CTXR_GEMINI_CLI_DIR")
        home = Path(named).expanduser() if named else places.folder("GEMINI_CLI_HOME") / ".gemini"
        listed = mapping(mapping(read_json(small_text(home / "projects.json"))).get("projects"))
        slot = string(listed.get(talk.folder))
        if not slot:
            raise InvalidRequest(
                "Gemini CLI doesn't know this folder yet.", f"Start gemini once in {talk.folder}, then try again"
            )
        # Not the session's own beginning at the end of the name: of a session that was taken up again, version 0.61
        # removes every file named so at its next start.
        path = home / "tmp" / slot / "chats" / f"session-{here:%Y-%m-%dT%H-%M}-{uuid4().hex[:8]}.jsonl"
        header = {
            "sessionId": session_id,
            "projectHash": sha256(talk.folder.encode()).hexdigest(),
            "startTime": format_time(here),
            "lastUpdated": format_time(here),
            "kind": "main",
        }
        return Written(session_id, path, {path: lines([header, *_records(talk)])}, self.opens(session_id))


def _records(talk: Carried) -> Iterator[dict[str, Any]]:
    for message, at in stamped(talk.messages):
        is_question = message.role is Role.USER
        content: Any = [{"text": message.text}] if is_question else message.text
        said = {"id": str(uuid4()), "timestamp": at, "type": "user" if is_question else "gemini", "content": content}
        calls = [_called(id_, call, at) for id_, call in called(message, _TOOLS)]
        yield {**said, "toolCalls": calls} if calls else said


def _called(id_: str, call: Call, at: str) -> dict[str, Any]:
    told = {"error" if call.failed else "output": call.result}
    return {
        "id": id_,
        "name": call.name,
        "args": call.params,
        "result": [{"functionResponse": {"id": id_, "name": call.name, "response": told}}],
        "status": "error" if call.failed else "success",
        "timestamp": at,
        "resultDisplay": call.result,
        "displayName": call.name,
        "description": "",
    }
