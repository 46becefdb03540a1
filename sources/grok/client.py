"""Grok CLI, which xAI also calls Grok Build."""

from __future__ import annotations

from pathlib import Path

from sources.base import Places
from sources.client import Client, Room, ServerList


def _folder(places: Places) -> Path:
    return places.folder("GROK_HOME", ".grok")


GROK_CLI = Client(
    source="grok-cli",
    name="Grok CLI",
    room=Room(18_000, in_bytes=True),
    handshake=("grok-shell-context-registry", "grok-shell"),
    history="`~/.grok/sessions`; `GROK_HOME` or `CTXR_GROK_CLI_DIR`",
    folder=_folder,
    servers=ServerList(lambda places: _folder(places) / "config.toml", key="mcp_servers", format="toml"),
)
