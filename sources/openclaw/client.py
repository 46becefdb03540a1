"""OpenClaw, an assistant that is reached over messengers and the terminal; it keeps what Pi does, in a database."""

from __future__ import annotations

from pathlib import Path

from sources.base import Places
from sources.client import Client, ServerList


def _folder(places: Places) -> Path:
    return places.folder("OPENCLAW_STATE_DIR", ".openclaw")


OPENCLAW = Client(
    source="openclaw",
    name="OpenClaw",
    handshake=("openclaw-bundle-mcp",),
    history="`~/.openclaw/agents`; `OPENCLAW_STATE_DIR` or `CTXR_OPENCLAW_DIR`",
    folder=_folder,
    servers=ServerList(lambda places: _folder(places) / "openclaw.json", key="mcp.servers"),
)
