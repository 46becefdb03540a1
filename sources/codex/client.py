"""Codex: its command line, desktop app and editor extension, which share one folder."""

from __future__ import annotations

from pathlib import Path

from registry.domain import Role
from sources.base import Places
from sources.client import Client, Hooks, Room, ServerList
from sources.codex.records import typed, untrusted


def _folder(places: Places) -> Path:
    return places.folder("CODEX_HOME", ".codex")


CODEX = Client(
    source="codex",
    name="Codex",
    room=Room(10_000, in_bytes=True),
    handshake=("codex", "codex-mcp-client"),
    history="`~/.codex`; `CODEX_HOME` or `CTXR_CODEX_DIR`",
    folder=_folder,
    servers=ServerList(
        lambda places: _folder(places) / "config.toml", key="mcp_servers", format="toml", entry={"required": True}
    ),
    hooks=Hooks(
        events=("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"),
        said={"UserPromptSubmit": (Role.USER, "prompt"), "Stop": (Role.ASSISTANT, "last_assistant_message")},
        acts=("PreToolUse", "Bash|apply_patch"),
        typed=typed,
        untrusted=untrusted,
    ),
    then="Restart Codex, and trust the hooks when it asks, or with /hooks.",
)
