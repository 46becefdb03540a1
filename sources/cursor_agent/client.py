"""Cursor's agent on the command line and in other editors; Cursor's own settings connect it."""

from sources.client import Client

CURSOR_AGENT = Client(
    source="cursor-agent",
    name="Cursor's agent",
)
