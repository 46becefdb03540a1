"""Qwen Code, which began as Gemini CLI and has gone its own way."""

from sources.client import Client, Hooks, Room, ServerList

QWEN_CODE = Client(
    source="qwen-code",
    name="Qwen Code",
    room=Room(30_000),
    handshake=("qwen-code", "qwen-cli", "qwen-cli-mcp-client"),
    folder=lambda places: places.folder("QWEN_HOME", ".qwen"),
    servers=ServerList("settings.json"),
    hooks=Hooks(
        events=("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"),
        file="settings.json",
        is_among_settings=True,
    ),
)
