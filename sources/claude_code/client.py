"""Claude Code."""

from __future__ import annotations

from pathlib import Path

from registry.domain import Role
from sources.base import Places
from sources.claude_code.prompts import typed
from sources.client import Client, Hooks, Purge, Room, ServerList


def _servers(places: Places) -> Path:
    """Return a file beside the folder of settings, or in it if the user has moved that."""
    return places.folder("CLAUDE_CONFIG_DIR") / ".claude.json"


CLAUDE_CODE = Client(
    source="claude-code",
    name="Claude Code",
    room=Room(40_000),
    history="`~/.claude`; `CLAUDE_CONFIG_DIR` or `CTXR_CLAUDE_CODE_DIR`",
    folder=lambda places: places.folder("CLAUDE_CONFIG_DIR", ".claude"),
    servers=ServerList(_servers),
    hooks=Hooks(
        events=("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd"),
        said={"UserPromptSubmit": (Role.USER, "prompt"), "Stop": (Role.ASSISTANT, "last_assistant_message")},
        acts=("PreToolUse", "Bash|Edit|MultiEdit|Write"),
        file="settings.json",
        is_among_settings=True,
        typed=typed,
    ),
    purge=Purge(
        lambda places: places.folder("CLAUDE_CONFIG_DIR", ".claude") / "settings.json", ("cleanupPeriodDays",), 30
    ),
)
