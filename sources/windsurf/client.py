"""Windsurf, the editor."""

from __future__ import annotations

from pathlib import Path

from sources.base import Places
from sources.client import Client, ServerList


def _folder(places: Places) -> Path:
    return places.home / ".codeium" / "windsurf"


WINDSURF = Client(
    source="windsurf",
    name="Windsurf",
    handshake=("windsurf", "windsurf-client"),
    folder=_folder,
    servers=ServerList(lambda places: _folder(places) / "mcp_config.json"),
    is_logged_by_model=True,
    command="windsurf",
    then="Refresh the servers in Windsurf's MCP panel.",
)
