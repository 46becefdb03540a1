"""Read the sessions of Goose from its database, into which Goose itself imports the files of older versions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from registry.domain import Role, Session
from sources.base import Paths, Skipped
from sources.clients import GOOSE
from sources.kit import drafts
from sources.kit.contents import content_text
from sources.kit.files import is_there
from sources.kit.loose_json import Record, mapping, objects, read_json, string, text_at, value_at
from sources.kit.reader import DatabaseReader
from sources.kit.sqlite_store import ClientDatabase

_NOTICES = ("systemNotification", "contextLengthExceeded", "summarizationRequested")
# requests to the user, which have no text
_SILENT = (
    *("redactedThinking", "toolConfirmationRequest", "frontendToolRequest", "actionRequired", "conversationCompacted"),
)


class Goose(DatabaseReader):
    name = GOOSE.source
    needed: ClassVar = {
        "sessions": frozenset(("id", "working_dir")),
        "messages": frozenset(("id", "session_id", "role", "content_json", "created_timestamp")),
    }

    def find(self, paths: Paths) -> Iterator[Path]:
        if not (folders := paths.named("CTXR_GOOSE_DIR")):
            folders = [root / "data" / "sessions" for root in paths.named("GOOSE_PATH_ROOT")] or [
                paths.folder("XDG_DATA_HOME", ".local", "share") / "goose" / "sessions",
                paths.folder("APPDATA", "AppData", "Roaming") / "Block" / "goose" / "data" / "sessions",
            ]
        yield from filter(is_there, (folder / "sessions.db" for folder in folders))

    def rows(self, database: ClientDatabase, seen: Mapping[str, str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
        described = {str(row["id"]): row for row in database.records("SELECT * FROM sessions")}
        statement = "SELECT session_id, count(*), max(id) FROM messages GROUP BY session_id ORDER BY max(id) DESC"
        for session_id, count, last in database.rows(statement):
            row = described.get(str(session_id), {"id": session_id})
            yield str(session_id), f"{row.get('updated_at')}|{count}|{last}", row

    def parse(self, database: ClientDatabase, key: str, row: dict[str, Any]) -> drafts.Conversation:
        columns = database.columns("messages")
        named, meta = (name if name in columns else "NULL" for name in ("message_id", "metadata_json"))
        messages = database.rows(
            f"SELECT {named}, role, content_json, created_timestamp, {meta} "  # noqa: S608 - names of columns
            "FROM messages WHERE session_id = ? ORDER BY id",
            (row["id"],),
        )
        model = text_at(read_json(row.get("model_config_json")), "model_name")
        parser = GooseDialogue(key, string(row.get("working_dir")), model, described=row)
        for native_id, role, content, created, metadata in messages:
            parts = read_json(content)
            parser.skips[Skipped("message", "not a list of parts")] += not isinstance(parts, list)
            message = {"role": role, "content": parts, "created": created, "metadata": read_json(metadata)}
            parser.read({**message, "id": native_id})
        return parser


@dataclass(slots=True)
class GooseDialogue(drafts.Conversation):
    """Builds a conversation from messages whose content is a list of parts. Pure."""

    described: Record = field(default_factory=dict)

    def read(self, message: Record) -> None:
        """Add a message with the fields `role`, `content` (a list of parts), `created` and `metadata`."""
        role = string(message.get("role"))
        if role not in ("user", "assistant"):
            self.count_unknown("message", role)
            return
        self.begin(message.get("id"), message.get("created"))
        is_hidden = value_at(message, "metadata", "userVisible") is False  # a summary, or data about the machine
        speaker = Role.SYSTEM if is_hidden else Role(role)
        for index, part in enumerate(objects(message.get("content"))):
            self._add_part(speaker, part, f":{index}" if index else "")

    def session(self) -> Session:
        # Goose counts tokens for the whole session only: they are stored with the first answer, and grow
        first = next((index for index, draft in enumerate(self.drafts) if draft.role is Role.ASSISTANT), None)
        if first is not None:
            begin = "accumulated_"
            totals = {name.removeprefix(begin): each for name, each in self.described.items() if name.startswith(begin)}
            self.count_tokens(first, totals)
        return self.build(
            self.described.get("name"),
            self.described.get("description"),
            parent=string(self.described.get("parent_session_id")),
            began=self.described.get("created_at"),
        )

    def _add_part(self, speaker: Role, part: Record, suffix: str) -> None:
        kind = string(part.get("type"))
        if kind == "toolRequest":
            call = mapping(part.get("toolCall"))
            given = mapping(call.get("value")) or call
            call_id = string(part.get("id")) or (self.record_id and self.record_id + suffix)
            self.call(call_id, given.get("name"), given.get("arguments", {}))
            if call.get("status") == "error":
                self.set_result(call_id, string(call.get("error")), drafts.FAILED)
        elif kind == "toolResponse":
            self._add_result(part)
        elif kind == "image":
            self.say(Role.USER, "", suffix, attachments=[string(part.get("mimeType")) or "image"])
        elif kind in _NOTICES:
            self.inject(string(part.get("msg")), suffix)
        elif kind not in _SILENT:
            self.add_block(speaker, part, suffix)

    def _add_result(self, part: Record) -> None:
        result = mapping(part.get("toolResult"))
        value = result.get("value")
        has_failed = result.get("status") == "error" or mapping(value).get("isError") is True
        text = string(result.get("error")) or content_text(mapping(value).get("content", value))
        self.set_result(part.get("id"), text, drafts.result_status(has_failed))
