"""Windsurf, the editor."""

from sources.client import Client, ServerList

WINDSURF = Client(
    source="windsurf",
    name="Windsurf",
    handshake=("windsurf", "windsurf-client"),
    folder=lambda places: places.home / ".codeium" / "windsurf",  # of its memories too
    servers=ServerList("mcp_config.json"),
    is_logged_by_model=True,
    then="Refresh the servers in Windsurf's MCP panel.",
)
