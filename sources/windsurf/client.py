"""Windsurf, the editor."""

from __future__ import annotations

from pathlib import Path

from sources.base import Places
from sources.client import Client, ServerList


def folder_of(places: Places) -> Path:
    """Return the folder of its settings and memories."""
    return places.home / ".codeium" / "windsurf"


WINDSURF = Client(
    source="windsurf",
    name="Windsurf",
    handshake=("windsurf", "windsurf-client"),
    folder=folder_of,
    servers=ServerList(lambda places: folder_of(places) / "mcp_config.json"),
    is_logged_by_model=True,
    then="Refresh the servers in Windsurf's MCP panel.",
)
