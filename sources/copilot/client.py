"""GitHub Copilot: the chat in VS Code, and the command line."""

from __future__ import annotations

from pathlib import Path

from sources.base import Places
from sources.client import Client, ServerList, settings_of_the_system


def _user_folder(_: Places) -> Path:
    return settings_of_the_system("Code") / "User"


VSCODE = Client(
    source="copilot-vscode",
    name="VS Code",
    handshake=("visual studio code", "visual studio code - insiders"),
    history="the `User` folders of VS Code, Insiders and VSCodium; `CTXR_VSCODE_DIR`",
    history_name="Copilot Chat in VS Code",
    shown_by=("copilot-vscode",),
    folder=_user_folder,
    servers=ServerList(
        lambda places: _user_folder(places) / "mcp.json",
        key="servers",
        entry={"type": "stdio"},
        in_project=".vscode/mcp.json",
    ),
    command="vscode",
    project_option="connect this project only",
    then="Start the server in VS Code: MCP: List Servers.",
)

COPILOT_CLI = Client(
    source="copilot-cli",
    name="Copilot CLI",
    history="`~/.copilot`; `COPILOT_HOME` or `CTXR_COPILOT_CLI_DIR`",
)
