"""Read the sessions of Goose from its database; the files of versions before it are imported there by Goose itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from registry.domain import Role, Session
from sources.base import FoundSession, Places, Skipped
from sources.goose.client import GOOSE
from sources.kit import drafts
from sources.kit.drafts import Conversation, usage_of
from sources.kit.loose_json import Record, items, mapping, read_json, string
from sources.kit.reader import DatabaseReader, found_in_rows
from sources.kit.sqlite_store import ClientDatabase

_USAGE = {"accumulated_input_tokens": "input_tokens", "accumulated_output_tokens": "output_tokens"}
_NOTICES = ("systemNotification", "contextLengthExceeded", "summarizationRequested")
_SILENT = (
    "redactedThinking",
    "toolConfirmationRequest",
    "frontendToolRequest",
    "actionRequired",
    "conversationCompacted",
)


@dataclass(slots=True)
class Goose(DatabaseReader):
    """Reads `sessions.db`. Older files lie beside it."""

    name: str = GOOSE.source
    needed: ClassVar[dict[str, frozenset[str]]] = {
        "sessions": frozenset(("id", "working_dir")),
        "messages": frozenset(("id", "session_id", "role", "content_json", "created_timestamp")),
    }

    def find(self, places: Places) -> Iterator[Path]:
        """Yield the database of each place."""
        if not (folders := places.named("CTXR_GOOSE_DIR")):
            folders = [root / "data" / "sessions" for root in places.named("GOOSE_PATH_ROOT")] or [
                places.folder("XDG_DATA_HOME", ".local", "share") / "goose" / "sessions",
                places.folder("APPDATA", "AppData", "Roaming") / "Block" / "goose" / "data" / "sessions",
            ]
        yield from (store for folder in folders if (store := folder / "sessions.db").is_file())

    def rows(self, database: ClientDatabase, seen: Mapping[str, str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield the sessions that have messages."""
        described = {str(row["id"]): row for row in database.records("SELECT * FROM sessions")}
        statement = "SELECT session_id, count(*), max(id) FROM messages GROUP BY session_id ORDER BY max(id) DESC"
        for session_id, count, last in database.rows(statement):
            row = described.get(str(session_id), {"id": session_id})
            yield str(session_id), f"{row.get('updated_at')}|{count}|{last}", row

    def parse(self, database: ClientDatabase, key: str, fingerprint: str, row: dict[str, Any]) -> FoundSession:
        """Read one session from its rows."""
        columns, damaged = database.columns("messages"), 0
        named, meta = (name if name in columns else "NULL" for name in ("message_id", "metadata_json"))
        messages = database.rows(
            f"SELECT {named}, role, content_json, created_timestamp, {meta} "  # noqa: S608 - names of columns
            "FROM messages WHERE session_id = ? ORDER BY id",
            (row["id"],),
        )
        model = string(mapping(read_json(row.get("model_config_json"))).get("model_name"))
        talk = GooseDialogue(key, string(row.get("working_dir")), model, described=row)
        for native_id, role, content, created, metadata in messages:
            parts = read_json(content)
            damaged += not isinstance(parts, list)
            message = {"role": role, "content": parts, "created": created, "metadata": read_json(metadata)}
            talk.read({**message, "id": native_id})
        skipped = (Skipped(f"{damaged} x message of session {key}", "not a list of parts"),) if damaged else ()
        return found_in_rows(key, fingerprint, talk.session(), skipped + talk.skipped(f" of session {key}"))


@dataclass(slots=True)
class GooseDialogue(Conversation):
    """Builds a conversation from messages whose content is a list of parts. Pure."""

    described: Record = field(default_factory=dict)

    def read(self, message: Record) -> None:
        """Add one message: `role`, `content` (its parts), `created`, `metadata`."""
        role, key = string(message.get("role")), string(message.get("id"))
        if role not in ("user", "assistant"):
            self.unknown[f"message {role or 'without role'}"] += 1
            return
        for place, part in enumerate(map(mapping, items(message.get("content")))):
            self._add_part(message, part, f"{key}:{place}" if key and place else key)

    def session(self) -> Session:
        """Return the session as read so far."""
        parent = string(self.described.get("parent_session_id"))
        # Goose counts for the whole session only: the first answer takes it all, and grows with it.
        for draft in [each for each in self.drafts if each.role is Role.ASSISTANT][:1]:
            draft.more |= {"usage": usage} if (usage := usage_of(self.described, _USAGE)) else {}
        return self.build(
            {"name": self.described.get("name") or self.described.get("description")},
            folders=[self.folder],
            parent=parent,
            began=drafts.moment(self.described.get("created_at")),
            relation="sub-agent" if parent else None,
        )

    def _add_part(self, message: Record, part: Record, key: str) -> None:
        kind, at = string(part.get("type")), drafts.moment(message.get("created"))
        if kind == "text":
            self._add_text(message, string(part.get("text")).strip(), key)
        elif kind in ("thinking", "reasoning"):
            text = string(part.get("thinking")) or string(part.get("text"))
            self.say(Role.THINKING, text.strip(), at, key, model=self.model)
        elif kind == "toolRequest":
            call = mapping(part.get("toolCall"))
            given = mapping(call.get("value")) or call
            call_id, name = string(part.get("id")) or key, string(given.get("name"))
            self.call(call_id, name, given.get("arguments", {}), at, model=self.model)
            if call.get("status") == "error":
                self.answer(call_id, string(call.get("error")), drafts.FAILED)
        elif kind == "toolResponse":
            self._add_result(part)
        elif kind == "image":
            self.say(Role.USER, "", at, key, attachments=[string(part.get("mimeType")) or "image"])
        elif kind in _NOTICES:
            self.say(Role.SYSTEM, string(part.get("msg")).strip(), at, key, injected=True)
        elif kind not in _SILENT:
            self.unknown[f"part {kind or 'without type'}"] += 1

    def _add_text(self, message: Record, text: str, key: str) -> None:
        at = drafts.moment(message.get("created"))
        if mapping(message.get("metadata")).get("userVisible") is False:  # a summary, or facts about the machine
            self.say(Role.SYSTEM, text, at, key, injected=True)
        elif message.get("role") == "user":
            self.say(Role.USER, text, at, key)
        else:
            self.say(Role.ASSISTANT, text, at, key, model=self.model)

    def _add_result(self, part: Record) -> None:
        result = mapping(part.get("toolResult"))
        value = result.get("value")
        has_failed = result.get("status") == "error" or mapping(value).get("isError") is True
        content = mapping(value).get("content", value)
        text = string(result.get("error")) or drafts.content_text(content)
        self.answer(string(part.get("id")), text, drafts.FAILED if has_failed else drafts.COMPLETED)
