"""Facts about a Claude Code session beside its messages, and the tree of its records (repeats, edited prompts)."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

from sources.kit.files import File, files_below
from sources.kit.jsonl import Damage
from sources.kit.loose_json import Record, string, text_at
from sources.kit.reader import json_lines

# fields of the records that hold a title, by their type
TITLE_FIELDS = {
    "custom-title": "customTitle",
    "agent-name": "agentName",
    "ai-title": "aiTitle",
    "last-prompt": "lastPrompt",
}
_TITLES_BY_TRUST = ("custom-title", "/rename", "agent-name", "ai-title", "summary", "session file")


@dataclass(slots=True)
class Facts:
    """The facts about one session, collected from its records.

    `agent_of`: the session that a sub-agent works for. `titles`: the newest of each kind. `summaries`: by the uuid of a
    last record, here or in another file, the summary of the conversation that it ends.
    """

    session_id: str
    agent_of: str | None = None
    titles: dict[str, str] = field(default_factory=dict)
    summaries: dict[str, str] = field(default_factory=dict)
    relocated: str = ""
    first_session_id: str = ""
    forked_from: str = ""

    def add_envelope(self, record: Record) -> None:
        """Add the fields that every record of a conversation has."""
        self.first_session_id = self.first_session_id or string(record.get("sessionId"))
        if (origin := text_at(record, "forkedFrom", "sessionId")) not in ("", self.session_id):
            self.forked_from = origin

    def add_title(self, record: Record) -> bool:
        """Add a record about the session as a whole; False if it is none."""
        kind = string(record.get("type"))
        if kind == "summary":
            self.summaries[string(record.get("leafUuid"))] = string(record.get("summary"))
        elif kind == "relocated":
            self.relocated = string(record.get("relocatedCwd")) or self.relocated
        elif title := string(record.get(TITLE_FIELDS.get(kind, ""))).strip():
            self.titles[kind] = title
        return kind in ("summary", "relocated", *TITLE_FIELDS)

    def titles_in_order(self, uuids: Container[str]) -> list[str]:
        """Return the titles, the most trusted first. A summary counts if its conversation is this one."""
        summaries = [summary for leaf, summary in self.summaries.items() if leaf in uuids and summary.strip()]
        titles = {**self.titles, "summary": summaries[-1]} if summaries else self.titles
        return [titles[kind] for kind in _TITLES_BY_TRUST if kind in titles]

    def parent(self) -> tuple[str | None, str | None]:
        """Return the session this one comes from, and how. Old clients began a resumed session with records of it."""
        if self.agent_of is not None:
            return self.agent_of or self.first_session_id or None, "sub-agent"
        if self.forked_from:
            return self.forked_from, "fork"
        if self.first_session_id not in ("", self.session_id):
            return self.first_session_id, "resume"
        return None, None


@dataclass(slots=True)
class Links:
    """The tree of one file's records, by uuid. Parents are missing often, and cycles have been seen."""

    parents: dict[str, str] = field(default_factory=dict)
    _typed: dict[str, str] = field(default_factory=dict)
    _leaf: str = ""

    def add(self, record: Record) -> bool:
        """Add a record; False if its uuid is known: after a compaction some repeat, and the first one holds."""
        uuid = string(record.get("uuid"))
        if not uuid:
            return True
        if uuid in self.parents:
            return False
        self.parents[uuid] = string(record.get("parentUuid")) or string(record.get("logicalParentUuid"))
        if record.get("type") in ("user", "assistant"):
            self._leaf = uuid
        return True

    def add_prompt(self, uuid: str) -> None:
        self._typed[uuid] = self.parents.get(uuid, "")

    def superseded(self) -> set[str]:
        """Return the prompts that the user took back and typed anew (same parent), with all that followed them."""
        live = set(self._path())
        taken_up = {parent for uuid, parent in self._typed.items() if parent and uuid in live}
        gone = {uuid for uuid, parent in self._typed.items() if parent in taken_up and uuid not in live}
        for uuid, parent in self.parents.items():
            if parent in gone and uuid not in live:
                gone.add(uuid)
        return gone

    def _path(self) -> Iterator[str]:
        seen: set[str] = set()
        uuid = self._leaf
        while uuid and uuid not in seen:
            seen.add(uuid)
            yield uuid
            uuid = self.parents.get(uuid, "")


def summaries_in(folder: str) -> dict[str, str]:
    """Return summaries by leaf uuid: those of any conversation stand at the beginning of a later transcript."""
    found: dict[str, str] = {}
    for file in files_below(folder, "*.jsonl"):
        with suppress(OSError):
            for record in islice(json_lines(file.path, Damage()) if isinstance(file, File) else (), 200):
                if record.get("type") in ("user", "assistant"):
                    break
                if record.get("type") == "summary":
                    found[string(record.get("leafUuid"))] = string(record.get("summary"))
    return found
