"""Cline: its extension for editors and its command line, which share one folder; and Roo Code, which began as Cline."""

from sources.client import Client, ServerList

CLINE = Client(
    source="cline",
    name="Cline",
    folder=lambda places: places.folder("CLINE_DATA_DIR", ".cline", "data"),
    servers=ServerList("settings/cline_mcp_settings.json"),
    is_logged_by_model=True,
    then="Cline takes the server up at once; its extension shows it under MCP Servers.",
)

ROO_CODE = Client(
    source="roo-code",
    name="Roo Code",
    handshake=("roo code", "roo-code"),
    is_logged_by_model=True,
)
