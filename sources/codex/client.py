"""Codex: its command line, desktop app and editor extension, which share one folder."""

from registry.domain import Role
from sources.client import Client, Hooks, Room, ServerList
from sources.codex.records import typed, untrusted

CODEX = Client(
    source="codex",
    name="Codex",
    room=Room(10_000, in_bytes=True),
    handshake=("codex", "codex-mcp-client"),
    folder=lambda places: places.folder("CODEX_HOME", ".codex"),
    servers=ServerList("config.toml", key="mcp_servers", format="toml", entry={"required": True}),
    hooks=Hooks(
        events=("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"),
        said={"UserPromptSubmit": (Role.USER, "prompt"), "Stop": (Role.ASSISTANT, "last_assistant_message")},
        acts=("PreToolUse", "Bash|apply_patch"),
        typed=typed,
        untrusted=untrusted,
    ),
    then="Restart Codex, and trust the hooks when it asks, or with /hooks.",
)
