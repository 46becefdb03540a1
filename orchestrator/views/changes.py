"""What was stored and edited here, for registries that keep up with this one."""

from __future__ import annotations

from typing import Any

from registry.storage.database import ReadTransaction
from registry.storage.exchange import change_feed, edits


def list_changes(tx: ReadTransaction, after: int) -> change_feed.Changes:
    """Return messages in the order in which they were stored; `after`: the place of the last answer."""
    return change_feed.changes_after(tx, after)


def list_edits(tx: ReadTransaction, after: int) -> dict[str, Any]:
    """Return what was named, tagged, deleted and forgotten, in the order in which it became known here."""
    found = edits.edits_after(tx, after)
    return {"items": [edit.as_dict() for edit in found.items], "place": found.place, "is_all": found.is_all}
