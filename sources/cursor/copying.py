"""Plan copies of conversations in another workspace of Cursor: each gets new ids and stays beside the old one.

A copy's rows hold keys of Cursor's, so they go from row to row of the database, and the journal has only their SHA-256.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from registry.domain import as_json
from sources.cursor.conversations import inline_bubbles
from sources.cursor.journal import Json, RowCopy, Step, digest_of, has_table, reading, row_of
from sources.cursor.moving import (
    GLOBAL_LIST_KEY,
    WORKSPACE_FIELD,
    WORKSPACE_LIST_KEY,
    Target,
    added_to_workspace,
    heads_of,
    item_changes,
    record_in,
)
from sources.cursor.store import DATABASE, workspace_folders

# What Cursor stores of a conversation under its id: rows with the key `family:id` or `family:id:…`.
FAMILIES = (
    *("composerData", "bubbleId", "messageRequestContext", "checkpointId", "codeBlockDiff"),
    *("codeBlockPartialInlineDiffFates", "composerVirtualRowHeights"),
)
_STORE, _TABLE = "cursorDiskKV", "composerHeaders"


def plan_copy(user_folder: Path, composer_ids: Sequence[str], target: Target) -> list[Step]:
    """Return the steps that put a copy of each conversation into the target's list. Nothing is written yet."""
    database, ids = user_folder / "globalStorage" / DATABASE, sorted(set(composer_ids))
    heads = _heads_in(user_folder, ids)
    with reading(database) as connection:
        keys = [key for composer_id in ids for family in FAMILIES for key in _keys(connection, family, composer_id)]
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
                renamed(head, names) | {WORKSPACE_FIELD: target.identifier} for head in _among(heads_of(given), ids)
            ]
            return {**given, "allComposers": [*heads_of(given), *copies]} if copies else given

        steps += item_changes(connection, database, GLOBAL_LIST_KEY, with_copies)
    return [*added_to_workspace(target.folder / DATABASE, [renamed(head, names) for head in heads]), *steps]


def _heads_in(user_folder: Path, ids: Sequence[str]) -> list[Json]:
    """Return the entries of the conversations in the workspaces' own lists, each once."""
    found: dict[str, Json] = {}
    for folder in workspace_folders(user_folder):
        with reading(folder / DATABASE) as connection:
            for head in _among(heads_of(record_in(connection, "ItemTable", WORKSPACE_LIST_KEY)), ids):
                found.setdefault(head["composerId"], head)
    return list(found.values())


def _among(heads: Sequence[Json], ids: Sequence[str]) -> list[Json]:
    return [head for head in heads if head.get("composerId") in ids]


def _keys(connection: sqlite3.Connection, family: str, composer_id: str) -> list[str]:
    """Return the keys `family:id` and `family:id:…`; `;` is the character after the colon."""
    if not has_table(connection, _STORE):
        return []
    begin = f"{family}:{composer_id}"
    query = f"SELECT key FROM {_STORE} WHERE key = ? OR (key >= ? AND key < ?) ORDER BY rowid"  # noqa: S608, ours
    return [key for (key,) in connection.execute(query, (begin, f"{begin}:", f"{begin};"))]


def _renamed_row(to: str, names: Mapping[str, str], target: Target, row: Json) -> Json:
    """Return the row of the copy, its value as text or as bytes, as it was."""
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
    """Return JSON in which each string or key that is an old id is replaced by the new one."""
    if isinstance(value, dict):
        return {names.get(key, key): renamed(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [renamed(inner, names) for inner in value]
    return names.get(value, value) if isinstance(value, str) else value
