"""Qwen Code, which began as Gemini CLI and has gone its own way."""

from __future__ import annotations

from pathlib import Path

from registry.domain import Role
from sources.base import Places
from sources.client import Client, Hooks, ServerList


def _folder(places: Places) -> Path:
    return places.folder("QWEN_HOME", ".qwen")


QWEN_CODE = Client(
    source="qwen-code",
    name="Qwen Code",
    handshake=("qwen-code", "qwen-cli", "qwen-code-mcp-client"),
    folder=_folder,
    servers=ServerList(lambda places: _folder(places) / "settings.json"),
    hooks=Hooks(
        events=("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"),
        said={"UserPromptSubmit": (Role.USER, "prompt"), "Stop": (Role.ASSISTANT, "last_assistant_message")},
        start="SessionStart",
        file="settings.json",
        is_among_settings=True,
    ),
    command="qwen-code",
    then="Start Qwen Code anew.",
)
