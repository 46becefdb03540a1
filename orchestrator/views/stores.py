"""Read which of the clients' stores were imported."""

from __future__ import annotations

from typing import Any

from registry.storage.client_stores import conversations_read, list_stores
from registry.storage.conversations.facets import latest_projects
from registry.storage.database import ReadTransaction

MOST_PROJECTS = 20  # the latest ones of a client, for looking into their folders


def stores(
    tx: ReadTransaction, source: str
) -> tuple[list[dict[str, Any]], list[str], dict[tuple[str, str], list[str]]]:
    """Return the stores, the latest projects of a client, and the conversations read from each (source, path)."""
    return list_stores(tx), latest_projects(tx, source, MOST_PROJECTS), conversations_read(tx)
