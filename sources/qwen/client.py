"""Qwen Code, which began as Gemini CLI and has gone its own way."""

from __future__ import annotations

from pathlib import Path

from sources.base import Places
from sources.client import Client, Hooks, Room, ServerList


def _folder(places: Places) -> Path:
    return places.folder("QWEN_HOME", ".qwen")


QWEN_CODE = Client(
    source="qwen-code",
    name="Qwen Code",
    room=Room(30_000),
    handshake=("qwen-code", "qwen-cli", "qwen-cli-mcp-client"),
    history="`~/.qwen`; `QWEN_HOME` or `CTXR_QWEN_CODE_DIR`",
    folder=_folder,
    servers=ServerList(lambda places: _folder(places) / "settings.json"),
    hooks=Hooks(
        events=("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"),
        said={},  # its own files have it all
        file="settings.json",
        is_among_settings=True,
    ),
)
