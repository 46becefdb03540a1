"""Read the sessions of Continue's extensions and command line: one document each, as the model was sent it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from registry.domain import Role, Session
from sources.base import FoundSession
from sources.clients import CONTINUE
from sources.kit import drafts
from sources.kit.drafts import Conversation
from sources.kit.files import File, small_text
from sources.kit.jsonl import Damage
from sources.kit.loose_json import Record, items, mapping, object_in, objects, read_json, string, text_at, value_at
from sources.kit.reader import FileReader, ParseFile, SessionFile, json_document
from sources.kit.workspace_files import path_of

_LIST = "sessions.json"
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "thinking": Role.THINKING, "system": Role.SYSTEM}


class Continue(FileReader):
    """Reads `sessions/`. Keys and settings lie beside it."""

    client = CONTINUE
    patterns = ("sessions/*.json",)

    def session_file(self, file: File) -> SessionFile | None:
        """Return the session; the list of sessions lies in the same folder."""
        return None if file.path.endswith(_LIST) else FileReader.session_file(self, file)

    def parser(self, store: Path) -> ParseFile:
        return lambda file: [_parse(file, store / "sessions")]


def _parse(file: SessionFile, folder: Path) -> FoundSession:
    damage = Damage()
    described = json_document(file.path, damage)
    talk = ContinueTalk(string(described.get("sessionId")) or file.session_id, described=described)
    for item in objects(described.get("history")):
        talk.read(item)
    return file.found(talk.session(), damage.skipped() + talk.skipped(), _created(folder, file.session_id))


def _created(folder: Path, session_id: str) -> Any:
    """Return the time of a session, which only the list of sessions has."""
    listed = objects(read_json(small_text(folder / _LIST)))
    written = next((each.get("dateCreated") for each in listed if each.get("sessionId") == session_id), None)
    if isinstance(written, str) and written.isdecimal() and len(written) < 16:
        written = int(written)
    return drafts.moment(written)


@dataclass(slots=True)
class ContinueTalk(Conversation):
    """Builds a session from the items of its history. Pure."""

    described: Record = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = path_of(self.described.get("workspaceDirectory"))

    def read(self, item: Record) -> None:
        """Add one item of the history."""
        message = mapping(item.get("message"))
        role = string(message.get("role"))
        if role == "tool":
            self._answer(message.get("toolCallId"), drafts.content_text(message.get("content")), "done")
        elif role in _ROLES:
            self._add(_ROLES[role], message, item)
        else:
            self.pass_over("message", role)

    def session(self) -> Session:
        named = string(self.described.get("title")).strip()
        return self.build("" if named in ("New Session", "Untitled Session") else named)

    def _add(self, role: Role, message: Record, item: Record) -> None:
        before, content = len(self.drafts), message.get("content")
        self.begin("", value_at(item, "reasoning", "startAt"))
        self.model = text_at(message, "usage", "model")
        self.say(Role.THINKING, text_at(item, "reasoning", "text"))
        text = "\n".join(drafts.texts_in(content))
        if role is Role.SYSTEM:
            self.inject(text)
        else:
            self.say(role, text, attachments=["image" for part in objects(content) if part.get("type") == "imageUrl"])
        for shown in objects(item.get("contextItems")):
            self.inject(f"{string(shown.get('name')) or 'context'}\n{string(shown.get('content'))}")
        for call in objects(message.get("toolCalls")):
            self._call(call)
        for state in objects(item.get("toolCallStates")):
            self._call(mapping(state.get("toolCall")))
            output = "\n".join(text_at(part, "content") for part in items(state.get("output")))
            self._answer(state.get("toolCallId"), output, state.get("status"))
        self.count_tokens(before, message.get("usage"))

    def _call(self, call: Record) -> None:
        key, function = string(call.get("id")), mapping(call.get("function"))
        if key and key not in self.calls:
            written = string(function.get("arguments"))
            params: object = object_in(written) if written else {}
            self.call(key, function.get("name"), written if params is None else params)

    def _answer(self, key: object, result: str, status: object) -> None:
        self.answer(key, result, drafts.status_of(status, drafts.COMPLETED if result else drafts.PENDING))
