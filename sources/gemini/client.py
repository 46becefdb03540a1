"""Gemini CLI."""

from sources.client import Client, Hooks, Purge, Room, ServerList

GEMINI_CLI = Client(
    source="gemini-cli",
    name="Gemini CLI",
    room=Room(30_000),
    handshake=("gemini-cli", "gemini-cli-mcp-client"),
    folder=lambda places: places.folder("GEMINI_CLI_HOME") / ".gemini",
    servers=ServerList("settings.json"),
    hooks=Hooks(
        events=("SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"),
        file="settings.json",
        is_among_settings=True,
    ),
    purge=Purge(
        "settings.json",
        ("general", "sessionRetention", "maxAge"),
        30,
        switch=("general", "sessionRetention", "enabled"),
    ),
)
