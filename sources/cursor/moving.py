"""Conversations moved to another workspace inside Cursor's own databases: planned, noted, done, looked at, undone.

Every value that is changed is written to a journal of ours before, so that all of it can be put back.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from registry.errors import InvalidRequest, StorageError
from sources.cursor.workspaces import DATABASE, workspace_folders
from sources.kit.files import small_text
from sources.kit.jsonl import mapping, string
from sources.kit.loose_json import objects, read_json
from sources.kit.workspace_files import project_of_workspace

Json = dict[str, Any]

HEADERS, LISTED = "composer.composerHeaders", "composer.composerData"
PLACE = "workspaceIdentifier"
_CHOSEN = ("selectedComposerIds", "lastFocusedComposerIds")
_KEYS = {"cursorDiskKV": "key", "ItemTable": "key", "composerHeaders": "composerId"}
"""The tables that are written, and what their rows are found by."""
_SAME = {"win32", "darwin"}
"""Where capitals in paths do not matter."""


@dataclass(frozen=True, slots=True)
class Change:
    """One value of one row, as it was and as it will be. None: there is no such row, or no such field.

    `field`: only that field of the JSON that the value is: keys stand beside it, which go into no journal.
    """

    database: str
    table: str
    key: str
    column: str
    before: str | None
    after: str | None
    field: str = ""

    def undone(self) -> Change:
        """The change back."""
        return Change(self.database, self.table, self.key, self.column, self.after, self.before, self.field)


@dataclass(frozen=True, slots=True)
class Target:
    """The workspace that conversations move to."""

    folder: Path
    identifier: Json


def target_of(user_folder: Path, project: str) -> Target:
    """Cursor's workspace of a folder; InvalidRequest where Cursor has never opened it."""
    for folder in workspace_folders(user_folder):
        opened = mapping(read_json(small_text(folder / "workspace.json")))
        uri = string(opened.get("folder"))
        if uri and _is_same(project_of_workspace(folder), project):
            path = {"fsPath": project, "external": uri, "path": project, "scheme": uri.partition(":")[0]}
            return Target(folder, {"id": folder.name, "uri": {"$mid": 1, **path}})
    raise InvalidRequest(
        "Cursor does not know that folder.",
        f"to: given {project!r}; allowed: a folder that was opened in Cursor; open it there once, and quit Cursor",
    )


def _is_same(one: str, other: str) -> bool:
    one, other = (path.replace("\\", "/").rstrip("/") for path in (one, other))
    return one.casefold() == other.casefold() if sys.platform in _SAME else one == other


def plan(user_folder: Path, composer_ids: Sequence[str], target: Target) -> list[Change]:
    """What has to change so that these conversations stand in the target's list. Nothing is written."""
    ids = frozenset(composer_ids)
    changes = list(_in_global(user_folder / "globalStorage" / DATABASE, ids, target))
    heads: list[Json] = []
    for folder in workspace_folders(user_folder):
        if folder != target.folder:
            changes += _out_of(folder / DATABASE, ids, heads)
    return changes + list(_into(target.folder / DATABASE, heads))


def _in_global(database: Path, ids: frozenset[str], target: Target) -> Iterator[Change]:
    """The record of each conversation, its row in the table of headers, and its place in the list before that."""
    place = {PLACE: target.identifier}
    with _reading(database) as connection:
        for composer_id in sorted(ids):
            key = f"composerData:{composer_id}"
            yield from _placed(connection, database, "cursorDiskKV", key, target.identifier)
            yield from _placed(connection, database, "composerHeaders", composer_id, target.identifier)
            held = _value(connection, "composerHeaders", composer_id, "workspaceId")
            if held is not None and held != target.folder.name:
                yield Change(str(database), "composerHeaders", composer_id, "workspaceId", held, target.folder.name)

        def listed(given: Json) -> Json:
            heads = [head | place if head.get("composerId") in ids else head for head in _heads(given)]
            return {**given, "allComposers": heads}

        yield from _changed(connection, database, "ItemTable", HEADERS, listed)


def _out_of(database: Path, ids: frozenset[str], heads: list[Json]) -> Iterator[Change]:
    """A workspace's own list without them; what it held of them comes into `heads`."""

    def without(given: Json) -> Json:
        heads.extend(head for head in _heads(given) if head.get("composerId") in ids)
        left = {"allComposers": [head for head in _heads(given) if head.get("composerId") not in ids]}
        chosen = {name: [one for one in given[name] if one not in ids] for name in _CHOSEN if name in given}
        return {**given, **({**left} if "allComposers" in given else {}), **chosen}

    with _reading(database) as connection:
        yield from _changed(connection, database, "ItemTable", LISTED, without)


def _into(database: Path, heads: Sequence[Json]) -> Iterator[Change]:
    """The target's own list with what other workspaces held; nothing where conversations stand in the global list."""
    if not heads:
        return
    with _reading(database) as connection:
        held = _value(connection, "ItemTable", LISTED, "value")
        if held is None:
            after = _text({"allComposers": list(heads)})
            yield Change(str(database), "ItemTable", LISTED, "value", None, after)
            return
        known = {head.get("composerId") for head in _heads(_record(held))}
        news = [head for head in heads if head.get("composerId") not in known]
        yield from _changed(
            connection,
            database,
            "ItemTable",
            LISTED,
            lambda given: {**given, "allComposers": [*_heads(given), *news]},
        )


def _placed(connection: sqlite3.Connection, database: Path, table: str, key: str, identifier: Json) -> Iterator[Change]:
    if not _record(_value(connection, table, key, "value")):
        return
    held, after = _value(connection, table, key, "value", PLACE), _text(identifier)
    if held != after:
        yield Change(str(database), table, key, "value", held, after, PLACE)


