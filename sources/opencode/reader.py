"""OpenCode: its sessions from its database, and from the files that it kept before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path

from registry.domain import Session
from sources.base import FoundSession, Places, Skipped
from sources.kit import drafts, sqlite_files
from sources.kit.files import read_changed
from sources.kit.jsonl import Record
from sources.kit.sqlite_store import WAIT_S, ClientDatabase, DamagedDatabase
from sources.opencode import files as kept_files
from sources.opencode.client import OPENCODE
from sources.opencode.database import Sessions, Trace
from sources.opencode.files import Kept
from sources.opencode.messages import Dialogue

_SETTING = "CTXR_OPENCODE_DIR"
_DATABASES = ("opencode.db", "opencode-*.db")
_FOLDERS = ("storage", "project")
_UNKNOWN = "no database of a version that this reader knows"


@dataclass(slots=True)
class OpenCode:
    """Reads the databases `opencode*.db`, `storage/` and `project/`, each a store. Secrets lie beside them."""

    name: str = OPENCODE.source
    wait_s: float = WAIT_S

    def find(self, places: Places) -> Iterator[Path]:
        """The stores of both generations: after its migration the client leaves the older one as it was."""
        data = places.folder("XDG_DATA_HOME", ".local", "share")
        named = places.environment.get(_SETTING)
        for root in dict.fromkeys((Path(named).expanduser(),) if named else (data / "opencode",)):
            yield from _databases(root)
            yield from (root / folder for folder in _FOLDERS if (root / folder).is_dir())

    def stamp(self, store: Path) -> str:
        """The same as long as nothing was written to a database. Files have none: see `opencode_files.State`."""
        return sqlite_files.stamp(store) if store.suffix == ".db" else ""

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """The changed sessions, newest first, one at a time in memory. One without a conversation is found with no
        messages, so that it is not read again, and says so in its `skipped`. Raises StorageError."""
        if store.suffix == ".db":
            with ClientDatabase(store, self.wait_s) as database:
                yield from _from_database(Sessions(database), store, seen)
        else:
            yield from self._from_files(store, seen)

    def _from_files(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        migrated = cache(lambda: self._migrated(store.parent))
        yield from read_changed(
            kept_files.kept_sessions(store),
            lambda kept: kept_files.has_changed(kept, seen.get(kept.session_id, "")),
            lambda kept: [_passed_over(kept) if kept.session_id in migrated() else _from_file(kept)],
        )

    def _migrated(self, root: Path) -> set[str]:
        """The sessions that a database holds, which is where they go on."""
        found = set()
        for path in _databases(root):
            with suppress(DamagedDatabase), ClientDatabase(path, self.wait_s) as database:  # its own store reports it
                found |= Sessions(database).ids()
        return found


def _databases(root: Path) -> Iterator[Path]:
    yield from (path for path in chain(*(sorted(root.glob(name)) for name in _DATABASES)) if path.is_file())


# The database


def _from_database(sessions: Sessions, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
    if not sessions.is_known:
        yield Skipped(str(store), _UNKNOWN)
        return
    described = sessions.described()
    for session_id, trace in sessions.traces(described).items():
        if not trace.is_of(seen.get(session_id, "")):
            try:
                yield _from_rows(sessions, described[session_id], trace)
            except DamagedDatabase as exc:
                yield Skipped(f"session {session_id}", exc.details)


def _from_rows(sessions: Sessions, described: Record, trace: Trace) -> FoundSession:
    dialogue, damage = Dialogue(described), Counter[str]()
    for message, parts in sessions.messages(str(described["id"])):
        whole = [part for part in parts if part is not None]
        damage["not a JSON object"] += len(parts) - len(whole) + (message is None)
        if message is not None:
            dialogue.read(message, whole)
    return _found(dialogue, trace.fingerprint, damage)


# The files


def _passed_over(kept: Kept) -> FoundSession:
    """A session that has moved on: noted, so that it is not looked at again."""
    return FoundSession(kept.session_id, kept_files.state_of(kept).whole, Session(kept.session_id, ()))


def _from_file(kept: Kept) -> FoundSession:
    state, damage = kept_files.state_of(kept), Counter[str]()
    described = kept_files.record_of(kept)
    if described is None:
        return FoundSession(
            kept.session_id, state.whole, Session(kept.session_id, ()), (Skipped(kept.file.path, "not a JSON object"),)
        )
    dialogue, messages = Dialogue(described), kept_files.messages_of(kept, damage)
    for message in messages:
        dialogue.read(message, kept_files.parts_of(kept, message, damage))
    found = _found(dialogue, state.fingerprint(messages), damage)
    return replace(found, session=drafts.dated(found.session, kept.file.modified_at))


def _found(dialogue: Dialogue, fingerprint: str, damage: Counter[str]) -> FoundSession:
    session = dialogue.session()
    what = f"of session {session.session_id}"
    skipped = [Skipped(f"{count} x message or part {what}", why) for why, count in damage.items() if count]
    if not session.messages:
        skipped.append(Skipped(f"session {session.session_id}", "no conversation in it"))
    return FoundSession(session.session_id, fingerprint, session, (*skipped, *dialogue.skipped()))
