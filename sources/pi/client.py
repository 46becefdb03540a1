"""Pi, a coding agent for the terminal. It has no MCP: its conversations are read, but it cannot ask for others."""

from sources.client import Client

PI = Client(
    source="pi",
    name="Pi",
    folder=lambda places: places.folder("PI_CODING_AGENT_DIR", ".pi", "agent"),
)
