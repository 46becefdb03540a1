"""Copilot Chat in VS Code: its sessions as documents, as operation logs, and as the transcripts that hooks read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from registry.domain import Session
from registry.errors import StorageError
from sources.base import FoundSession, Places, Skipped
from sources.copilot.chat import Chat
from sources.copilot.client import VSCODE
from sources.copilot.events import Events
from sources.copilot.operation_log import replayed
from sources.kit import drafts
from sources.kit.files import File, document, entries, folders_in, look_at, read_changed, store_entries, why_not
from sources.kit.jsonl import Damage, Record, mapping, read_lines, records_of, string
from sources.kit.loose_json import read_json
from sources.kit.sqlite_store import WAIT_S, ClientDatabase
from sources.kit.workspace_files import project_of_workspace, user_folders

_SETTING = "CTXR_VSCODE_DIR"
_BUILDS = ("Code", "Code - Insiders", "VSCodium")
_SERVERS = (".vscode-server", ".vscode-server-insiders")
_SESSIONS, _WINDOWS = "chatSessions", "emptyWindowChatSessions"
_TRANSCRIPTS = os.path.join("GitHub.copilot-chat", "transcripts")
_INDEX = "chat.ChatSessionStore.index"
_DOCUMENT, _LOG = ".json", ".jsonl"


@dataclass(frozen=True, slots=True)
class _Kept:
    """A session in a store, and the folder of its workspace; that of `globalStorage` where it has none."""

    file: File
    place: str
    is_transcript: bool = False

    @property
    def key(self) -> str:
        """The same for both forms of a session: one may follow the other."""
        return self.file.path.rpartition(".")[0]

    @property
    def session_id(self) -> str:
        return os.path.basename(self.key)


@dataclass(slots=True)
class CopilotVscode:
    """Reads one `User` folder. Of databases, which hold credentials too, nothing but the list of sessions."""

    name: str = VSCODE.source
    wait_s: float = WAIT_S

    def find(self, places: Places) -> Iterator[Path]:
        """The `User` folder of each VS Code on this machine that has had workspaces or chats."""
        servers = (places.home / server / "data" / "User" for server in _SERVERS)
        usual = (*user_folders(places, _BUILDS), *servers)
        named = places.environment.get(_SETTING)
        for user in dict.fromkeys([Path(named).expanduser()] if named else usual):
            if os.path.isdir(user / "workspaceStorage") or os.path.isdir(user / "globalStorage" / _WINDOWS):
                yield user

    def stamp(self, store: Path) -> str:
        """Each file's own state is as cheap to look at: there is no stamp of the whole."""
        return ""

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """The changed sessions, newest first. A file without a conversation is found with no messages, so that
        it is not read again, and says so in its `skipped`. Raises StorageError."""
        workspaces = _Workspaces(self.wait_s)
        yield from read_changed(
            _walk(store, seen),
            lambda kept: seen.get(kept.key) != kept.file.fingerprint,
            lambda kept: _transcript(kept, workspaces) if kept.is_transcript else [_session(kept, workspaces)],
        )
        yield from workspaces.skipped


# What is there


def _walk(store: Path, seen: Mapping[str, str]) -> Iterator[_Kept | Skipped]:
    for workspace in folders_in(store_entries(store / "workspaceStorage")):
        yield from _guarded(workspace, _SESSIONS, seen)
    yield from _guarded(str(store / "globalStorage"), _WINDOWS, seen)


def _guarded(place: str, folder: str, seen: Mapping[str, str]) -> Iterator[_Kept | Skipped]:
    try:
        sessions = _newest_forms(os.path.join(place, folder), place)
        yield from sessions.values()
        yield from _lone_transcripts(place, folder, sessions, seen)
    except OSError as exc:
        yield Skipped(place, why_not(exc))


def _newest_forms(folder: str, place: str) -> dict[str, _Kept | Skipped]:
    """The sessions in a folder by key; where one stands in both forms, the log."""
    found: dict[str, _Kept | Skipped] = {}
    for entry in sorted(entries(folder), key=lambda entry: entry.name):  # `.json` comes before `.jsonl`
        if entry.name.endswith((_DOCUMENT, _LOG)):
            file = look_at(entry)
            found[entry.path.rpartition(".")[0]] = _Kept(file, place) if isinstance(file, File) else file
    return found


