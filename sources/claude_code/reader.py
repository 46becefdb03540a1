"""Claude Code: its transcripts, those of its sub-agents, and those of the desktop app that uses the same format."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from registry.domain import Session
from sources.base import FoundSession, Places, Skipped
from sources.claude_code.client import CLAUDE_CODE
from sources.claude_code.session import Facts, Neighbours, Sidechains
from sources.claude_code.transcript import OutputOf, Transcript
from sources.kit import drafts
from sources.kit.files import File, entries, folders_in, look_at, read_changed, store_entries, why_not
from sources.kit.jsonl import Damage, Record, mapping, read_lines, records_of, string

_SETTINGS = ("CTXR_CLAUDE_CODE_DIR", "CLAUDE_CONFIG_DIR")
_DESKTOP = (("Library", "Application Support", "Claude"), ("AppData", "Roaming", "Claude"), (".config", "Claude"))
_DESKTOP_SESSIONS = "local-agent-mode-sessions"
_MOVED_OUTPUT = re.compile(r"tool-results[\\/]([\w.-]+\.(?:txt|json))")
_LONGEST_OUTPUT = 2**20
_LONGEST_DESCRIPTION = 16 * 2**20


class _Kept(NamedTuple):
    """A transcript in a store; `agent_of` is the session whose folder a sub-agent's file lies in."""

    file: File
    agent_of: str | None
    session_folder: str

    @property
    def session_id(self) -> str:
        return Path(self.file.path).stem


class ClaudeCode:
    """Reads `projects/<folder>/<session>.jsonl` and below. Opens nothing outside of it: secrets lie beside it."""

    name = CLAUDE_CODE.source

    def find(self, places: Places) -> Iterator[Path]:
        """The configuration folders that hold projects, and the desktop app's folder of sessions."""
        roots = (places.folder(_SETTINGS, ".claude"), places.home / ".config" / "claude")
        yield from dict.fromkeys(root for root in roots if os.path.isdir(root / "projects"))
        desktop = (places.home.joinpath(*parts) / _DESKTOP_SESSIONS for parts in _DESKTOP)
        yield from (folder for folder in desktop if os.path.isdir(folder))

    def stamp(self, store: Path) -> str:
        """Each file's own state is as cheap to look at: there is no stamp of the whole."""
        return ""

    def count(self, store: Path) -> int:
        """The transcripts there are."""
        return sum(isinstance(kept, _Kept) for kept in _walk(store))

    def watched(self, store: Path) -> Iterable[Path]:
        """Only the projects, for beside them lie caches and plugins; in the desktop app all of its sessions."""
        return [store if store.name == _DESKTOP_SESSIONS else store / "projects"]

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """The changed sessions, newest first. A file without a conversation is found with no messages, so that
        it is not read again, and says so in its `skipped`. Raises StorageError."""
        neighbours = Neighbours()
        yield from read_changed(
            _walk(store),
            lambda kept: seen.get(kept.file.path) != kept.file.fingerprint,
            lambda kept: _read(kept, neighbours),
        )


# What is there


def _walk(store: Path) -> Iterator[_Kept | Skipped]:
    for root in _roots(store):
        for project in folders_in(store_entries(os.path.join(root, "projects"))):
            yield from _guarded(project)


def _roots(store: Path) -> Iterable[str | Path]:
    """The store itself, or, in the desktop app, `<organisation>/<account>/local_<id>/.claude` for each session."""
    if store.name != _DESKTOP_SESSIONS:
        return (store,)
    return sorted(store.glob("*/*/local_*/.claude"))


def _guarded(project: str) -> Iterator[_Kept | Skipped]:
    try:
        yield from _project(project)
    except OSError as exc:
        yield Skipped(project, why_not(exc))


def _project(project: str) -> Iterator[_Kept | Skipped]:
    for entry in entries(project):
        if entry.name.endswith(".jsonl"):
            is_agent = entry.name.startswith("agent-")
            yield _kept(entry, "" if is_agent else None, entry.path.removesuffix(".jsonl"))
        elif entry.is_dir():
            yield from _agents(os.path.join(entry.path, "subagents"), entry)


def _agents(folder: str, session: os.DirEntry[str], deeper: int = 2) -> Iterator[_Kept | Skipped]:
    """The sub-agents of a session; those of its workflows lie two folders deeper."""
    for entry in entries(folder):
        if entry.name.startswith("agent-") and entry.name.endswith(".jsonl"):
            yield _kept(entry, session.name, session.path)
        elif deeper and entry.is_dir():
            yield from _agents(entry.path, session, deeper - 1)


