"""Write a conversation as a document that OpenCode or Kilo Code imports."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from string import ascii_letters, digits

from registry.domain import Role, now
from registry.errors import InvalidRequest
from sources.base import Places
from sources.client import Client
from sources.clients import KILO, OPENCODE
from sources.kit.files import small_text
from sources.kit.loose_json import mapping, objects, read_json, string
from sources.writing import Call, Json, NewSession, Talk, TalkPart, Tools, Writer, calls_for, times_of

_TOOLS = Tools(read=("read", "filePath"), run=("bash", "command"))


def _make(client: Client, talk: Talk, version: str, places: Places, drafts: Path) -> NewSession:
    """Make the document of `opencode export`, which the client puts into its own database."""
    ids, model = _Ids(), _model(client, places)
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
    messages, question = [], ""
    for message, at in zip(talk.messages, moments, strict=True):
        message_id = ids.new("msg")
        question = message_id if message.role is Role.USER else question
        part = {"sessionID": session_id, "messageID": message_id}
        parts = [{"id": ids.new("prt"), **part, **given} for given in _parts(message, at)]
        about = {**_info(message, at, talk.folder, question, model), "id": message_id, "sessionID": session_id}
        messages.append({"info": about, "parts": parts})
    text = json.dumps({"info": info, "messages": messages}, ensure_ascii=False)
    return NewSession(session_id, drafts / f"{session_id}.json", text)


def _model(client: Client, places: Places) -> dict[str, str]:
    """Return the chosen model: the client asks the one that a session names. InvalidRequest if there is none."""
    home = places.folder("XDG_CONFIG_HOME", ".config") / client.source
    state = places.folder("XDG_STATE_HOME", ".local", "state") / client.source
    for name in (f"{client.source}.jsonc", f"{client.source}.json", "config.json"):
        settings = mapping(read_json(small_text(home / name)))
        provider, _, model = string(settings.get("model")).partition("/")
        if model:
            return {"providerID": provider, "modelID": model}
    for chosen in objects(mapping(read_json(small_text(state / "model.json"))).get("recent")):
        if chosen.get("modelID"):
            return {"providerID": string(chosen.get("providerID")), "modelID": string(chosen["modelID"])}
    raise InvalidRequest(f"{client.name} has no model chosen yet.", f"Choose one in {client.source}, then try again")


def _parts(message: TalkPart, at: int) -> Iterator[Json]:
    if message.text:
        yield {"type": "text", "text": message.text}
    for id_, call in calls_for(message, _TOOLS):
        yield {"type": "tool", "callID": id_, "tool": call.name, "state": _state(call, at)}


def _state(call: Call, at: int) -> Json:
    common = {"input": call.params, "time": {"start": at, "end": at}}
    if call.failed:
        return {"status": "error", "error": call.result, **common}
    return {"status": "completed", "output": call.result, "title": call.name, "metadata": {}, **common}


def _info(message: TalkPart, at: int, folder: str, question: str, model: dict[str, str]) -> Json:
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
    """Makes ids as the client does: 48 bits of time and a number, then letters. It sorts messages by them."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._now = round(now().timestamp() * 1000)

    def new(self, kind: str, *, descending: bool = False) -> str:
        value = (self._now << 12) + next(self._numbers)
        value = (~value if descending else value) & (2**48 - 1)
        return f"{kind}_{value:012x}" + "".join(secrets.choice(digits + ascii_letters) for _ in range(14))


def _writer(client: Client, tested: str) -> Writer:
    return Writer(client, client.source, tested, ("-s", "{}"), partial(_make, client), imports=("import", "{}"))


OPENCODE_WRITER = _writer(OPENCODE, "1.18.33")
KILO_WRITER = _writer(KILO, "7.7.9")
