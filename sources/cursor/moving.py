"""Plan moves of conversations to another workspace inside Cursor's own databases; `journal` writes them."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from registry.domain import as_json
from registry.errors import InvalidRequest
from sources.cursor.journal import Json, ValueChange, reading, record_of, value_of
from sources.cursor.store import DATABASE, workspace_folders
from sources.kit.files import small_text
from sources.kit.loose_json import objects, read_json, text_at
from sources.kit.workspace_files import project_of_workspace

GLOBAL_LIST_KEY, WORKSPACE_LIST_KEY = "composer.composerHeaders", "composer.composerData"
WORKSPACE_FIELD = "workspaceIdentifier"
_CHOSEN = ("selectedComposerIds", "lastFocusedComposerIds")


@dataclass(frozen=True, slots=True)
class Target:
    """The workspace that conversations move to."""

    folder: Path
    identifier: Json


def target_of(user_folder: Path, project: str) -> Target:
    """Return Cursor's workspace of a folder; InvalidRequest if Cursor has never opened it."""
    for folder in workspace_folders(user_folder):
        uri = text_at(read_json(small_text(folder / "workspace.json")), "folder")
        if uri and _is_same(project_of_workspace(folder), project):
            path = {"fsPath": project, "external": uri, "path": project, "scheme": uri.partition(":")[0]}
            return Target(folder, {"id": folder.name, "uri": {"$mid": 1, **path}})
    raise InvalidRequest(
        "Cursor does not know that folder.",
        f"to: given {project!r}; allowed: a folder that was opened in Cursor; open it there once, and quit Cursor",
    )


def _is_same(one: str, other: str) -> bool:
    one, other = (path.replace("\\", "/").rstrip("/") for path in (one, other))
    ignores_case = sys.platform in ("win32", "darwin")
    return one.casefold() == other.casefold() if ignores_case else one == other


def plan_move(user_folder: Path, composer_ids: Sequence[str], target: Target) -> list[ValueChange]:
    """Return the changes that put these conversations into the target's list. Nothing is written yet."""
    ids = frozenset(composer_ids)
    changes = list(_in_global(user_folder / "globalStorage" / DATABASE, ids, target))
    heads: list[Json] = []

    def without(given: Json) -> Json:
        heads.extend(head for head in heads_of(given) if head.get("composerId") in ids)
        left = [head for head in heads_of(given) if head.get("composerId") not in ids]
        chosen = {name: [one for one in given[name] if one not in ids] for name in _CHOSEN if name in given}
        return {**given, **({"allComposers": left} if "allComposers" in given else {}), **chosen}

    for folder in workspace_folders(user_folder):
        if folder != target.folder:
            with reading(folder / DATABASE) as connection:
                changes += item_changes(connection, folder / DATABASE, WORKSPACE_LIST_KEY, without)
    return changes + list(added_to_workspace(target.folder / DATABASE, heads))


def _in_global(database: Path, ids: frozenset[str], target: Target) -> Iterator[ValueChange]:
    """Yield the changes of the conversations' records, their rows in the table of headers, and the older list."""
    after = as_json(target.identifier)
    with reading(database) as connection:
        for composer_id in sorted(ids):
            for table, key in (("cursorDiskKV", f"composerData:{composer_id}"), ("composerHeaders", composer_id)):
                held = value_of(connection, table, key, "value", WORKSPACE_FIELD)
                if record_in(connection, table, key) and held != after:
                    yield ValueChange(str(database), table, key, "value", held, after, WORKSPACE_FIELD)
            workspace = value_of(connection, "composerHeaders", composer_id, "workspaceId")
            if workspace not in (None, target.folder.name):
                name = target.folder.name
                yield ValueChange(str(database), "composerHeaders", composer_id, "workspaceId", workspace, name)

        def placed(given: Json) -> Json:
            heads = [
                head | {WORKSPACE_FIELD: target.identifier} if head.get("composerId") in ids else head
                for head in heads_of(given)
            ]
            return {**given, "allComposers": heads} if given else given

        yield from item_changes(connection, database, GLOBAL_LIST_KEY, placed)


def added_to_workspace(database: Path, heads: Sequence[Json]) -> Iterator[ValueChange]:
    """Yield the change that adds to a workspace's own list what other workspaces' lists held."""

    def added(given: Json) -> Json:
        known = {head.get("composerId") for head in heads_of(given)}
        news = [head for head in heads if head.get("composerId") not in known]
        return {**given, "allComposers": [*heads_of(given), *news]} if news else given

    with reading(database) as connection:
        yield from item_changes(connection, database, WORKSPACE_LIST_KEY, added)


def item_changes(
    connection: sqlite3.Connection, database: Path, key: str, change: Callable[[Json], Json]
) -> Iterator[ValueChange]:
    """Yield the change of a value in `ItemTable`; nothing if it stays as it is, or is not understood."""
    held = value_of(connection, "ItemTable", key, "value")
    record = record_of(held)
    if held is None or record:
        after = change(record)
        if after != record:
            yield ValueChange(str(database), "ItemTable", key, "value", held, as_json(after))


def heads_of(given: Mapping[str, Any]) -> list[Json]:
    return [dict(head) for head in objects(given.get("allComposers"))]


def record_in(connection: sqlite3.Connection, table: str, key: str) -> Json:
    return record_of(value_of(connection, table, key, "value"))
