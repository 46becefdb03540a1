"""Read the sessions of Pi: entries in a tree, which continues from an earlier entry if the user rewinds."""

from dataclasses import dataclass, field
from pathlib import Path

from registry.domain import Role, Session
from sources.clients import PI
from sources.kit import drafts
from sources.kit.contents import content_text, texts_in
from sources.kit.files import File
from sources.kit.loose_json import Record, items, mapping, objects, string, text_at
from sources.kit.reader import FileReader, ParseFile, SessionFile, parse_records

_SUMMARIES = ("compaction", "branch_summary", "compactionSummary", "branchSummary")


class Pi(FileReader):
    """Reads `sessions/<folder>/`. Never open siblings of `sessions`: they have keys."""

    client = PI
    patterns = ("sessions/*/*.jsonl",)

    def session_file(self, file: File) -> SessionFile:
        """Return the session; its id follows the time in the file's name."""
        return SessionFile(file, file.path, Path(file.path).stem.rpartition("_")[2])

    def parser(self, store: Path) -> ParseFile:
        return lambda file: parse_records(file, Tree(file.session_id))


@dataclass(slots=True)
class Tree(drafts.Conversation):
    """Builds a session from its entries. Pure."""

    _header: Record = field(default_factory=dict)
    _named: str = ""

    def read(self, entry: Record) -> None:
        kind, entry_id = string(entry.get("type")), string(entry.get("id"))
        if kind == "session":
            self._header = self._header or entry
            self.session_id, self.folder = entry_id or self.session_id, string(self._header.get("cwd"))
            return
        self.begin(entry_id, entry.get("timestamp"))
        self.follow(entry_id, entry.get("parentId"))
        if kind == "message":
            self._read_message(mapping(entry.get("message")))
        elif kind in _SUMMARIES:
            self._add_summary(kind, entry.get("summary"))
        elif kind == "custom_message":
            self.inject(content_text(entry.get("content")))
        elif kind == "session_info":
            self._named = string(entry.get("name"))
        elif kind not in ("model_change", "thinking_level_change", "custom", "label"):
            self.count_unknown("entry", kind)

    def session(self) -> Session:
        origin = Path(string(self._header.get("parentSession"))).stem.rpartition("_")[2]
        return self.build(self._named, parent=origin, relation="fork", began=self._header.get("timestamp"))

    def _read_message(self, message: Record) -> None:
        role, content = string(message.get("role")), message.get("content")
        if role == "user":
            names = list(filter(None, (text_at(part, "mimeType") for part in items(content))))
            self.say(Role.USER, "\n\n".join(texts_in(content)), attachments=names)
        elif role == "assistant":
            self._read_answer(message)
        elif role == "toolResult":
            status = drafts.result_status(message.get("isError") is True)
            self.set_result(message.get("toolCallId"), content_text(content), status)
        elif role == "bashExecution":  # a command that the user ran
            self.call(self.record_id, "bash", {"command": string(message.get("command"))})
            status = drafts.result_status(message.get("exitCode") or message.get("cancelled") is True)
            self.set_result(self.record_id, string(message.get("output")), status)
        elif role in _SUMMARIES:
            self._add_summary(role, message.get("summary"))
        elif role in ("custom", "hookMessage"):
            self.inject(content_text(content))
        else:
            self.count_unknown("message", role)

    def _read_answer(self, message: Record) -> None:
        before, self.model = len(self.drafts), string(message.get("model"))
        for part in objects(message.get("content")):
            kind = string(part.get("type"))
            if kind == "text":
                self.say(Role.ASSISTANT, string(part.get("text")))
            elif kind == "thinking":
                self.say(Role.THINKING, string(part.get("thinking")), ":thinking")
            elif kind == "toolCall":
                self.call(string(part.get("id")), part.get("name"), part.get("arguments", {}))
            else:
                self.count_unknown("part", kind)
        self.say(Role.ERROR, string(message.get("errorMessage")), ":error")
        self.count_tokens(before, message.get("usage"))

    def _add_summary(self, kind: str, summary: object) -> None:
        more: Record = {"compaction": {}} if kind.startswith("compaction") else {}
        self.inject(string(summary), **more)
