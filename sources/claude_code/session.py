"""What is known of a Claude Code session beside what was said in it: its title, project and origin, and how the records
of its transcript hang together (repeats, edited prompts, forks).
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from registry.domain import preview_of
from sources.kit.drafts import project_of
from sources.kit.files import File, entries, look_at
from sources.kit.jsonl import Damage, Record, mapping, read_lines, records_of, string

TITLE_WIDTH = 80
TITLE_FIELDS = {
    "custom-title": "customTitle",
    "agent-name": "agentName",
    "ai-title": "aiTitle",
    "last-prompt": "lastPrompt",
}
TITLES_BY_TRUST = ("custom-title", "/rename", "agent-name", "ai-title", "summary", "session file")


@dataclass(slots=True)
class Facts:
    """About one session, gathered from its records. `agent_of` is the session that a sub-agent works for."""

    session_id: str
    agent_of: str | None = None
    titles: dict[str, str] = field(default_factory=dict)
    """The newest title of each kind (`TITLES_BY_TRUST`, `last-prompt`)."""
    summaries: dict[str, str] = field(default_factory=dict)
    """Uuid of a last record, here or in another file, to the summary of the conversation it ends."""
    extra: dict[str, str] = field(default_factory=dict)
    _folders: dict[str, None] = field(default_factory=dict)
    _relocated: str = ""
    _first_session_id: str = ""
    _forked_from: str = ""

    def envelope(self, record: Record) -> None:
        """What every record of a conversation carries."""
        self._folders[string(record.get("cwd"))] = None
        self._first_session_id = self._first_session_id or string(record.get("sessionId"))
        if version := string(record.get("version")):
            self.extra["version"] = version
        if (branch := string(record.get("gitBranch"))) not in ("", "HEAD"):
            self.extra.setdefault("branch", branch)
        fork = mapping(record.get("forkedFrom"))
        if (origin := string(fork.get("sessionId"))) not in ("", self.session_id):
            self._forked_from = origin
            self.extra["forked_at"] = string(fork.get("messageUuid"))

    def titled(self, record: Record) -> bool:
        """Take in a record about the session as a whole; False if it is none."""
        kind = string(record.get("type"))
        if kind == "summary":
            self.summaries[string(record.get("leafUuid"))] = string(record.get("summary"))
        elif kind == "relocated":
            self._relocated = string(record.get("relocatedCwd")) or self._relocated
        elif title := string(record.get(TITLE_FIELDS.get(kind, ""))).strip():
            self.titles[kind] = title
        return kind in ("summary", "relocated", *TITLE_FIELDS)

    def title(self, uuids: Container[str]) -> tuple[str, str] | None:
        """Where the best title comes from, and the title. A summary counts if its conversation is this one."""
        summaries = [summary for leaf, summary in self.summaries.items() if leaf in uuids and summary.strip()]
        titles = {**self.titles, "summary": summaries[-1]} if summaries else self.titles
        best = next((kind for kind in TITLES_BY_TRUST if titles.get(kind)), None)
        return (best, preview_of(titles[best], 4 * TITLE_WIDTH)) if best else None

    def project(self) -> str | None:
        """The folder where the work began, or to which the client moved it."""
        return self._relocated or project_of(self._folders)

    def parent(self) -> tuple[str | None, str | None]:
        """The session this one comes from, and how: a resumed session of old began with records of the one before."""
        if self.agent_of is not None:
            return self.agent_of or self._first_session_id or None, "sub-agent"
        if self._forked_from:
            return self._forked_from, "fork"
        if self._first_session_id not in ("", self.session_id):
            return self._first_session_id, "resume"
        return None, None

    def meta(self, **known: str | None) -> dict[str, str]:
        """What else is known; nothing empty."""
        return {key: value for key, value in {**known, **self.extra}.items() if value}


@dataclass(slots=True)
class Links:
    """The tree of one file's records, by uuid. Parents are missing often, and cycles have been seen."""

    parents: dict[str, str] = field(default_factory=dict)
    _typed: dict[str, str] = field(default_factory=dict)
    _leaf: str = ""

    def add(self, record: Record) -> bool:
        """False for a record whose uuid has been seen: after a compaction some repeat, and the first one holds."""
        uuid = string(record.get("uuid"))
        if not uuid:
            return True
        if uuid in self.parents:
            return False
        self.parents[uuid] = string(record.get("parentUuid")) or string(record.get("logicalParentUuid"))
        if record.get("type") in ("user", "assistant"):
            self._leaf = uuid
        return True

    def typed(self, record: Record) -> None:
        """This record is a prompt of the user."""
        uuid = string(record.get("uuid"))
        self._typed[uuid] = self.parents.get(uuid, "")

    def superseded(self) -> set[str]:
        """The prompts that the user took back and typed anew (same parent), with all that had followed them."""
        live = self._live()
        taken_up = {parent for uuid, parent in self._typed.items() if parent and uuid in live}
        gone = {uuid for uuid, parent in self._typed.items() if parent in taken_up and uuid not in live}
        for uuid, parent in self.parents.items():
            if parent in gone and uuid not in live:
                gone.add(uuid)
        return gone

    def _live(self) -> set[str]:
        live: set[str] = set()
        uuid = self._leaf
        while uuid and uuid not in live:
            live.add(uuid)
            uuid = self.parents.get(uuid, "")
        return live


