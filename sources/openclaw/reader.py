"""Read the sessions of OpenClaw: entries in Pi's format, as rows of each agent's database."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from sources.base import FoundSession, Paths
from sources.clients import OPENCLAW
from sources.kit.loose_json import mapping, read_json
from sources.kit.reader import DatabaseReader, found_session
from sources.kit.sqlite_store import ClientDatabase
from sources.pi.reader import Tree


class OpenClaw(DatabaseReader):
    """Reads `agents/<agent>/agent/openclaw-agent.sqlite`, only one table: others have keys."""

    name = OPENCLAW.source
    needed: ClassVar = {"transcript_events": frozenset(("session_id", "seq", "event_json", "created_at"))}

    def find(self, paths: Paths) -> Iterator[Path]:
        yield from sorted(OPENCLAW.history_in(paths).glob("agents/*/agent/openclaw-agent.sqlite"))

    def rows(self, database: ClientDatabase, seen: Mapping[str, str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
        statement = "SELECT session_id, count(*), max(created_at) FROM transcript_events GROUP BY 1 ORDER BY 3 DESC"
        for session_id, count, latest in database.rows(statement):
            yield str(session_id), f"{count}|{latest}", {}

    def parse(self, database: ClientDatabase, key: str, fingerprint: str, row: dict[str, Any]) -> FoundSession:
        tree = Tree(key)
        for (event,) in database.rows(
            "SELECT event_json FROM transcript_events WHERE session_id = ? ORDER BY seq", (key,)
        ):
            tree.read(mapping(read_json(event)))
        name = f"session {key}"
        return found_session(key, fingerprint, tree.session(), tree.skipped(f" of {name}"), name)
