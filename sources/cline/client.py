"""Cline: its extension for editors and its command line, which share one folder."""

from __future__ import annotations

from pathlib import Path

from sources.base import Places
from sources.client import Client, ServerList


def _data(places: Places) -> Path:
    return places.folder("CLINE_DATA_DIR", ".cline", "data")


CLINE = Client(
    source="cline",
    name="Cline",
    history="`~/.cline/data` and its folder in `globalStorage` of VS Code, VSCodium, Cursor and Windsurf; "
    "`CLINE_DATA_DIR` or `CTXR_CLINE_DIR`",
    folder=_data,
    servers=ServerList(lambda places: _data(places) / "settings" / "cline_mcp_settings.json"),
    is_logged_by_model=True,
    then="Cline takes the server up at once; its extension shows it under MCP Servers.",
)
