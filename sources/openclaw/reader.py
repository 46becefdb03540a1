"""Read the sessions of OpenClaw: entries in Pi's format, as rows of each agent's database, before 2026.7.2 in files."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from sources.base import Paths, Skipped
from sources.clients import OPENCLAW
from sources.kit.files import system_reason
from sources.kit.jsonl import MAX_LINE_BYTES
from sources.kit.loose_json import mapping, read_json
from sources.kit.reader import DatabaseReader
from sources.kit.sqlite_store import ClientDatabase
from sources.kit.zst import DECOMPRESSION_ERRORS, decompress
from sources.pi.reader import Pi, Tree


class OpenClaw(DatabaseReader):
    """Reads `agents/<agent>/agent/openclaw-agent.sqlite`, only one table: others have keys.

    Versions since 2026.9.6 compress long entries.
    """

    name = OPENCLAW.source
    needed: ClassVar = {"transcript_events": frozenset(("session_id", "seq", "event_json", "created_at"))}

    def find(self, paths: Paths) -> Iterator[Path]:
        yield from sorted(OPENCLAW.history_in(paths).glob("agents/*/agent/openclaw-agent.sqlite"))

    def rows(self, database: ClientDatabase, seen: Mapping[str, str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
        statement = "SELECT session_id, count(*), max(created_at) FROM transcript_events GROUP BY 1 ORDER BY 3 DESC"
        for session_id, count, latest in database.rows(statement):
            yield str(session_id), f"{count}|{latest}", {}

    def parse(self, database: ClientDatabase, key: str, row: dict[str, Any]) -> Tree:
        tree = Tree(key)
        compressed = "event_zstd" if "event_zstd" in database.columns("transcript_events") else "NULL"
        for event, zstd in database.rows(
            f"SELECT event_json, {compressed} FROM transcript_events WHERE session_id = ? ORDER BY seq",  # noqa: S608
            (key,),
        ):
            try:
                tree.read(mapping(read_json(decompress(zstd, MAX_LINE_BYTES) if zstd else event)))
            except OSError as exc:
                tree.skips[Skipped("entry", system_reason(exc))] += 1
            except DECOMPRESSION_ERRORS:
                tree.skips[Skipped("entry", "cannot be decompressed")] += 1
        return tree


class OpenClawFiles(Pi):
    """Reads `agents/<agent>/sessions/`, which a newer version moves away when it has imported them."""

    client = OPENCLAW
    is_rare = True
    patterns = ("agents/*/sessions/*.jsonl",)

    def roots(self, paths: Paths) -> Iterable[Path]:
        """Return the folders of all names that the client had."""
        usual = OPENCLAW.history_in(paths)
        return [usual, *(usual.with_name(name) for name in (".clawdbot", ".moltbot") if usual.name == ".openclaw")]
