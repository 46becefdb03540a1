"""Read the sessions of Droid: linked records with messages in Anthropic's format."""

from dataclasses import dataclass, field
from pathlib import Path

from registry.domain import Role, Session
from sources.clients import DROID
from sources.kit import drafts
from sources.kit.contents import blocks_of
from sources.kit.loose_json import Record, mapping, string
from sources.kit.reader import FileReader, ParseFile, parse_records

_BOOKKEEPING = ("agent_turn_outcome", "todo_state", "session_end")


class Droid(FileReader):
    """Reads `sessions/<folder>/`. Never open siblings of `sessions`: they have keys."""

    client = DROID
    patterns = ("sessions/*/*.jsonl",)

    def parser(self, store: Path) -> ParseFile:
        return lambda file: parse_records(file, DroidChat(file.session_id))


@dataclass(slots=True)
class DroidChat(drafts.Conversation):
    """Builds a session from its records. Pure."""

    _start: Record = field(default_factory=dict)

    def read(self, record: Record) -> None:
        kind, record_id = string(record.get("type")), string(record.get("id"))
        if kind == "session_start":
            self._start = self._start or record
            self.folder = self.folder or string(record.get("cwd"))
        elif kind == "message":
            self.begin(record_id, record.get("timestamp"))
            self.follow(record_id, record.get("parentId"))
            self._read_message(mapping(record.get("message")))
        elif kind == "compaction_state":
            self.begin(record_id, record.get("timestamp"))
            self.inject(string(record.get("summaryText")), compaction={})
        elif kind not in _BOOKKEEPING:
            self.count_unknown("record", kind)

    def session(self) -> Session:
        return self.build(self._start.get("title"), parent=string(self._start.get("parent")), relation="fork")

    def _read_message(self, message: Record) -> None:
        role = string(message.get("role"))
        if role not in ("user", "assistant"):
            self.count_unknown("message", role)
            return
        self.model, hidden = string(message.get("modelId")), message.get("visibility") == "llm_only"
        for index, block in enumerate(blocks_of(message.get("content"))):
            is_injected = hidden or string(block.get("text")).startswith("<system-reminder>")
            self.add_block(Role.SYSTEM if is_injected else Role(role), block, f":{index}" if index else "")