def _lone_transcripts(
    place: str, folder: str, sessions: Mapping[str, object], seen: Mapping[str, str]
) -> Iterator[_Kept | Skipped]:
    """Transcripts of sessions that are not here, as on the far side of a remote connection. One that was read as a
    session stays that, also when the client has deleted it since."""
    for entry in entries(os.path.join(place, _TRANSCRIPTS)):
        if entry.name.endswith(_LOG):
            session = os.path.join(place, folder, entry.name.removesuffix(_LOG))
            file = look_at(entry)
            if isinstance(file, Skipped):
                yield file
            elif session not in sessions and session not in seen:
                yield _Kept(file, place, is_transcript=True)


@dataclass(slots=True)
class _Workspaces:
    """What the workspaces of changed sessions tell, each asked once."""

    wait_s: float
    skipped: list[Skipped] = field(default_factory=list)
    _projects: dict[str, str] = field(default_factory=dict)
    _titles: dict[str, Record] = field(default_factory=dict)

    def project(self, place: str) -> str:
        """The project's path, if there is one."""
        if place not in self._projects:
            self._projects[place] = project_of_workspace(Path(place))
        return self._projects[place]

    def title(self, place: str, session_id: str) -> str:
        """The title in the client's list."""
        if place not in self._titles:
            self._titles[place] = self._listed(Path(place) / "state.vscdb")
        return string(mapping(self._titles[place].get(session_id)).get("title"))

    def _listed(self, database: Path) -> Record:
        if not database.exists():
            return {}
        try:
            with ClientDatabase(database, self.wait_s) as opened:
                rows = opened.rows("SELECT value FROM ItemTable WHERE key = ?", (_INDEX,))
        except StorageError as exc:
            self.skipped.append(Skipped(f"the titles in {database}", exc.details))
            return {}
        return mapping(mapping(read_json(rows[0][0])).get("entries")) if rows else {}


# What it says


def _session(kept: _Kept, workspaces: _Workspaces) -> FoundSession:
    damage, path = Damage(), kept.file.path
    given = _log(path, damage) if path.endswith(_LOG) else _document(path, damage)
    chat = Chat(given, kept.session_id, workspaces.project(kept.place))
    if not string(given.get("customTitle")):
        chat.listed_title = workspaces.title(kept.place, kept.session_id)
    touched = drafts.moment(given.get("lastMessageDate"))
    session = drafts.dated(chat.session(), touched, kept.file.modified_at)
    skipped = damage.skipped() + chat.skipped()
    if not session.messages:
        skipped += (Skipped(path, "no conversation in it"),)
    return FoundSession(kept.key, kept.file.fingerprint, session, skipped)


def _transcript(kept: _Kept, workspaces: _Workspaces) -> Iterator[FoundSession]:
    """The sessions of a transcript: sub-agents first, so that the file counts as read when all of it is."""
    damage, reading = Damage(), Events(kept.session_id)
    with open(kept.file.path, "rb") as file:
        for event in records_of(read_lines(file), damage):
            reading.read(event)
    told = (drafts.dated(session, kept.file.modified_at) for session in reading.sessions())
    main, *agents = (_placed(session, workspaces.project(kept.place)) for session in told)
    for agent in agents:
        yield FoundSession(f"{kept.key}#{agent.session_id}", kept.file.fingerprint, agent)
    yield FoundSession(kept.key, kept.file.fingerprint, main, damage.skipped() + reading.skipped())


def _placed(session: Session, project: str) -> Session:
    return replace(session, project=session.project or project or None)


def _log(path: str, damage: Damage) -> Record:
    with open(path, "rb") as file:
        return replayed(records_of(read_lines(file), damage), damage)


def _document(path: str, damage: Damage) -> Record:
    value = read_json(document(path))
    if not isinstance(value, dict):
        damage.note(0, "not a JSON object")
    return mapping(value)
