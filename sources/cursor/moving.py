"""Plan moves and copies of conversations to another workspace in Cursor's own databases; `journal` writes them."""

import json
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from registry.domain import as_json
from registry.errors import InvalidRequest
from sources.cursor.conversations import inline_bubbles
from sources.cursor.journal import (
    Json,
    RowCopy,
    Step,
    ValueChange,
    digest_of,
    has_table,
    open_read_only,
    record_of,
    row_of,
    value_of,
)
from sources.cursor.store import DATABASE, GLOBAL_LIST_KEY, WORKSPACE_LIST_KEY, workspace_folders
from sources.kit.files import read_small_text
from sources.kit.loose_json import objects, read_json, text_at
from sources.kit.workspace_files import project_of_workspace

WORKSPACE_FIELD = "workspaceIdentifier"
_CHOSEN = ("selectedComposerIds", "lastFocusedComposerIds")


@dataclass(frozen=True, slots=True)
class Target:
    """The workspace that conversations move to."""

    folder: Path
    identifier: Json


def target_of(user_folder: Path, project: str) -> Target:
    """Return Cursor's workspace of a folder. Raises InvalidRequest if Cursor has never opened it."""
    for folder in workspace_folders(user_folder):
        uri = text_at(read_json(read_small_text(folder / "workspace.json")), "folder")
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
    """Return the changes that move these conversations to the target's list, without writing them."""
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
            with open_read_only(folder / DATABASE) as connection:
                changes += item_changes(connection, folder / DATABASE, WORKSPACE_LIST_KEY, without)
    return changes + list(added_to_workspace(target.folder / DATABASE, heads))


def _in_global(database: Path, ids: frozenset[str], target: Target) -> Iterator[ValueChange]:
    """Yield the changes of the conversations' records, their rows in the table of headers, and the old global list."""
    after = as_json(target.identifier)
    with open_read_only(database) as connection:
        for composer_id in sorted(ids):
            for table, key in (("cursorDiskKV", f"composerData:{composer_id}"), ("composerHeaders", composer_id)):
                before = value_of(connection, table, key, "value", WORKSPACE_FIELD)
                if record_in(connection, table, key) and before != after:
                    yield ValueChange(str(database), table, key, "value", before, after, WORKSPACE_FIELD)
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
    """Yield the change that adds entries from other workspaces' lists to this workspace's list."""

    def added(given: Json) -> Json:
        known = {head.get("composerId") for head in heads_of(given)}
        new_heads = [head for head in heads if head.get("composerId") not in known]
        return {**given, "allComposers": [*heads_of(given), *new_heads]} if new_heads else given

    with open_read_only(database) as connection:
        yield from item_changes(connection, database, WORKSPACE_LIST_KEY, added)


def item_changes(
    connection: sqlite3.Connection, database: Path, key: str, change: Callable[[Json], Json]
) -> Iterator[ValueChange]:
    """Yield the change of a value in `ItemTable`; nothing if it is the same, or not a JSON object."""
    before = value_of(connection, "ItemTable", key, "value")
    record = record_of(before)
    if before is None or record:
        after = change(record)
        if after != record:
            yield ValueChange(str(database), "ItemTable", key, "value", before, as_json(after))


def heads_of(given: Mapping[str, Any]) -> list[Json]:
    return [dict(head) for head in objects(given.get("allComposers"))]


def record_in(connection: sqlite3.Connection, table: str, key: str) -> Json:
    return record_of(value_of(connection, table, key, "value"))


# the rows of a conversation have keys `family:id` or `family:id:…`
KEY_FAMILIES = (
    *("composerData", "bubbleId", "messageRequestContext", "checkpointId", "codeBlockDiff"),
    *("codeBlockPartialInlineDiffFates", "composerVirtualRowHeights"),
)
_STORE, _TABLE = "cursorDiskKV", "composerHeaders"


