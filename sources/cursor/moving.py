"""Conversations moved to another workspace inside Cursor's own databases: planned here, written by `journal`."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from registry.errors import InvalidRequest
from sources.cursor.journal import Change, Json, reading, value_of
from sources.cursor.workspaces import DATABASE, workspace_folders
from sources.kit.files import small_text
from sources.kit.jsonl import mapping, string
from sources.kit.loose_json import objects, read_json
from sources.kit.workspace_files import project_of_workspace

HEADERS, LISTED = "composer.composerHeaders", "composer.composerData"
PLACE = "workspaceIdentifier"
_CHOSEN = ("selectedComposerIds", "lastFocusedComposerIds")
_SAME = {"win32", "darwin"}
"""Where capitals in paths do not matter."""


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
    return changes + list(into(target.folder / DATABASE, heads))


def _in_global(database: Path, ids: frozenset[str], target: Target) -> Iterator[Change]:
    """The record of each conversation, its row in the table of headers, and its place in the list before that."""
    place = {PLACE: target.identifier}
    with reading(database) as connection:
        for composer_id in sorted(ids):
            key = f"composerData:{composer_id}"
            yield from _placed(connection, database, "cursorDiskKV", key, target.identifier)
            yield from _placed(connection, database, "composerHeaders", composer_id, target.identifier)
            held = value_of(connection, "composerHeaders", composer_id, "workspaceId")
            if held is not None and held != target.folder.name:
                yield Change(str(database), "composerHeaders", composer_id, "workspaceId", held, target.folder.name)

        def listed(given: Json) -> Json:
            heads = [head | place if head.get("composerId") in ids else head for head in heads_of(given)]
            return {**given, "allComposers": heads}

        yield from changed(connection, database, "ItemTable", HEADERS, listed)


def _out_of(database: Path, ids: frozenset[str], heads: list[Json]) -> Iterator[Change]:
    """A workspace's own list without them; what it held of them comes into `heads`."""

    def without(given: Json) -> Json:
        heads.extend(head for head in heads_of(given) if head.get("composerId") in ids)
        left = {"allComposers": [head for head in heads_of(given) if head.get("composerId") not in ids]}
        chosen = {name: [one for one in given[name] if one not in ids] for name in _CHOSEN if name in given}
        return {**given, **({**left} if "allComposers" in given else {}), **chosen}

    with reading(database) as connection:
        yield from changed(connection, database, "ItemTable", LISTED, without)


def into(database: Path, heads: Sequence[Json]) -> Iterator[Change]:
    """The target's own list with what other workspaces held; nothing where conversations stand in the global list."""
    if not heads:
        return
    with reading(database) as connection:
        held = value_of(connection, "ItemTable", LISTED, "value")
        if held is None:
            after = json_text({"allComposers": list(heads)})
            yield Change(str(database), "ItemTable", LISTED, "value", None, after)
            return
        known = {head.get("composerId") for head in heads_of(record_of(held))}
        news = [head for head in heads if head.get("composerId") not in known]
        yield from changed(
            connection,
            database,
            "ItemTable",
            LISTED,
            lambda given: {**given, "allComposers": [*heads_of(given), *news]},
        )


def _placed(connection: sqlite3.Connection, database: Path, table: str, key: str, identifier: Json) -> Iterator[Change]:
    if not record_of(value_of(connection, table, key, "value")):
        return
    held, after = value_of(connection, table, key, "value", PLACE), json_text(identifier)
    if held != after:
        yield Change(str(database), table, key, "value", held, after, PLACE)


def changed(
    connection: sqlite3.Connection, database: Path, table: str, key: str, change: Callable[[Json], Json]
) -> Iterator[Change]:
    """A value as `change` makes it; nothing where it is not there, or stays."""
    held = value_of(connection, table, key, "value")
    record = record_of(held)
    if held is None or not record:
        return
    after = change(record)
    if after != record:
        yield Change(str(database), table, key, "value", held, json_text(after))


def heads_of(given: Mapping[str, Any]) -> list[Json]:
    """The conversations of a list."""
    return [dict(head) for head in objects(given.get("allComposers"))]


def record_of(held: str | None) -> Json:
    """A value's JSON object; empty where it is none."""
    return dict(mapping(read_json(held))) if held else {}


def json_text(value: Any) -> str:
    """JSON as Cursor writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
