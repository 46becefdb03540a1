"""Read the sessions of Continue's extensions and command line: one document each, as the model was sent it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from registry.domain import Role, Session
from sources.base import FoundSession, Skipped
from sources.continue_dev.client import CONTINUE
from sources.kit import drafts
from sources.kit.drafts import Conversation, usage_of
from sources.kit.files import small_text
from sources.kit.jsonl import Damage
from sources.kit.loose_json import Record, items, mapping, object_in, objects, read_json, string
from sources.kit.reader import FileReader, ParseFile, SessionFile, json_document
from sources.kit.workspace_files import path_of

_LIST = "sessions.json"
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "thinking": Role.THINKING, "system": Role.SYSTEM}
_STATUS = {
    "done": drafts.COMPLETED,
    "errored": drafts.FAILED,
    "canceled": drafts.REJECTED,
    **dict.fromkeys(("generating", "generated", "calling"), drafts.PENDING),
}
_USAGE = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}


class Continue(FileReader):
    """Reads `sessions/`. Keys and settings lie beside it."""

    name = CONTINUE.source
    variables = ("CTXR_CONTINUE_DIR", "CONTINUE_GLOBAL_DIR")
    home = (".continue",)
    patterns = ("sessions/*.json",)

    def files(self, store: Path) -> Iterator[SessionFile | Skipped]:
        """List the sessions; the list of them lies in the same folder."""
        for file in FileReader.files(self, store):
            if isinstance(file, Skipped) or not file.path.endswith(_LIST):
                yield file

    def parser(self, store: Path) -> ParseFile:
        return lambda file: [_parse(file, store / "sessions")]


def _parse(file: SessionFile, folder: Path) -> FoundSession:
    damage = Damage()
    described = json_document(file.path, damage)
    talk = ContinueTalk(string(described.get("sessionId")) or file.session_id, described=described)
    for item in map(mapping, items(described.get("history"))):
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
        """Add one item of the history; an unknown one is counted in `unknown`."""
        message = mapping(item.get("message"))
        role = string(message.get("role"))
        if role == "tool":
            self._answer(string(message.get("toolCallId")), drafts.content_text(message.get("content")), "done")
        elif role in _ROLES:
            self._add(_ROLES[role], message, item)
        else:
            self.unknown[f"message {role or 'without role'}"] += 1

    def session(self) -> Session:
        """Return the session as read so far."""
        named = string(self.described.get("title")).strip()
        is_named = named not in ("New Session", "Untitled Session")
        return self.build({"name": named} if is_named else {}, folders=[self.folder])

    def _add(self, role: Role, message: Record, item: Record) -> None:
        before, content, reasoning = len(self.drafts), message.get("content"), mapping(item.get("reasoning"))
        at = drafts.moment(reasoning.get("startAt"))
        self.say(Role.THINKING, string(reasoning.get("text")).strip(), at)
        pictures = ["image" for part in objects(content) if part.get("type") == "imageUrl"]
        text, is_injected = "\n".join(drafts.texts_in(content)).strip(), role is Role.SYSTEM
        self.say(role, text, at, **({"injected": True} if is_injected else {"attachments": pictures}))
        for shown in map(mapping, items(item.get("contextItems"))):
            name = string(shown.get("name")) or "context"
            self.say(Role.SYSTEM, f"{name}\n{string(shown.get('content'))}".strip(), at, injected=True)
        for call in objects(message.get("toolCalls")):
            self._call(call, at)
        for state in objects(item.get("toolCallStates")):
            self._call(mapping(state.get("toolCall")), at)
            output = "\n".join(string(mapping(part).get("content")) for part in items(state.get("output")))
            self._answer(string(state.get("toolCallId")), output, string(state.get("status")))
        usage = mapping(message.get("usage"))
        self.describe(before, string(usage.get("model")), usage_of(usage, _USAGE))

    def _call(self, call: Record, at: Any) -> None:
        key, function = string(call.get("id")), mapping(call.get("function"))
        if key and key not in self.calls:
            written = string(function.get("arguments"))
            params: object = object_in(written) if written else {}
            self.call(key, string(function.get("name")), written if params is None else params, at)

    def _answer(self, key: str, result: str, status: str) -> None:
        outcome = _STATUS.get(status, drafts.COMPLETED if result else drafts.PENDING)
        self.answer(key, result, outcome)
