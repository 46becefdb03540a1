"""Read Copilot Chat in VS Code: documents, operation logs, and the transcripts for hooks."""

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from registry.errors import StorageError
from sources.base import FoundSession, Paths, Skipped
from sources.clients import VSCODE
from sources.copilot.chat import VsCodeChat
from sources.copilot.cli import EventLog
from sources.kit.files import MAX_DOCUMENT_BYTES, File, read_small_text
from sources.kit.jsonl import Damage
from sources.kit.loose_json import Record, items, mapping, read_json, string, text_at, value_at
from sources.kit.reader import FileReader, ParseFile, SessionFile, file_records, parse_records, with_documents
from sources.kit.sqlite_store import ClientDatabase
from sources.kit.workspace_files import project_of_workspace, user_folders

_TRANSCRIPTS = os.path.join("GitHub.copilot-chat", "transcripts")


class CopilotVscode(FileReader):
    """Reads one `User` folder. From databases only the list of sessions is read, because they have credentials."""

    client = VSCODE
    patterns = (
        *(f"workspaceStorage/*/chatSessions/*{end}" for end in (".jsonl", ".json")),
        *(f"globalStorage/emptyWindowChatSessions/*{end}" for end in (".jsonl", ".json")),
        *(f"globalStorage/transferredChatSessions/*{end}" for end in (".jsonl", ".json")),  # to another window
        "workspaceStorage/*/GitHub.copilot-chat/transcripts/*.jsonl",
        "globalStorage/GitHub.copilot-chat/transcripts/*.jsonl",
    )
    backup_extras = ("workspaceStorage/*/workspace.json",)

    def roots(self, paths: Paths) -> Iterable[Path]:
        servers = (".vscode-server", ".vscode-server-insiders")
        remote = (paths.home / server / "data" / "User" for server in servers)
        usual = user_folders(paths, ("Code", "Code - Insiders", "VSCodium"))
        return paths.named("CTXR_VSCODE_DIR") or (*usual, *remote)

    def files(self, store: Path) -> Iterator[SessionFile | Skipped]:
        return with_documents(FileReader.files(self, store), only_newer=True)

    def session_file(self, file: File) -> SessionFile:
        """Return the file with the folder of its workspace; a log replaces the document with the same key.

        A transcript is used if the session itself is not on this machine, as with remote connections.
        """
        path, is_transcript = Path(file.path), _TRANSCRIPTS in file.path
        folder = path.parents[2 if is_transcript else 1]
        if not is_transcript:
            return SessionFile(file, str(path.with_suffix("")), path.stem, folder=str(folder))
        sessions = "emptyWindowChatSessions" if folder.name == "globalStorage" else "chatSessions"
        key = str(folder / sessions / path.stem)
        return SessionFile(file, key, path.stem, folder=str(folder), note_status="+transcript")

    def has_changed(self, file: SessionFile, seen: Mapping[str, str]) -> bool:
        """Return False for a transcript whose session was read, even if the client has deleted that since."""
        known = seen.get(file.key, file.note_status)
        return known.endswith(file.note_status) and known != file.fingerprint

    def parser(self, store: Path) -> ParseFile:
        """Return the parser of one file, which caches projects and titles of workspaces."""
        project_of, titles_of = cache(project_of_workspace), cache(_listed_titles)

        def parse(file: SessionFile) -> Iterator[FoundSession]:
            project = project_of(Path(file.folder))
            if file.note_status:
                yield from parse_records(file, EventLog(file.session_id, described={"cwd": project}))
                return
            damage, skipped = Damage(), tuple[Skipped, ...]()
            records = file_records(file.path, damage)
            given = replayed(records, damage) if file.path.endswith(".jsonl") else next(records, {})
            if not given:  # the log is damaged: read the document that the client converted
                given = mapping(read_json(read_small_text(f"{file.key}.json", MAX_DOCUMENT_BYTES)))
            chat = VsCodeChat(file.session_id, given=given, project=project)
            if not string(given.get("customTitle")):
                titles, skipped = titles_of(file.folder)
                chat.listed_title = text_at(titles, file.session_id, "title")
            yield file.found(chat.session(), damage.skipped() + chat.skipped() + skipped)

        return parse


def _listed_titles(folder: str) -> tuple[Record, tuple[Skipped, ...]]:
    """Return the entries of the list of sessions by id, or the reason why they cannot be read."""
    database = Path(folder) / "state.vscdb"
    if not database.exists():
        return {}, ()
    query = "SELECT value FROM ItemTable WHERE key = 'chat.ChatSessionStore.index'"
    try:
        with ClientDatabase(database) as opened:
            rows = opened.rows(query)
    except StorageError as exc:
        return {}, (Skipped(f"the titles in {database}", exc.details),)
    return mapping(value_at(read_json(rows[0][0]), "entries")) if rows else {}, ()


# Operation logs: an object stored as the operations that created it


def replayed(lines: Iterable[Record], damage: Damage) -> Record:
    """Replay the operations and return the object; empty if it was never set as a whole.

    `{kind: 0, v}` sets the whole object; 1 sets and 3 deletes the value at the path `k`; 2 appends `v` to the list
    there, after truncating it to the length `i` if given.
    """
    whole: Record | None = None
    for number, line in enumerate(lines, 1):
        if line.get("kind") == 0:
            whole = mapping(line.get("v"))
        elif whole is None:
            damage.note(number, "a change before the object that it changes")
        else:
            try:
                _change(whole, line)
            except (LookupError, TypeError, ValueError, AttributeError):
                damage.note(number, "a change to a path that does not exist")
    return whole or {}


def _change(whole: Record, line: Record) -> None:
    """Apply one operation. Raises one of several errors if its path does not exist."""
    *path, key = items(line.get("k"))
    kind = line.get("kind")
    holder: Any = whole
    for step in path:
        holder = holder[step]
    if isinstance(holder, dict) and not isinstance(key, str):
        raise TypeError("not a field name")
    if kind == 1 and isinstance(holder, list) and key == len(holder):
        holder.append(line.get("v"))
    elif kind == 1:
        holder[key] = line.get("v")
    elif kind == 2:
        existing = holder.setdefault(key, []) if isinstance(holder, dict) else holder[key]
        if isinstance(length := line.get("i"), int):
            del existing[length:]
        existing.extend(items(line.get("v")))
    elif kind == 3 and isinstance(holder, dict):
        holder.pop(key, None)
    elif kind == 3:
        holder[key] = None
    else:
        raise ValueError("unknown kind of change")
