"""Read the sessions of OpenCode and Kilo Code from their database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from sources.base import FoundSession, Places, Skipped
from sources.clients import OPENCODE
from sources.kit.files import digest
from sources.kit.loose_json import Record, mapping, read_json, string
from sources.kit.reader import DatabaseReader, found_session
from sources.kit.sqlite_store import ClientDatabase
from sources.opencode.messages import OpenCodeDialogue

# the session's columns by the names that they have in JSON
_DESCRIBED = {"id": "id", "parentID": "parent_id", "directory": "directory", "title": "title"}
_DATED = frozenset(("id", "session_id", "time_created", "time_updated", "data"))


class OpenCode(DatabaseReader):
    """Reads the databases of OpenCode, or of its fork that `name` is: each is a store. Secrets lie beside them.

    Of the tables in a database only three are read: others hold accounts. The client has taken the files of its older
    versions into its database.
    """

    needed: ClassVar = {
        "session": frozenset(("id", "time_updated")),
        "message": _DATED,
        "part": _DATED | {"message_id"},
    }

    def __init__(self, name: str = OPENCODE.source) -> None:
        self.name = name

    def find(self, places: Places) -> Iterator[Path]:
        usual = [places.folder("XDG_DATA_HOME", ".local", "share") / self.name]
        for root in places.named(f"CTXR_{self.name.upper()}_DIR") or usual:
            files = (file for name in (f"{self.name}.db", f"{self.name}-*.db") for file in sorted(root.glob(name)))
            yield from filter(Path.is_file, files)

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
        name = f"session {dialogue.session_id}"
        damaged = (Skipped(f"{count} x message or part of {name}", why) for why, count in damage.items() if count)
        return found_session(key, fingerprint, dialogue.session(), (*damaged, *dialogue.skipped()), name)


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
