"""Antigravity: Google's editor, and its command line `agy`, which keeps its conversations in the same way."""

from sources.client import Client, ServerList

# below `~/.gemini`: the command line's, and the editor's in newer and older versions
FOLDERS = ("antigravity-cli", "antigravity-ide", "antigravity")


ANTIGRAVITY = Client(
    source="antigravity",
    name="Antigravity",
    handshake=("antigravity", "antigravity-client", "antigravity-cli", "agy"),
    folder=lambda places: places.home / ".gemini" / "antigravity",
    servers=ServerList(lambda places: places.home / ".gemini" / "config" / "mcp_config.json"),
)
