"""Gemini CLI."""

from __future__ import annotations

from pathlib import Path

from sources.base import Places
from sources.client import Client, Hooks, Purge, Room, ServerList


def _folder(places: Places) -> Path:
    return places.folder("GEMINI_CLI_HOME") / ".gemini"


GEMINI_CLI = Client(
    source="gemini-cli",
    name="Gemini CLI",
    room=Room(30_000),
    handshake=("gemini-cli", "gemini-cli-mcp-client"),
    history="`~/.gemini`; `GEMINI_CLI_HOME` (the folder above) or `CTXR_GEMINI_CLI_DIR`",
    folder=_folder,
    servers=ServerList(lambda places: _folder(places) / "settings.json"),
    hooks=Hooks(
        events=("SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"),
        said={},  # its own files have it all
        file="settings.json",
        is_among_settings=True,
    ),
    purge=Purge(
        lambda places: _folder(places) / "settings.json",
        ("general", "sessionRetention", "maxAge"),
        30,
        switch=("general", "sessionRetention", "enabled"),
    ),
)
