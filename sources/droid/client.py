"""Droid, Factory's agent."""

from __future__ import annotations

from pathlib import Path

from sources.base import Places
from sources.client import Client, Hooks, ServerList


def _folder(places: Places) -> Path:
    return places.folder("FACTORY_HOME_OVERRIDE") / ".factory"


DROID = Client(
    source="droid",
    name="Droid",
    handshake=("factory-cli",),
    history="`~/.factory/sessions`; `FACTORY_HOME_OVERRIDE` (the folder above) or `CTXR_DROID_DIR`",
    folder=_folder,
    servers=ServerList(lambda places: _folder(places) / "mcp.json", entry={"type": "stdio"}),
    hooks=Hooks(
        events=("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd"),
        said={},  # its own files have it all
        acts=("PreToolUse", "Execute|Edit|Create|ApplyPatch"),
        file="settings.json",
        is_among_settings=True,
    ),
)