def _changed(
    connection: sqlite3.Connection, database: Path, table: str, key: str, change: Callable[[Json], Json]
) -> Iterator[Change]:
    held = _value(connection, table, key, "value")
    record = _record(held)
    if held is None or not record:
        return
    after = change(record)
    if after != record:
        yield Change(str(database), table, key, "value", held, _text(after))


def _heads(given: Mapping[str, Any]) -> list[Json]:
    return [dict(head) for head in objects(given.get("allComposers"))]


def _record(held: str | None) -> Json:
    return dict(mapping(read_json(held))) if held else {}


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _value(connection: sqlite3.Connection, table: str, key: str, column: str, field: str = "") -> str | None:
    """A value, or a field of it, as text, whether it is kept as one or as bytes; None where there is none."""
    text = f"CAST({column} AS TEXT)"
    text = f"json_extract({text}, '$.{field}')" if field else text
    query = f"SELECT {text} FROM {table} WHERE {_KEYS[table]} = ?"  # noqa: S608, names of ours
    with suppress(sqlite3.OperationalError):
        row = connection.execute(query, (key,)).fetchone()
        return str(row[0]) if row and row[0] is not None else None
    return None


def _reading(database: Path) -> closing[sqlite3.Connection]:
    """An open database, read-only; an empty one where there is none."""
    where = f"{database.absolute().as_uri()}?mode=ro" if database.exists() else ":memory:"
    return closing(sqlite3.connect(where, uri=True, timeout=1))


def apply(changes: Sequence[Change], journal: Path, about: Mapping[str, Any]) -> None:
    """Note all of it in a new journal, do it, and look whether it stands. After a failure all is as it was before.

    InvalidRequest while Cursor runs; StorageError where a value is another one by now, or cannot be written.
    """
    refuse_while_running()
    journal.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    noted = {**about, "changes": [asdict(change) for change in changes]}
    with open(os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(noted, file, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    _write(changes)


def undo(journal: Path) -> dict[str, Any]:
    """Put back what a journal tells of; what it tells."""
    try:
        noted: dict[str, Any] = json.loads(journal.read_text(encoding="utf-8"))
        changes = [Change(**one) for one in noted["changes"]]
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise InvalidRequest("That is no journal of a move.", f"undo: given {str(journal)!r}; {exc}") from exc
    refuse_while_running()
    _write([change.undone() for change in reversed(changes)])
    return noted


def _write(changes: Sequence[Change]) -> None:
    done: list[Change] = []
    ordered = sorted(changes, key=lambda change: change.database)
    try:
        for database, of_one in groupby(ordered, key=lambda change: change.database):
            held = list(of_one)
            _write_into(database, held)
            done += held
            _look(held)
    except (sqlite3.Error, StorageError) as exc:
        for database, of_one in groupby(done, key=lambda change: change.database):
            _write_into(database, [change.undone() for change in of_one])
        if isinstance(exc, StorageError):
            raise
        raise StorageError("Cursor's database could not be written; it is as it was.", str(exc)) from exc


def _write_into(database: str, changes: Iterable[Change]) -> None:
    """All changes of one database, or none."""
    with closing(sqlite3.connect(database, timeout=1, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for one in changes:
            if _value(connection, one.table, one.key, one.column, one.field) != one.before:
                connection.execute("ROLLBACK")
                raise StorageError("Cursor has written meanwhile; nothing was changed.", f"{database}: {one.key}")
            connection.execute(*_statement(one))
        connection.execute("COMMIT")


def _statement(one: Change) -> tuple[str, tuple[str | None, ...]]:
    key = _KEYS[one.table]
    if one.field:
        text = f"CAST({one.column} AS TEXT)"
        changed = f"json_remove({text}, '$.{one.field}')"
        if one.after is not None:
            changed = f"json_set({text}, '$.{one.field}', json(?))"
        given = [] if one.after is None else [one.after]
        return f"UPDATE {one.table} SET {one.column} = {changed} WHERE {key} = ?", (*given, one.key)  # noqa: S608
    if one.after is None:
        return f"DELETE FROM {one.table} WHERE {key} = ?", (one.key,)  # noqa: S608, names of ours
    if one.before is None:
        return f"INSERT INTO {one.table} ({key}, {one.column}) VALUES (?, ?)", (one.key, one.after)  # noqa: S608
    return f"UPDATE {one.table} SET {one.column} = ? WHERE {key} = ?", (one.after, one.key)  # noqa: S608


def _look(changes: Iterable[Change]) -> None:
    for one in changes:
        with _reading(Path(one.database)) as connection:
            if _value(connection, one.table, one.key, one.column, one.field) != one.after:
                raise StorageError("The move did not stand in Cursor's database.", f"{one.database}: {one.key}")


def refuse_while_running() -> None:
    """InvalidRequest while Cursor runs: it keeps its lists in memory and would write them over ours."""
    if any(name.casefold() in ("cursor", "cursor.exe") for name in running_programs()):
        raise InvalidRequest("Cursor is running.", "Quit Cursor, then ask again: it would write over the change")


def running_programs() -> Iterator[str]:
    """The names of the programs that run on this machine."""
    if sys.platform.startswith("linux"):
        for process in Path("/proc").glob("[0-9]*/comm"):
            with suppress(OSError):
                yield process.read_text(errors="replace").strip()
        return
    command = ["tasklist", "/fo", "csv", "/nh"] if sys.platform == "win32" else ["ps", "-axco", "command"]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)  # noqa: S603
    yield from (line.split(",")[0].strip(' "') for line in told.stdout.splitlines())
