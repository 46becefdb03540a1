"""Read Copilot Chat in VS Code: documents, operation logs, and the transcripts that hooks read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from registry.errors import StorageError
from sources.base import FoundSession, Places, Skipped
from sources.copilot.chat import VsCodeChat
from sources.copilot.client import VSCODE
from sources.copilot.events import Events
from sources.copilot.operation_log import replayed
from sources.kit import drafts
from sources.kit.files import File
from sources.kit.jsonl import Damage
from sources.kit.loose_json import Record, mapping, read_json, string, text_at, value_at
from sources.kit.reader import FileReader, ParseFile, SessionFile, json_document, json_lines
from sources.kit.sqlite_store import WAIT_S, ClientDatabase
from sources.kit.workspace_files import project_of_workspace, user_folders

TitlesOf = Callable[[str], tuple[Record, tuple[Skipped, ...]]]
_TRANSCRIPTS = os.path.join("GitHub.copilot-chat", "transcripts")


class CopilotVscode(FileReader):
    """Reads one `User` folder. Databases hold credentials too: only the list of sessions is read from them."""

    client = VSCODE
    patterns = (
        *(f"workspaceStorage/*/chatSessions/*{end}" for end in (".json", ".jsonl")),
        *(f"globalStorage/emptyWindowChatSessions/*{end}" for end in (".json", ".jsonl")),
        "workspaceStorage/*/GitHub.copilot-chat/transcripts/*.jsonl",
        "globalStorage/GitHub.copilot-chat/transcripts/*.jsonl",
    )

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s

    def roots(self, places: Places) -> Iterable[Path]:
        servers = (".vscode-server", ".vscode-server-insiders")
        remote = (places.home / server / "data" / "User" for server in servers)
        usual = user_folders(places, ("Code", "Code - Insiders", "VSCodium"))
        return places.named("CTXR_VSCODE_DIR") or (*usual, *remote)

    def files(self, store: Path) -> Iterator[SessionFile | Skipped]:
        """List the sessions, and the transcripts of sessions that are not here, as in a remote connection."""
        found: dict[str, SessionFile] = {}
        for file in FileReader.files(self, store):
            if isinstance(file, Skipped):
                yield file
            elif not _is_transcript(file) or _key_of_session(file) not in found:
                found[file.key] = file  # a log replaces the document of the same session, which was listed before
        yield from found.values()

    def session_file(self, file: File) -> SessionFile:
        """Return the file, whose key is the same in both forms, with the folder of its workspace."""
        path, depth = Path(file.path), 2 if _TRANSCRIPTS in file.path else 1
        return SessionFile(file, str(path.with_suffix("")), path.stem, folder=str(path.parents[depth]))

    def has_changed(self, file: SessionFile, seen: Mapping[str, str]) -> bool:
        """Return False for a transcript whose session was read: it stays that, also when the client has deleted it."""
        return FileReader.has_changed(self, file, seen) and not (_is_transcript(file) and _key_of_session(file) in seen)

    def parser(self, store: Path) -> ParseFile:
        """Return the parser of one file; facts about workspaces are read once."""
        project_of, titles_of = cache(project_of_workspace), cache(self._listed_titles)

        def parse(file: SessionFile) -> Iterator[FoundSession]:
            project = project_of(Path(file.folder))
            if _is_transcript(file):
                return _parse_transcript(file, project)
            return _parse_session(file, project, titles_of)

        return parse

    def _listed_titles(self, folder: str) -> tuple[Record, tuple[Skipped, ...]]:
        """Return the entries of the list of sessions by id, or why there are none."""
        database = Path(folder) / "state.vscdb"
        if not database.exists():
            return {}, ()
        query = "SELECT value FROM ItemTable WHERE key = 'chat.ChatSessionStore.index'"
        try:
            with ClientDatabase(database, self._wait_s) as opened:
                rows = opened.rows(query)
        except StorageError as exc:
            return {}, (Skipped(f"the titles in {database}", exc.details),)
        return mapping(value_at(read_json(rows[0][0]), "entries")) if rows else {}, ()


def _is_transcript(file: SessionFile) -> bool:
    return _TRANSCRIPTS in file.path


def _key_of_session(transcript: SessionFile) -> str:
    is_global = os.path.basename(transcript.folder) == "globalStorage"
    sessions = "emptyWindowChatSessions" if is_global else "chatSessions"
    return os.path.join(transcript.folder, sessions, transcript.session_id)


def _parse_session(file: SessionFile, project: str, titles_of: TitlesOf) -> Iterator[FoundSession]:
    damage, skipped = Damage(), tuple[Skipped, ...]()
    is_log = file.path.endswith(".jsonl")
    given = replayed(json_lines(file.path, damage), damage) if is_log else json_document(file.path, damage)
    chat = VsCodeChat(file.session_id, given=given, project=project)
    if not string(given.get("customTitle")):
        titles, skipped = titles_of(file.folder)
        chat.listed_title = text_at(titles, file.session_id, "title")
    session = chat.session()
    yield file.found(session, damage.skipped() + chat.skipped() + skipped, drafts.moment(given.get("lastMessageDate")))


def _parse_transcript(file: SessionFile, project: str) -> Iterator[FoundSession]:
    damage, reading = Damage(), Events(file.session_id)
    for event in json_lines(file.path, damage):
        reading.read(event)
    main, *agents = (replace(each, project=each.project or project or None) for each in reading.sessions())
    return file.found_with_agents(main, agents, damage.skipped() + reading.skipped())
