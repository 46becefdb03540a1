"""Droid, Factory's agent."""

from sources.client import Client, Hooks, ServerList

DROID = Client(
    source="droid",
    name="Droid",
    handshake=("factory-cli",),
    folder=lambda places: places.folder("FACTORY_HOME_OVERRIDE") / ".factory",
    servers=ServerList("mcp.json", entry={"type": "stdio"}),
    hooks=Hooks(
        events=("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd"),
        acts=("PreToolUse", "Execute|Edit|Create|ApplyPatch"),
        file="settings.json",
        is_among_settings=True,
    ),
)
