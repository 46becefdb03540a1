"""Read the sessions of Continue's extensions and command line: one document each, with the messages to the model."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from registry.domain import Role, Session
from sources.clients import CONTINUE
from sources.kit import drafts
from sources.kit.contents import content_text, texts_in
from sources.kit.files import File, read_small_text
from sources.kit.loose_json import Record, items, mapping, object_in, objects, read_json, string, text_at, value_at
from sources.kit.reader import FileReader, ParseFile, SessionFile, parse_records
from sources.kit.workspace_files import path_of

_LIST = "sessions.json"
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "thinking": Role.THINKING, "system": Role.SYSTEM}


class Continue(FileReader):
    """Reads `sessions/`. Never open its siblings: they have keys and settings."""

    client = CONTINUE
    patterns = ("sessions/*.json",)

    def session_file(self, file: File) -> SessionFile | None:
        """Return the session; None for the list of sessions, which is in the same folder."""
        return None if file.path.endswith(_LIST) else FileReader.session_file(self, file)

    def parser(self, store: Path) -> ParseFile:
        @cache
        def created() -> dict[str, object]:
            listed = objects(read_json(read_small_text(store / "sessions" / _LIST)))
            return {string(each.get("sessionId")): each.get("dateCreated") for each in reversed(listed)}

        return lambda file: parse_records(file, ContinueChat(file.session_id, created=created().get(file.session_id)))


@dataclass(slots=True)
class ContinueChat(drafts.Conversation):
    """Builds a session from its document. `created`: its time, used if no message has one. Pure."""

    created: object = None
    _title: str = ""

    def read(self, described: Record) -> None:
        self.session_id = string(described.get("sessionId")) or self.session_id
        self.folder = path_of(described.get("workspaceDirectory"))
        self._title = string(described.get("title")).strip()
        for item in objects(described.get("history")):
            self._read_item(item)

    def _read_item(self, item: Record) -> None:
        message = mapping(item.get("message"))
        role = string(message.get("role"))
        if role == "tool":
            self._answer(message.get("toolCallId"), content_text(message.get("content")), "done")
        elif role in _ROLES:
            self._add(_ROLES[role], message, item)
        else:
            self.count_unknown("message", role)

    def session(self) -> Session:
        is_named = self._title not in ("New Session", "Untitled Session")
        return self.build(self._title if is_named else "", began=self.created)

    def _add(self, role: Role, message: Record, item: Record) -> None:
        before, content = len(self.drafts), message.get("content")
        self.begin("", value_at(item, "reasoning", "startAt"))
        self.model = text_at(message, "usage", "model")
        self.say(Role.THINKING, text_at(item, "reasoning", "text"))
        text = "\n".join(texts_in(content))
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
        self.set_result(key, result, drafts.status_of(status, drafts.COMPLETED if result else drafts.PENDING))
