"""Read the sessions of Droid: records in a chain, their messages in Anthropic's form."""

from dataclasses import dataclass, field
from pathlib import Path

from registry.domain import Role, Session
from sources.clients import DROID
from sources.kit import drafts
from sources.kit.drafts import Conversation
from sources.kit.loose_json import Record, mapping, string
from sources.kit.reader import FileReader, ParseFile, parse_records

_BOOKKEEPING = ("agent_turn_outcome", "todo_state", "session_end")


class Droid(FileReader):
    """Reads `sessions/<folder>/`. Keys lie beside `sessions`."""

    client = DROID
    patterns = ("sessions/*/*.jsonl",)

    def parser(self, store: Path) -> ParseFile:
        return lambda file: parse_records(file, DroidChat(file.session_id))


@dataclass(slots=True)
class DroidChat(Conversation):
    """Builds a session from its records. Pure."""

    _start: Record = field(default_factory=dict)

    def read(self, record: Record) -> None:
        kind, own = string(record.get("type")), string(record.get("id"))
        if kind == "session_start":
            self._start = self._start or record
            self.folder = self.folder or string(record.get("cwd"))
        elif kind == "message":
            self.begin(own, record.get("timestamp"))
            self.follow(own, record.get("parentId"))
            self._read_message(mapping(record.get("message")))
        elif kind == "compaction_state":
            self.begin(own, record.get("timestamp"))
            self.inject(string(record.get("summaryText")), compaction={})
        elif kind not in _BOOKKEEPING:
            self.pass_over("record", kind)

    def session(self) -> Session:
        return self.build(self._start.get("title"), parent=string(self._start.get("parent")), relation="fork")

    def _read_message(self, message: Record) -> None:
        role = string(message.get("role"))
        if role not in ("user", "assistant"):
            self.pass_over("message", role)
            return
        self.model, hidden = string(message.get("modelId")), message.get("visibility") == "llm_only"
        for place, block in enumerate(drafts.blocks_of(message.get("content"))):
            is_clients = hidden or string(block.get("text")).startswith("<system-reminder>")
            self.add_block(Role.SYSTEM if is_clients else Role(role), block, f":{place}" if place else "")
