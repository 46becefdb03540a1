"""Conversations copied to another workspace inside Cursor's own databases: each with new ids, beside the old one.

A copy's rows hold keys of Cursor's, so they go from row to row of the database, and the journal has only their SHA-256.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from registry.errors import StorageError
from sources.cursor.conversations import inline_bubbles
from sources.cursor.journal import Json, Removal, Step, digest_of, has_table, reading, row_of, value_of
from sources.cursor.moving import HEADERS, LISTED, PLACE, Target, changed, heads_of, into, json_text, record_of
from sources.cursor.workspaces import DATABASE, workspace_folders

FAMILIES = (
    *("composerData", "bubbleId", "messageRequestContext", "checkpointId", "codeBlockDiff"),
    *("codeBlockPartialInlineDiffFates", "composerVirtualRowHeights"),
)
"""What Cursor keeps of a conversation by its id: rows called `family:id`, or `family:id:…`."""
_STORE, _TABLE = "cursorDiskKV", "composerHeaders"


@dataclass(frozen=True, slots=True)
class Twin:
    """What is other in the copies: the ids of conversations and bubbles, new by old, and the workspace."""

    names: Mapping[str, str]
    target: Target


@dataclass(frozen=True, slots=True)
class Copy:
    """One row that comes to stand beside itself under a new key."""

    database: str
    table: str
    key: str
    to: str
    sha256: str
    twin: Twin = field(repr=False)

    def do(self, connection: sqlite3.Connection) -> None:
        """Write it; StorageError where the row is another one by now, or the new key is taken."""
        row = row_of(connection, self.table, self.key)
        new = _renamed_row(row, self.to, self.twin) if row else {}
        if digest_of(new) != self.sha256 or row_of(connection, self.table, self.to):
            raise StorageError("Cursor has written meanwhile; nothing was changed.", f"{self.database}: {self.key}")
        marks = ", ".join("?" * len(new))
        names = ", ".join(f'"{name}"' for name in new)
        connection.execute(f"INSERT INTO {self.table} ({names}) VALUES ({marks})", tuple(new.values()))  # noqa: S608

    def stands(self, connection: sqlite3.Connection) -> bool:
        """Whether it is there as it was written."""
        return digest_of(row_of(connection, self.table, self.to)) == self.sha256

    def undone(self) -> Removal:
        """The way back."""
        return Removal(self.database, self.table, self.to, self.sha256)

    def noted(self) -> Json:
        """What the journal tells of it."""
        return self.undone().noted()


def plan_copy(user_folder: Path, composer_ids: Sequence[str], target: Target) -> list[Step]:
    """What has to be written so that a copy of each of these stands in the target's list. Nothing is written yet."""
    database, ids = user_folder / "globalStorage" / DATABASE, frozenset(composer_ids)
    heads = _heads_in(user_folder, ids)
    twin = Twin({name: str(uuid4()) for name in (*sorted(ids), *_bubbles(database, ids, heads))}, target)
    copies = [renamed(head, twin.names) for head in heads]
    return [*into(target.folder / DATABASE, copies), *_in_global(database, ids, twin)]


def _heads_in(user_folder: Path, ids: frozenset[str]) -> list[Json]:
    """What the workspaces' own lists hold of them, each once."""
    held: dict[str, Json] = {}
    for folder in workspace_folders(user_folder):
        with reading(folder / DATABASE) as connection:
            for head in heads_of(record_of(value_of(connection, "ItemTable", LISTED, "value"))):
                if head.get("composerId") in ids:
                    held.setdefault(str(head["composerId"]), head)
    return list(held.values())


def _bubbles(database: Path, ids: frozenset[str], heads: Sequence[Json]) -> list[str]:
    """The ids of their bubbles: those that have rows, and those inside a record."""
    found = [
        str(bubble["bubbleId"]) for head in heads for bubble in inline_bubbles(head).values() if "bubbleId" in bubble
    ]
    with reading(database) as connection:
        for composer_id in sorted(ids):
            keys = _keys(connection, "bubbleId", composer_id)
            found += [key.split(":", 2)[2] for key in keys if key.count(":") > 1]
            record = record_of(value_of(connection, _STORE, f"composerData:{composer_id}", "value"))
            found += _inside(record)
    return list(dict.fromkeys(found))


def _inside(record: Json) -> list[str]:
    return [str(bubble["bubbleId"]) for bubble in inline_bubbles(record).values() if bubble.get("bubbleId")]


def _in_global(database: Path, ids: frozenset[str], twin: Twin) -> Iterator[Step]:
    with reading(database) as connection:
        for composer_id in sorted(ids):
            for family in FAMILIES:
                for key in _keys(connection, family, composer_id):
                    yield _copy(connection, database, _STORE, key, twin)
            if row_of(connection, _TABLE, composer_id):
                yield _copy(connection, database, _TABLE, composer_id, twin)
        yield from changed(connection, database, "ItemTable", HEADERS, _with_copies(ids, twin))


def _with_copies(ids: frozenset[str], twin: Twin) -> Callable[[Json], Json]:
    place = {PLACE: twin.target.identifier}

    def listed(given: Json) -> Json:
        copies = [renamed(head, twin.names) | place for head in heads_of(given) if head.get("composerId") in ids]
        return {**given, "allComposers": [*heads_of(given), *copies]}

    return listed


def _copy(connection: sqlite3.Connection, database: Path, table: str, key: str, twin: Twin) -> Copy:
    to = ":".join(twin.names.get(part, part) for part in key.split(":"))
    row = _renamed_row(row_of(connection, table, key), to, twin)
    return Copy(str(database), table, key, to, digest_of(row), twin)


def _keys(connection: sqlite3.Connection, family: str, composer_id: str) -> list[str]:
    """The keys `family:id` and `family:id:…`; `;` is the character after the colon."""
    begin = f"{family}:{composer_id}"
    query = f"SELECT key FROM {_STORE} WHERE key = ? OR (key >= ? AND key < ?) ORDER BY rowid"  # noqa: S608, ours
    if not has_table(connection, _STORE):
        return []
    return [key for (key,) in connection.execute(query, (begin, f"{begin}:", f"{begin};"))]


def _renamed_row(row: Json, to: str, twin: Twin) -> Json:
    """The row as the copy has it, its value as text or as bytes, as it was."""
    table_key = "composerId" if "composerId" in row else "key"
    new = {**row, table_key: to, "value": _renamed_value(row.get("value"), table_key, to, twin)}
    return new | ({"workspaceId": twin.target.folder.name} if "workspaceId" in row else {})


def _renamed_value(value: Any, table_key: str, to: str, twin: Twin) -> Any:
    text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
    try:
        held = json.loads(text)
    except (TypeError, ValueError):
        return value
    new = renamed(held, twin.names)
    if isinstance(new, dict) and (table_key == "composerId" or to.startswith("composerData:")):
        new |= {PLACE: twin.target.identifier}
    again = json_text(new)
    return again.encode("utf-8", "surrogateescape") if isinstance(value, bytes) else again


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """JSON in which each string, and each key of an object, that is an old id is the new one."""
    if isinstance(value, dict):
        return {names.get(key, key): renamed(held, names) for key, held in value.items()}
    if isinstance(value, list):
        return [renamed(held, names) for held in value]
    return names.get(value, value) if isinstance(value, str) else value
