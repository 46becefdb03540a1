"""Zed: the threads of its agent panel."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from registry.domain import Session, preview_of
from sources.base import FoundSession, Places, Skipped
from sources.kit import drafts, sqlite_files
from sources.kit.files import LARGEST_DOCUMENT
from sources.kit.jsonl import Record, items, mapping, string
from sources.kit.loose_json import read_json
from sources.kit.sqlite_store import WAIT_S, ClientDatabase, DamagedDatabase
from sources.kit.zst import DAMAGED, unpacked
from sources.zed.client import ZED
from sources.zed.thread import Thread

TITLE_WIDTH = 80
_DATABASE = Path("threads", "threads.db")
_WANTED = frozenset(("id", "summary", "updated_at", "data_type", "data"))
_BESIDE = ("created_at", "parent_id", "folder_paths", "folder_paths_order")
_UNKNOWN = "no database of a version that this reader knows"


@dataclass(slots=True)
class Zed:
    """Reads the database of threads."""

    name: str = ZED.source
    wait_s: float = WAIT_S

    def find(self, places: Places) -> Iterator[Path]:
        """The database of each way to install it."""
        named = places.environment.get("CTXR_ZED_DIR")
        for root in [Path(named).expanduser()] if named else _roots(places):
            if (root / _DATABASE).is_file():
                yield root / _DATABASE

    def stamp(self, store: Path) -> str:
        """The same as long as nothing was written to the database."""
        return sqlite_files.stamp(store)

    def watched(self, store: Path) -> Iterable[Path]:
        """The database's folder."""
        return [store.parent]

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """The changed threads, newest first, one at a time in memory. Raises StorageError."""
        with ClientDatabase(store, self.wait_s) as database:
            columns = {name for (_, name, *_) in database.rows("PRAGMA table_info(threads)")}
            if not columns >= _WANTED:
                yield Skipped(str(store), _UNKNOWN)
                return
            beside = ", ".join(name if name in columns else f"NULL AS {name}" for name in _BESIDE)
            listed = database.records(
                f"SELECT id, summary, updated_at, {beside} FROM threads ORDER BY updated_at DESC"  # noqa: S608 - names
            )
            for row in listed:
                if seen.get(str(row["id"])) != str(row["updated_at"]):
                    try:
                        yield _found(database, row)
                    except DamagedDatabase as exc:
                        yield Skipped(f"thread {row['id']}", exc.details)


def _roots(places: Places) -> Iterator[Path]:
    if sys.platform == "darwin":
        yield places.home / "Library" / "Application Support" / "Zed"
    elif sys.platform == "win32":
        yield places.folder("LOCALAPPDATA", "AppData", "Local") / "Zed"
    else:
        yield places.folder("XDG_DATA_HOME", ".local", "share") / "zed"
        yield places.home.joinpath(".var", "app", "dev.zed.Zed", "data", "zed")


def _found(database: ClientDatabase, row: dict[str, Any]) -> FoundSession:
    key, state = str(row["id"]), str(row["updated_at"])
    kept = database.rows("SELECT data_type, data FROM threads WHERE id = ?", (row["id"],))
    described, why = _described(*kept[0]) if kept else ({}, "gone while it was read")
    folders = _folders(row)
    thread = Thread(described, next(iter(folders), ""))
    for message in items(described.get("messages")):
        thread.read(message)
    title = preview_of(string(row["summary"]) or string(described.get("title")), 4 * TITLE_WIDTH)
    parent = string(row["parent_id"]) or string(mapping(described.get("subagent_context")).get("parent_thread_id"))
    meta = {"title_from": "summary" if title else None, "relation": "sub-agent" if parent else None}
    session = Session(
        session_id=key,
        messages=drafts.messages_of(thread.found),
        title=title or None,
        project=drafts.project_of(folders),
        parent=parent or None,
        meta={name: value for name, value in meta.items() if value},
    )
    session = drafts.dated(session, drafts.moment(row["created_at"]), drafts.moment(state))
    skipped = tuple(
        Skipped(f"{count} x {what} of thread {key}", "unknown to this reader") for what, count in thread.unknown.items()
    )
    if not session.messages:
        skipped += (Skipped(f"thread {key}", why or "no conversation in it"),)
    return FoundSession(key, state, session, skipped)


def _described(kind: object, content: object) -> tuple[Record, str]:
    """The thread's JSON, and what is wrong with it."""
    raw = content.encode() if isinstance(content, str) else content
    if not isinstance(raw, bytes) or kind not in ("json", "zstd"):
        return {}, f"data of a kind that is unknown to this reader: {kind}"
    try:
        value = read_json(unpacked(raw, LARGEST_DOCUMENT) if kind == "zstd" else raw)
    except OSError as exc:
        return {}, exc.strerror or "cannot be decompressed"
    except DAMAGED as exc:
        return {}, f"cannot be decompressed: {exc}"
    return (value, "") if isinstance(value, dict) else ({}, "not a JSON object")


def _folders(row: Mapping[str, Any]) -> list[str]:
    """A project's folders, in the order in which its user opened them."""
    paths = string(row["folder_paths"]).splitlines()
    order = [int(each) for each in string(row["folder_paths_order"]).split(",") if each.isdecimal()]
    if sorted(order) != list(range(len(paths))):
        return paths
    return [path for _, path in sorted(zip(order, paths, strict=True))]
