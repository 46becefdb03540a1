"""What stands where in OpenCode's database: every statement we put to it."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

from sources.kit.jsonl import Record, mapping, string
from sources.kit.loose_json import read_json
from sources.kit.sqlite_store import ClientDatabase

_TABLES = {"session", "message", "part"}
_NEARBY_MS = 24 * 3600 * 1000
_NAMED = {"id": "id", "parentID": "parent_id", "directory": "directory", "title": "title", "version": "version"}


class Trace(NamedTuple):
    """What changes when a session does. `parts` is only known of sessions that may still be written."""

    whole: str
    parts: int | None = None

    @property
    def fingerprint(self) -> str:
        """What a sync remembers."""
        return self.whole if self.parts is None else f"{self.whole}/{self.parts}"

    def is_of(self, seen: str) -> bool:
        """Whether what a sync remembers is this state."""
        whole, _, parts = seen.partition("/")
        return whole == self.whole and self.parts in (None, int(parts or -1))


class Sessions:
    """The sessions of a database. Of its tables only three are read: others hold accounts."""

    def __init__(self, database: ClientDatabase) -> None:
        self._database = database
        self.is_known = database.tables() >= _TABLES
        """Otherwise it is none of OpenCode, or not of a version that this reader knows."""

    def ids(self) -> set[str]:
        """The ids of all sessions."""
        return {string(row[0]) for row in self._database.rows("SELECT id FROM session")} if self.is_known else set()

    def described(self) -> dict[str, Record]:
        """The records of all sessions, newest first, by the names they have in JSON. Named one by one."""
        rows = self._database.records("SELECT * FROM session ORDER BY time_updated DESC")
        return {string(row.get("id")): _described(row) for row in rows if string(row.get("id"))}

    def traces(self, described: dict[str, Record]) -> dict[str, Trace]:
        """The state of each session, told without reading what was said.

        A session's own time misses late changes, so those of its messages count too. Parts are rewritten in place
        while their message is; their times are only looked at near the last activity, for that reads every page.
        """
        messages = self._counted("SELECT session_id, count(*), ifnull(max(time_updated), 0) FROM message GROUP BY 1")
        counts = self._counted("SELECT session_id, count(*), 0 FROM part GROUP BY 1")
        newest = max((time for _, time in messages.values()), default=0)
        found = {}
        for session_id, record in described.items():
            count, time = messages.get(session_id, (0, 0))
            whole = _digest(repr(record), count, time, counts.get(session_id, (0, 0))[0])
            found[session_id] = Trace(whole, self._part_time(session_id) if time > newest - _NEARBY_MS else None)
        return found

    def messages(self, session_id: str) -> Iterator[tuple[Record | None, list[Record | None]]]:
        """The messages of a session in order, each with its parts; None for what is no JSON object."""
        statement = "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY time_created, id"
        for message_id, created, data in self._database.rows(statement, (session_id,)):
            statement = "SELECT id, time_created, data FROM part WHERE message_id = ? ORDER BY time_created, id"
            parts = self._database.rows(statement, (message_id,))
            yield _record(message_id, created, data), [_record(*part) for part in parts]

    def _part_time(self, session_id: str) -> int:
        statement = "SELECT ifnull(max(time_updated), 0) FROM part WHERE session_id = ?"
        return _whole_number(self._database.rows(statement, (session_id,))[0][0])

    def _counted(self, statement: str) -> dict[str, tuple[int, int]]:
        return {string(key): (count, _whole_number(time)) for key, count, time in self._database.rows(statement)}


def _described(row: Record) -> Record:
    known = {name: string(row.get(column)) for name, column in _NAMED.items()}
    times = {name: row.get(f"time_{name}") for name in ("created", "updated", "archived")}
    return {**known, "time": times, "revert": mapping(read_json(row.get("revert")))}


def _record(own_id: Any, created: Any, data: Any) -> Record | None:
    value = read_json(data)
    if not isinstance(value, dict):
        return None
    time = mapping(value.get("time"))
    return {**value, "id": string(own_id), "time": {"created": created, **time}}


def _whole_number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _digest(*parts: object) -> str:
    return blake2b(repr(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()
