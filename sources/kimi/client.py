"""Kimi Code, Moonshot's agent."""

from sources.client import Client, ServerList

KIMI_CODE = Client(
    source="kimi-code",
    name="Kimi Code",
    folder=lambda places: places.folder("KIMI_CODE_HOME", ".kimi-code"),
    servers=ServerList("mcp.json"),
)
