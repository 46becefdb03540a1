"""Goose: its sessions from its database, and from the files that it kept before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from registry.domain import Role, Session, preview_of
from sources.base import FoundSession, Places, Skipped
from sources.goose.client import GOOSE
from sources.goose.dialogue import Dialogue
from sources.kit import drafts, sqlite_files
from sources.kit.files import File, look_at, read_changed, store_entries
from sources.kit.jsonl import Damage, Record, mapping, read_lines, records_of, string
from sources.kit.loose_json import read_json
from sources.kit.sqlite_store import WAIT_S, ClientDatabase, DamagedDatabase

TITLE_WIDTH = 80
_DATABASE = "sessions.db"
_SESSION = frozenset(("id", "working_dir"))
_MESSAGE = frozenset(("id", "session_id", "role", "content_json", "created_timestamp"))
_UNKNOWN = "no database of a version that this reader knows"
_TRACES = "SELECT session_id, count(*), max(id) FROM messages GROUP BY session_id ORDER BY max(id) DESC"


@dataclass(frozen=True, slots=True)
class _Kept:
    file: File


@dataclass(slots=True)
class Goose:
    """Reads `sessions.db`, and beside it the files of older versions, which it takes in once and leaves there."""

    name: str = GOOSE.source
    wait_s: float = WAIT_S

    def find(self, places: Places) -> Iterator[Path]:
        """The database; the folder of files where there is none yet."""
        for folder in _folders(places):
            if (folder / _DATABASE).is_file():
                yield folder / _DATABASE
            elif any(folder.glob("*.jsonl")):
                yield folder

    def stamp(self, store: Path) -> str:
        """The same as long as nothing was written to the database; files have none."""
        return sqlite_files.stamp(store) if store.suffix == ".db" else ""

    def watched(self, store: Path) -> Iterable[Path]:
        """The folder of sessions."""
        return [store.parent if store.suffix == ".db" else store]

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """The changed sessions, newest first, one at a time in memory. Raises StorageError."""
        if store.suffix == ".db":
            with ClientDatabase(store, self.wait_s) as database:
                yield from _from_database(database, store, seen)
            return
        yield from read_changed(
            _files(store),
            lambda kept: seen.get(Path(kept.file.path).stem) != kept.file.fingerprint,
            lambda kept: [_from_file(kept.file)],
        )


def _folders(places: Places) -> Iterator[Path]:
    if named := places.environment.get("CTXR_GOOSE_DIR"):
        yield Path(named).expanduser()
    elif root := places.environment.get("GOOSE_PATH_ROOT"):
        yield Path(root).expanduser() / "data" / "sessions"
    else:
        yield places.folder("XDG_DATA_HOME", ".local", "share") / "goose" / "sessions"
        yield places.folder("APPDATA", "AppData", "Roaming") / "Block" / "goose" / "data" / "sessions"


# The database


def _from_database(database: ClientDatabase, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
    known = [_columns(database, table) >= wanted for table, wanted in (("sessions", _SESSION), ("messages", _MESSAGE))]
    if not all(known):
        yield Skipped(str(store), _UNKNOWN)
        return
    described = {str(row["id"]): row for row in database.records("SELECT * FROM sessions")}
    for session_id, count, last in database.rows(_TRACES):
        row = described.get(str(session_id), {"id": session_id})
        state = f"{row.get('updated_at')}|{count}|{last}"
        if seen.get(str(session_id)) != state:
            try:
                yield _from_rows(database, row, state)
            except DamagedDatabase as exc:
                yield Skipped(f"session {session_id}", exc.details)


def _columns(database: ClientDatabase, table: str) -> set[str]:
    return {str(name) for (_, name, *_) in database.rows(f"PRAGMA table_info({table})")}


def _from_rows(database: ClientDatabase, row: Mapping[str, Any], state: str) -> FoundSession:
    key, damaged = str(row["id"]), 0
    columns = _columns(database, "messages")
    named, meta = (name if name in columns else "NULL" for name in ("message_id", "metadata_json"))
    found = database.rows(
        f"SELECT {named}, role, content_json, created_timestamp, {meta} "  # noqa: S608 - names of columns
        "FROM messages WHERE session_id = ? ORDER BY id",
        (row["id"],),
    )
    model = string(mapping(read_json(row.get("model_config_json"))).get("model_name"))
    talk = Dialogue(string(row.get("working_dir")), model)
    for native_id, role, content, created, metadata in found:
        parts = read_json(content)
        damaged += not isinstance(parts, list)
        talk.read({"role": role, "content": parts, "created": created, "metadata": read_json(metadata)}, native_id)
    title = string(row.get("name")) or string(row.get("description"))
    session = _session(talk, key, title, string(row.get("parent_session_id")), drafts.moment(row.get("created_at")))
    skipped = (Skipped(f"{damaged} x message of session {key}", "not a list of parts"),) if damaged else ()
    return _found(key, state, session, talk, skipped)


# The files


def _files(folder: Path) -> Iterator[_Kept | Skipped]:
    for entry in store_entries(folder):
        if entry.name.endswith(".jsonl"):
            file = look_at(entry)
            yield _Kept(file) if isinstance(file, File) else file


def _from_file(file: File) -> FoundSession:
    """The first line describes the session, each further one is a message."""
    damage, key, described = Damage(), Path(file.path).stem, Record()
    talk = Dialogue()
    with open(file.path, "rb") as lines:
        for record in records_of(read_lines(lines), damage):
            if "role" in record:
                talk.read(record, string(record.get("id")))
            else:
                described = described or record
                talk.folder = string(described.get("working_dir"))
    session = _session(talk, key, string(described.get("description")), "", None)
    return _found(key, file.fingerprint, drafts.dated(session, file.modified_at), talk, damage.skipped())


# Both


def _session(talk: Dialogue, key: str, named: str, parent: str, began: Any) -> Session:
    asked = next((draft.parts[0] for draft in talk.found if draft.role is Role.USER and draft.parts), "")
    title = preview_of(named.strip() or asked, TITLE_WIDTH)
    title_from = ("name" if named.strip() else "first words") if title else None
    meta = {"title_from": title_from, "relation": "sub-agent" if parent else None}
    return Session(
        session_id=key,
        messages=drafts.messages_of(talk.found, began),
        title=title or None,
        project=drafts.project_of([talk.folder]),
        parent=parent or None,
        meta={name: value for name, value in meta.items() if value},
    )


def _found(key: str, state: str, session: Session, talk: Dialogue, skipped: tuple[Skipped, ...]) -> FoundSession:
    unknown = tuple(
        Skipped(f"{count} x {what} of session {key}", "unknown to this reader") for what, count in talk.unknown.items()
    )
    empty = () if session.messages else (Skipped(f"session {key}", "no conversation in it"),)
    return FoundSession(key, state, session, (*skipped, *unknown, *empty))
