"""A conversation as a file that OpenCode takes in by `opencode import`."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from string import ascii_letters, digits
from typing import Any

from registry.domain import Role, now
from registry.errors import InvalidRequest
from sources.base import Places
from sources.kit.files import small_text
from sources.kit.jsonl import Record, items, mapping, string
from sources.kit.loose_json import read_json
from sources.opencode.client import OPENCODE
from sources.writing import Call, Carried, Said, Toolbox, Written, called, times_of

_LETTERS = digits + ascii_letters
_NO_TOKENS = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
_TOOLS = Toolbox(read=("read", "filePath"), run=("bash", "command"))


class OpenCodeWriter:
    """Writes the document of `opencode export`."""

    client = OPENCODE
    program = "opencode"
    tested = "1.18.33"

    def opens(self, session_id: str) -> tuple[str, ...]:
        """The command that goes on with a session."""
        return (self.program, "-s", session_id)

    def write(self, talk: Carried, version: str, places: Places, drafts: Path) -> Written:
        """One document; the client puts it into its own database."""
        ids = _Ids()
        session_id = ids.new("ses", descending=True)
        moments = [round(at.timestamp() * 1000) for at in times_of(talk.messages)]
        info = {
            "id": session_id,
            "slug": session_id[-8:].lower(),
            "projectID": "global",
            "directory": talk.folder,
            "title": talk.title,
            "version": version,
            "time": {"created": moments[0], "updated": moments[-1]},
        }
        model = _model(places)
        messages = list(_messages(talk, moments, session_id, ids, model))
        path = drafts / f"{session_id}.json"
        document = json.dumps({"info": info, "messages": messages}, ensure_ascii=False)
        command, before = self.opens(session_id), (self.program, "import", str(path))
        return Written(session_id, path, {path: document}, command, before)


def _model(places: Places) -> dict[str, str]:
    """The model that the user has chosen: the client asks the one that a session names. InvalidRequest if none is."""
    home = Path(places.environment.get("XDG_CONFIG_HOME") or places.home / ".config") / "opencode"
    state = Path(places.environment.get("XDG_STATE_HOME") or places.home / ".local" / "state") / "opencode"
    for name in ("opencode.jsonc", "opencode.json", "config.json"):
        provider, _, model = string(_document(home / name).get("model")).partition("/")
        if model:
            return {"providerID": provider, "modelID": model}
    for chosen in map(mapping, items(_document(state / "model.json").get("recent"))):
        if chosen.get("modelID"):
            return {"providerID": string(chosen.get("providerID")), "modelID": string(chosen["modelID"])}
    raise InvalidRequest("OpenCode has no model chosen yet.", "Choose one in opencode, then try again")


def _document(path: Path) -> Record:
    return mapping(read_json(small_text(path)))


def _messages(
    talk: Carried, moments: list[int], session_id: str, ids: _Ids, model: dict[str, str]
) -> Iterator[dict[str, Any]]:
    question = ""
    for message, at in zip(talk.messages, moments, strict=True):
        message_id = ids.new("msg")
        if message.role is Role.USER:
            question = message_id
        info = {**_about(message, at, talk.folder, question, model), "id": message_id, "sessionID": session_id}
        part = {"sessionID": session_id, "messageID": message_id}
        yield {"info": info, "parts": [{"id": ids.new("prt"), **part, **told} for told in _parts(message, at)]}


def _parts(message: Said, at: int) -> Iterator[dict[str, Any]]:
    if message.text:
        yield {"type": "text", "text": message.text}
    for id_, call in called(message, _TOOLS):
        yield {"type": "tool", "callID": id_, "tool": call.name, "state": _state(call, at)}


def _state(call: Call, at: int) -> dict[str, Any]:
    common = {"input": call.params, "time": {"start": at, "end": at}}
    if call.failed:
        return {"status": "error", "error": call.result, **common}
    return {"status": "completed", "output": call.result, "title": call.name, "metadata": {}, **common}


def _about(message: Said, at: int, folder: str, question: str, model: dict[str, str]) -> dict[str, Any]:
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
        "tokens": _NO_TOKENS,
        "finish": "tool-calls" if message.calls else "stop",
        **model,
    }


class _Ids:
    """Ids as the client makes them: 48 bits of time and a number, then letters. It sorts messages by them."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._now = round(now().timestamp() * 1000)

    def new(self, kind: str, *, descending: bool = False) -> str:
        value = (self._now << 12) + next(self._numbers)
        value = (~value if descending else value) & (2**48 - 1)
        return f"{kind}_{value:012x}" + "".join(secrets.choice(_LETTERS) for _ in range(14))
