"""Facts about a Claude Code session beside its messages, and the tree of its records (repeats, edited prompts)."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path

from sources.kit.files import File, files_below
from sources.kit.jsonl import Damage, read_lines, records_of
from sources.kit.loose_json import Record, string, text_at

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


Stamps = Mapping[str, str]  # the uuids of a transcript's messages in order, each with its time as written


@dataclass(slots=True)
class _Folder:
    """The beginnings of the transcripts in a folder.

    `starts`: by path the uuid of the first message, of those that name no origin themselves. `summaries`: by leaf uuid.
    """

    starts: dict[str, str] = field(default_factory=dict)
    summaries: dict[str, str] = field(default_factory=dict)


class Neighbours:
    """Reads the beginnings of a folder's files once, when the first changed one among them is read."""

    def __init__(self) -> None:
        self._folder = cache(_beginnings)
        self._origins_of = cache(lambda folder, start: _origins(self._folder(folder), start))

    def summaries(self, path: str) -> dict[str, str]:
        """Return summaries by leaf uuid, of conversations in any file of the folder."""
        return self._folder(os.path.dirname(path)).summaries

    def origin(self, path: str) -> str | None:
        """Return the session that this one is a copy and continuation of, if it does not say so itself."""
        folder = os.path.dirname(path)
        start = self._folder(folder).starts.get(path)
        return self._origins_of(folder, start).get(Path(path).stem) if start else None


def _beginnings(folder: str) -> _Folder:
    found = _Folder()
    for file in files_below(folder, "*.jsonl"):
        if isinstance(file, File) and not os.path.basename(file.path).startswith("agent-"):
            for record in islice(_records(file.path), 200):
                if record.get("type") == "summary":
                    found.summaries[string(record.get("leafUuid"))] = string(record.get("summary"))
                elif uuids := stamps_of([record]):
                    if "forkedFrom" not in record:
                        found.starts[file.path] = next(iter(uuids))
                    break
    return found


def _origins(folder: _Folder, start: str) -> dict[str, str]:
    twins = [path for path, other in folder.starts.items() if other == start]
    if len(twins) < 2:
        return {}
    stamps = {Path(twin).stem: stamps_of(_records(twin)) for twin in twins}
    return {name: origin for name in stamps if (origin := fork_origin(name, stamps))}


def fork_origin(name: str, twins: Mapping[str, Stamps]) -> str | None:
    """Return which of its twins a transcript is a copy and continuation of; old clients wrote no pointer.

    All begin with the same uuids. The origin is one that diverged first; of several, the nearest.
    """
    own = twins[name]
    others = (other for other in sorted(twins) if other != name and _came_first(twins[other], own))
    return max(others, key=lambda other: len(own.keys() & twins[other].keys()), default=None)


def _came_first(other: Stamps, own: Stamps) -> bool:
    if own.keys().isdisjoint(other):
        return False
    theirs, mine = _first_not_in(other, own), _first_not_in(own, other)
    return mine is not None and (theirs is None or theirs < mine)


def _first_not_in(stamps: Stamps, other: Stamps) -> tuple[str, str] | None:
    """Return time and uuid of the record with which a transcript diverges."""
    return next(((time, uuid) for uuid, time in stamps.items() if uuid not in other), None)


def stamps_of(records: Iterable[Record]) -> dict[str, str]:
    messages = (record for record in records if record.get("type") in ("user", "assistant"))
    return {uuid: string(record.get("timestamp")) for record in messages if (uuid := string(record.get("uuid")))}


def _records(path: str) -> Iterator[Record]:
    """Yield the records of a file; damage is reported where the file itself is read."""
    try:
        with open(path, "rb") as file:
            yield from records_of(read_lines(file, 2**20), Damage())
    except OSError:
        return
