"""Grok CLI, which xAI also calls Grok Build."""

from sources.client import Client, Room, ServerList

GROK_CLI = Client(
    source="grok-cli",
    name="Grok CLI",
    room=Room(18_000, in_bytes=True),
    handshake=("grok-shell-context-registry", "grok-shell"),
    folder=lambda places: places.folder("GROK_HOME", ".grok"),
    servers=ServerList("config.toml", key="mcp_servers", format="toml"),
)