Stamps = Mapping[str, str]
"""The uuids of a transcript's records in order, each with its time as written."""


def fork_origin(name: str, twins: Mapping[str, Stamps]) -> str | None:
    """Which of its twins a transcript is a copy and continuation of; old clients wrote no pointer.

    All start with the same uuids. The origin is one that went its own way first; of several, the nearest.
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
    """When, and with which record, a transcript left the common road."""
    return next(((time, uuid) for uuid, time in stamps.items() if uuid not in other), None)


def stamps_of(records: Iterable[Record], known: dict[str, str] | None = None) -> dict[str, str]:
    """The uuids of the messages among the records, with their times; strings that are in `known` are shared."""
    shared = {} if known is None else known
    messages = (record for record in records if record.get("type") in ("user", "assistant"))
    stamps = ((string(record.get("uuid")), string(record.get("timestamp"))) for record in messages)
    return {shared.setdefault(uuid, uuid): shared.setdefault(time, time) for uuid, time in stamps if uuid}


@dataclass(slots=True)
class Sidechains:
    """Old clients wrote a sub-agent's records into the file of the session that called it."""

    _agents: dict[str, str] = field(default_factory=dict)

    def agent_of(self, record: Record) -> str:
        """The session id of the sub-agent that a side record belongs to: by its own id, else by its first record."""
        uuid = string(record.get("uuid"))
        above = self._agents.get(string(record.get("parentUuid")))
        agent = string(record.get("agentId")) or above or uuid or "unknown"
        self._agents[uuid] = agent
        return agent


_HEAD_LINES = 200
_LONGEST_HEAD_LINE = 2**20


@dataclass(slots=True)
class _Folder:
    """The beginnings of the transcripts in a folder."""

    starts: dict[str, str] = field(default_factory=dict)
    """Path to the uuid of the first message, for those that name no origin themselves."""
    origins: dict[str, dict[str, str]] = field(default_factory=dict)
    """Uuid of a first message to the origins among the sessions that begin with it."""
    summaries: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Neighbours:
    """Reads the beginnings of a folder's files once, when the first changed one among them is read."""

    _folders: dict[str, _Folder] = field(default_factory=dict)

    def summaries(self, path: str) -> dict[str, str]:
        """Leaf uuid to summary, for conversations in any file of the folder."""
        return self._folder(path).summaries

    def origin(self, path: str) -> str | None:
        """The session that this one is a copy and continuation of, where it does not say so itself."""
        folder = self._folder(path)
        start = folder.starts.get(path)
        if start is None:
            return None
        if start not in folder.origins:
            folder.origins[start] = _origins([twin for twin, other in folder.starts.items() if other == start])
        return folder.origins[start].get(Path(path).stem)

    def _folder(self, path: str) -> _Folder:
        folder = os.path.dirname(path)
        if folder not in self._folders:
            self._folders[folder] = _beginnings(folder)
        return self._folders[folder]


def _beginnings(folder: str) -> _Folder:
    found = _Folder()
    for entry in entries(folder):
        is_session = entry.name.endswith(".jsonl") and not entry.name.startswith("agent-")
        if is_session and isinstance(look_at(entry), File):
            for record in _head(entry.path):
                if record.get("type") == "summary":
                    found.summaries[string(record.get("leafUuid"))] = string(record.get("summary"))
                elif uuids := stamps_of([record]):
                    if "forkedFrom" not in record:
                        found.starts[entry.path] = next(iter(uuids))
                    break
    return found


def _head(path: str) -> Iterator[Record]:
    return islice(_records(path), _HEAD_LINES)


def _origins(twins: list[str]) -> dict[str, str]:
    """Session to origin among files that begin alike. They share most of their uuids, so the memory for them too."""
    if len(twins) < 2:
        return {}
    known: dict[str, str] = {}
    stamps = {Path(twin).stem: stamps_of(_records(twin), known) for twin in twins}
    return {name: origin for name in stamps if (origin := fork_origin(name, stamps))}


def _records(path: str) -> Iterator[Record]:
    """The records of a file; what cannot be read is told where the file itself is read."""
    try:
        with open(path, "rb") as file:
            yield from records_of(read_lines(file, _LONGEST_HEAD_LINE), Damage())
    except OSError:
        return
