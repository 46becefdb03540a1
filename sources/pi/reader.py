"""Read the sessions of Pi: entries in a tree, which goes on from an earlier entry when its user takes a step back."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from registry.domain import Role, Session
from sources.kit import drafts
from sources.kit.drafts import Conversation, off_path, supersede, usage_of
from sources.kit.files import File
from sources.kit.loose_json import Record, items, mapping, string
from sources.kit.reader import FileReader, ParseFile, SessionFile, parse_lines
from sources.pi.client import PI

_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cacheRead": "cache_read_input_tokens",
    "cacheWrite": "cache_creation_input_tokens",
}
_SUMMARIES = ("compaction", "branch_summary", "compactionSummary", "branchSummary")


class Pi(FileReader):
    """Reads `sessions/<folder>/`. Keys lie beside `sessions`."""

    name = PI.source
    variables = ("CTXR_PI_DIR", "PI_CODING_AGENT_DIR")
    home = (".pi", "agent")
    patterns = ("sessions/*/*.jsonl",)

    def session_file(self, file: File) -> SessionFile:
        """Return the session, whose id is behind the time in the file's name."""
        return SessionFile(file, file.path, Path(file.path).stem.rpartition("_")[2])

    def parser(self, store: Path) -> ParseFile:
        return lambda file: parse_lines(file, Tree(file.session_id))


@dataclass(slots=True)
class Tree(Conversation):
    """Builds a session from its entries. Pure."""

    _header: Record = field(default_factory=dict)
    _parents: dict[str, str] = field(default_factory=dict)
    _leaf: str = ""
    _named: str = ""

    def read(self, entry: Record) -> None:
        """Add one entry; an unknown one is counted in `unknown`."""
        kind, entry_id = string(entry.get("type")), string(entry.get("id"))
        if kind == "session":
            self._header = self._header or entry
            self.session_id, self.folder = entry_id or self.session_id, string(self._header.get("cwd"))
            return
        if entry_id:
            self._parents[entry_id], self._leaf = string(entry.get("parentId")), entry_id
        if kind == "message":
            self._read_message(entry, mapping(entry.get("message")))
        elif kind in _SUMMARIES:
            self._add_summary(entry, kind, entry.get("summary"))
        elif kind == "custom_message":
            self._say(entry, Role.SYSTEM, drafts.content_text(entry.get("content")).strip(), injected=True)
        elif kind == "session_info":
            self._named = string(entry.get("name"))
        elif kind not in ("model_change", "thinking_level_change", "custom", "label"):
            self.unknown[f"entry {kind or 'without type'}"] += 1

    def session(self) -> Session:
        """Return the conversation as read so far; entries that its user left are marked."""
        gone = off_path(self._parents, self._leaf)
        supersede(draft for draft in self.drafts if draft.origin in gone)
        origin = Path(string(self._header.get("parentSession"))).stem.rpartition("_")[2]
        return self.build(
            {"name": self._named},
            folders=[self.folder],
            parent=origin,
            began=drafts.moment(self._header.get("timestamp")),
            relation="fork" if origin else None,
        )

    def _read_message(self, entry: Record, message: Record) -> None:
        role, content = string(message.get("role")), message.get("content")
        if role == "user":
            names = list(filter(None, (string(mapping(part).get("mimeType")) for part in items(content))))
            self._say(entry, Role.USER, "\n\n".join(drafts.texts_in(content)).strip(), attachments=names)
        elif role == "assistant":
            self._read_answer(entry, message)
        elif role == "toolResult":
            outcome = drafts.FAILED if message.get("isError") is True else drafts.COMPLETED
            self.answer(string(message.get("toolCallId")), drafts.content_text(content), outcome)
        elif role == "bashExecution":
            self._add_command(entry, message)
        elif role in _SUMMARIES:
            self._add_summary(entry, role, message.get("summary"))
        elif role in ("custom", "hookMessage"):
            self._say(entry, Role.SYSTEM, drafts.content_text(content).strip(), injected=True)
        else:
            self.unknown[f"message {role or 'without role'}"] += 1

    def _read_answer(self, entry: Record, message: Record) -> None:
        before, at, entry_id = len(self.drafts), drafts.moment(entry.get("timestamp")), string(entry.get("id"))
        for part in map(mapping, items(message.get("content"))):
            kind = string(part.get("type"))
            if kind == "text":
                self._say(entry, Role.ASSISTANT, string(part.get("text")).strip())
            elif kind == "thinking":
                self._say(entry, Role.THINKING, string(part.get("thinking")).strip(), ":thinking")
            elif kind == "toolCall":
                call_id, name = string(part.get("id")), string(part.get("name"))
                self.call(call_id, name, part.get("arguments", {}), at, origin=entry_id)
            else:
                self.unknown[f"part {kind or 'without type'}"] += 1
        self._say(entry, Role.ERROR, string(message.get("errorMessage")).strip(), ":error")
        self.describe(before, string(message.get("model")), usage_of(message.get("usage"), _USAGE))

    def _add_command(self, entry: Record, message: Record) -> None:
        """Add a command that the user ran, with its output."""
        command, entry_id = string(message.get("command")), string(entry.get("id"))
        self.call(entry_id, "bash", {"command": command}, drafts.moment(entry.get("timestamp")), origin=entry_id)
        has_failed = bool(message.get("exitCode")) or message.get("cancelled") is True
        self.answer(entry_id, string(message.get("output")), drafts.FAILED if has_failed else drafts.COMPLETED)

    def _add_summary(self, entry: Record, kind: str, summary: object) -> None:
        more: Record = {"compaction": {}} if kind.startswith("compaction") else {}
        self._say(entry, Role.SYSTEM, string(summary).strip(), injected=True, **more)

    def _say(self, entry: Record, role: Role, text: str, suffix: str = "", **more: Any) -> None:
        entry_id, at = string(entry.get("id")), drafts.moment(entry.get("timestamp"))
        self.say(role, text, at, entry_id and entry_id + suffix, origin=entry_id, **more)
