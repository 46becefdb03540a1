"""Kimi Code, Moonshot's agent."""

from __future__ import annotations

from pathlib import Path

from sources.base import Places
from sources.client import Client, ServerList


def _folder(places: Places) -> Path:
    return places.folder("KIMI_CODE_HOME", ".kimi-code")


KIMI_CODE = Client(
    source="kimi-code",
    name="Kimi Code",
    history="`~/.kimi-code/sessions`; `KIMI_CODE_HOME` or `CTXR_KIMI_CODE_DIR`",
    folder=_folder,
    servers=ServerList(lambda places: _folder(places) / "mcp.json"),
)
