"""The clients' stores that were read into the registry."""

from __future__ import annotations

from typing import Any

from registry.storage.client_stores import conversations_read, list_stores
from registry.storage.conversations.facets import projects_by_activity
from registry.storage.database import ReadTransaction

MOST_PROJECTS = 20  # the latest ones of a client, for looking into their folders


def stores(
    tx: ReadTransaction, source: str
) -> tuple[list[dict[str, Any]], list[str], dict[tuple[str, str], list[str]]]:
    """Return the stores, the latest projects of a client, and the conversations read from each (source, path)."""
    folders = [path for _, path, _ in projects_by_activity(tx, MOST_PROJECTS, source)]
    return list_stores(tx), folders, conversations_read(tx)
