"""OpenClaw, an assistant that is reached over messengers and the terminal; it keeps what Pi does, in a database."""

from sources.client import Client, ServerList

OPENCLAW = Client(
    source="openclaw",
    name="OpenClaw",
    handshake=("openclaw-bundle-mcp",),
    folder=lambda places: places.folder("OPENCLAW_STATE_DIR", ".openclaw"),
    servers=ServerList("openclaw.json", key="mcp.servers"),
)
