"""Read the sessions of OpenCode from its database, and from the files that it kept before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from sources.base import FoundSession, Places, Skipped
from sources.kit.files import digest
from sources.kit.loose_json import Record, mapping, read_json, string
from sources.kit.reader import DatabaseReader
from sources.kit.sqlite_store import ClientDatabase, DamagedDatabase
from sources.opencode.client import OPENCODE
from sources.opencode.files import OpenCodeFiles, found_dialogue
from sources.opencode.messages import OpenCodeDialogue

# the session's columns by the names that they have in JSON
_DESCRIBED = {"id": "id", "parentID": "parent_id", "directory": "directory", "title": "title"}
_DATED = frozenset(("id", "session_id", "time_created", "time_updated", "data"))


@dataclass(slots=True)
class OpenCode(DatabaseReader):
    """Reads the databases `opencode*.db`, `storage/` and `project/`, each a store. Secrets lie beside them.

    Of the tables in a database only three are read: others hold accounts.
    """

    name: str = OPENCODE.source
    needed: ClassVar[dict[str, frozenset[str]]] = {
        "session": frozenset(("id", "time_updated")),
        "message": _DATED,
        "part": _DATED | {"message_id"},
    }

    def find(self, places: Places) -> Iterator[Path]:
        """Yield the stores of both generations: after its migration the client leaves the older one as it was."""
        usual = [places.folder("XDG_DATA_HOME", ".local", "share") / "opencode"]
        for root in places.named("CTXR_OPENCODE_DIR") or usual:
            yield from _databases(root)
            yield from (root / folder for folder in ("storage", "project") if (root / folder).is_dir())

    def stamp(self, store: Path) -> str:
        """Return the state of a database; files have none, see `OpenCodeFiles`."""
        return DatabaseReader.stamp(self, store) if store.suffix == ".db" else ""

    def watched(self, store: Path) -> list[Path]:
        return [store.parent if store.suffix == ".db" else store]

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        if store.suffix == ".db":
            return DatabaseReader.sessions(self, store, seen)
        return OpenCodeFiles(cache(lambda: self._in_databases(store.parent))).sessions(store, seen)

    def _in_databases(self, root: Path) -> set[str]:
        found = set()
        for path in _databases(root):
            with suppress(DamagedDatabase), ClientDatabase(path, self.wait_s) as database:  # its own store reports it
                if all(columns <= database.columns(table) for table, columns in self.needed.items()):
                    found |= {string(session_id) for (session_id,) in database.rows("SELECT id FROM session")}
        return found

    def kept(self) -> Iterable[str]:
        return ("session/**/*", "message/**/*", "part/**/*", "*/storage/**/*")

    def rows(self, database: ClientDatabase, seen: Mapping[str, str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield the sessions with a digest of their state, without reading what was said.

        A session's own time misses late changes, so those of its messages count too. Parts are rewritten in place
        while their message is written; their times are only looked at within a day of the last activity, since that
        reads every page.
        """
        described = [_described(row) for row in database.records("SELECT * FROM session ORDER BY time_updated DESC")]
        messages = _counts(
            database, "SELECT session_id, count(*), ifnull(max(time_updated), 0) FROM message GROUP BY 1"
        )
        parts = _counts(database, "SELECT session_id, count(*), 0 FROM part GROUP BY 1")
        newest = max((time for _, time in messages.values()), default=0)
        for record in filter(lambda record: record["id"], described):
            key = record["id"]
            count, time = messages.get(key, (0, 0))
            whole = digest(record, count, time, parts.get(key, (0, 0))[0])
            if time > newest - 24 * 3600 * 1000:
                latest = "SELECT ifnull(max(time_updated), 0) FROM part WHERE session_id = ?"
                yield key, f"{whole}/{_whole_number(database.rows(latest, (key,))[0][0])}", record
            else:
                before = seen.get(key, "")
                yield key, before if before.partition("/")[0] == whole else whole, record

    def parse(self, database: ClientDatabase, key: str, fingerprint: str, row: dict[str, Any]) -> FoundSession:
        """Read one session, one message at a time."""
        dialogue, damage = OpenCodeDialogue(described=row), Counter[str]()
        messages = "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY time_created, id"
        parts_of = "SELECT id, time_created, data FROM part WHERE message_id = ? ORDER BY time_created, id"
        for stored in database.rows(messages, (key,)):
            message, parts = _record(*stored), [_record(*part) for part in database.rows(parts_of, (stored[0],))]
            whole = [part for part in parts if part is not None]
            damage["not a JSON object"] += len(parts) - len(whole) + (message is None)
            if message is not None:
                dialogue.read(message, whole)
        return found_dialogue(dialogue, fingerprint, damage)


def _databases(root: Path) -> Iterator[Path]:
    found = (path for name in ("opencode.db", "opencode-*.db") for path in sorted(root.glob(name)))
    return (path for path in found if path.is_file())


def _described(row: Record) -> Record:
    known = {name: string(row.get(column)) for name, column in _DESCRIBED.items()}
    times = {name: row.get(f"time_{name}") for name in ("created", "updated")}
    return {**known, "time": times, "revert": mapping(read_json(row.get("revert")))}


def _record(own_id: Any, created: Any, data: Any) -> Record | None:
    """Return a message or part with its id and time; None if its data is no JSON object."""
    value = read_json(data)
    if not isinstance(value, dict):
        return None
    return {**value, "id": string(own_id), "time": {"created": created, **mapping(value.get("time"))}}


def _counts(database: ClientDatabase, statement: str) -> dict[str, tuple[int, int]]:
    return {string(key): (count, _whole_number(time)) for key, count, time in database.rows(statement)}


def _whole_number(value: Any) -> int:
    return value if isinstance(value, int) else 0