def _kept(entry: os.DirEntry[str], agent_of: str | None, session_folder: str) -> _Kept | Skipped:
    file = look_at(entry)
    return _Kept(file, agent_of, session_folder) if isinstance(file, File) else file


# What it says


def _read(kept: _Kept, neighbours: Neighbours) -> Iterator[FoundSession]:
    """The sessions of one file: sub-agents inside it first, so that the file counts as read when all of it is."""
    damage = Damage()
    path, fingerprint = kept.file.path, kept.file.fingerprint
    main, *agents = parse(_records(path, damage), kept.session_id, kept.agent_of, _outputs(kept.session_folder))
    for agent in agents:
        session = drafts.dated(agent.session(), kept.file.modified_at)
        if session.messages:
            yield FoundSession(f"{path}#{session.session_id}", fingerprint, session, agent.skipped())
    session = drafts.dated(_completed(kept, main, neighbours), kept.file.modified_at)
    skipped = damage.skipped() + main.skipped()
    if not session.messages:
        skipped += (Skipped(path, "no conversation in it"),)
    yield FoundSession(path, fingerprint, session, skipped)


def parse(
    records: Iterable[Record], session_id: str, agent_of: str | None = None, output_of: OutputOf = lambda _: None
) -> list[Transcript]:
    """The transcript of a session, then those of sub-agents that an old client wrote between its records. Pure.

    `agent_of`: None for a session; for a sub-agent's own file the session it works for, or "" to take the one
    its records name. `output_of`: see Transcript.
    """
    main = Transcript(Facts(session_id, agent_of), output_of)
    agents: dict[str, Transcript] = {}
    sidechains = Sidechains()
    for record in records:
        if agent_of is not None or record.get("isSidechain") is not True:
            main.read(record)
            continue
        agent_id = f"agent-{sidechains.agent_of(record)}"
        if agent_id not in agents:
            agents[agent_id] = Transcript(Facts(agent_id, session_id), output_of)
        agents[agent_id].read(record)
    return [main, *agents.values()]


def _completed(kept: _Kept, transcript: Transcript, neighbours: Neighbours) -> Session:
    """The session with what other files say about it."""
    facts = transcript.facts
    if kept.agent_of is not None:
        described = _description(kept.file.path.removesuffix(".jsonl") + ".meta.json")
        known = {"agent_type": "agentType", "description": "description", "tool_use_id": "toolUseId"}
        facts.extra |= {ours: string(described.get(theirs)) for ours, theirs in known.items()}
        facts.titles["session file"] = facts.extra["description"]
        return transcript.session()
    facts.summaries = neighbours.summaries(kept.file.path) | facts.summaries
    facts.titles["session file"] = _desktop_title(kept.file.path)
    session = transcript.session()
    if session.parent is None and (origin := neighbours.origin(kept.file.path)):
        return replace(session, parent=origin, meta={**session.meta, "relation": "fork"})
    return session


def _records(path: str, damage: Damage) -> Iterator[Record]:
    with open(path, "rb") as file:
        yield from records_of(read_lines(file), damage)


def _outputs(session_folder: str) -> OutputOf:
    """Large outputs of tools lie in the session's folder; the record has the first lines and the file's name."""

    def output_of(stub: str) -> str | None:
        moved = _MOVED_OUTPUT.search(stub) if stub.startswith("<persisted-output>") else None
        return _text(os.path.join(session_folder, "tool-results", moved[1]), _LONGEST_OUTPUT) if moved else None

    return output_of


def _description(path: str) -> Record:
    """A small JSON file beside a transcript; empty if it is not there or damaged."""
    text = _text(path, _LONGEST_DESCRIPTION)
    return next(records_of([text.encode()], Damage()), {}) if text else {}


def _desktop_title(path: str) -> str:
    """The title that the desktop app shows, in `local_<id>.json` beside the session's folder; nothing else of it."""
    folder = next((part for part in Path(path).parents if part.name == ".claude"), None)
    if folder is None or not folder.parent.name.startswith("local_"):
        return ""
    return string(mapping(_description(f"{folder.parent}.json")).get("title"))


def _text(path: str, longest: int) -> str | None:
    try:
        with open(path, "rb") as file:
            return file.read(longest).decode("utf-8", "replace") or None
    except OSError:
        return None
