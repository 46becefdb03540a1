"""Gemini CLI."""

from __future__ import annotations

from sources.client import Client, ServerList

GEMINI_CLI = Client(
    source="gemini-cli",
    name="Gemini CLI",
    handshake=("gemini-cli", "gemini-cli-mcp-client"),
    history="`~/.gemini`; `GEMINI_CLI_HOME` (the folder above) or `CTXR_GEMINI_CLI_DIR`",
    shown_by=("gemini-cli",),
    folder=lambda places: places.home / ".gemini",
    servers=ServerList(lambda places: places.home / ".gemini" / "settings.json"),
)