def plan_copy(user_folder: Path, composer_ids: Sequence[str], target: Target) -> list[Step]:
    """Return the steps that add a copy of each conversation to the target's list, without executing them."""
    database, ids = user_folder / "globalStorage" / DATABASE, sorted(set(composer_ids))
    heads = _heads_in(user_folder, ids)
    with open_read_only(database) as connection:
        keys = [key for composer_id in ids for family in KEY_FAMILIES for key in _keys(connection, family, composer_id)]
        records = [record_in(connection, _STORE, f"composerData:{composer_id}") for composer_id in ids]
        inline_ids = (
            bubble.get("bubbleId") for record in (*heads, *records) for bubble in inline_bubbles(record).values()
        )
        stored = (key.split(":")[2] for key in keys if key.startswith("bubbleId:") and key.count(":") > 1)
        names = {str(name): str(uuid4()) for name in (*ids, *stored, *filter(None, inline_ids))}
        steps: list[Step] = []
        for table, key in [*((_STORE, key) for key in keys), *((_TABLE, composer_id) for composer_id in ids)]:
            to = ":".join(names.get(part, part) for part in key.split(":"))
            change = partial(_renamed_row, to, names, target)
            if row := row_of(connection, table, key):
                steps.append(RowCopy(str(database), table, key, to, digest_of(change(row)), change))

        def with_copies(given: Json) -> Json:
            copies = [
                renamed(head, names) | {WORKSPACE_FIELD: target.identifier} for head in _with_ids(heads_of(given), ids)
            ]
            return {**given, "allComposers": [*heads_of(given), *copies]} if copies else given

        steps += item_changes(connection, database, GLOBAL_LIST_KEY, with_copies)
    return [*added_to_workspace(target.folder / DATABASE, [renamed(head, names) for head in heads]), *steps]


def _heads_in(user_folder: Path, ids: Sequence[str]) -> list[Json]:
    """Return the distinct entries of the conversations in the workspaces' lists."""
    found: dict[str, Json] = {}
    for folder in workspace_folders(user_folder):
        with open_read_only(folder / DATABASE) as connection:
            for head in _with_ids(heads_of(record_in(connection, "ItemTable", WORKSPACE_LIST_KEY)), ids):
                found.setdefault(head["composerId"], head)
    return list(found.values())


def _with_ids(heads: Sequence[Json], ids: Sequence[str]) -> list[Json]:
    return [head for head in heads if head.get("composerId") in ids]


def _keys(connection: sqlite3.Connection, family: str, composer_id: str) -> list[str]:
    """Return the keys `family:id` and `family:id:…`; `;` is the character after the colon."""
    if not has_table(connection, _STORE):
        return []
    begin = f"{family}:{composer_id}"
    query = f"SELECT key FROM {_STORE} WHERE key = ? OR (key >= ? AND key < ?) ORDER BY rowid"  # noqa: S608, ours
    return [key for (key,) in connection.execute(query, (begin, f"{begin}:", f"{begin};"))]


def _renamed_row(to: str, names: Mapping[str, str], target: Target, row: Json) -> Json:
    """Return the row of the copy; the value keeps its type, text or bytes."""
    is_header, value = "composerId" in row, row.get("value")
    new = {**row, "composerId" if is_header else "key": to}
    if "workspaceId" in row:
        new["workspaceId"] = target.folder.name
    text: Any = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
    try:
        parsed = renamed(json.loads(text), names)
    except (TypeError, ValueError):
        return new
    if isinstance(parsed, dict) and (is_header or to.startswith("composerData:")):
        parsed |= {WORKSPACE_FIELD: target.identifier}
    new["value"] = as_json(parsed)
    return {**new, "value": new["value"].encode("utf-8", "surrogateescape")} if isinstance(value, bytes) else new


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Replace old ids by new ones in all strings and keys of a JSON value."""
    if isinstance(value, dict):
        return {names.get(key, key): renamed(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [renamed(inner, names) for inner in value]
    return names.get(value, value) if isinstance(value, str) else value
