"""GitHub Copilot: the chat in VS Code, and the command line."""

from __future__ import annotations

import os

from sources.client import Client, Hooks, Room, ServerList, settings_of_the_system

VSCODE = Client(
    source="copilot-vscode",
    name="VS Code",
    handshake=("visual studio code", "visual studio code - insiders"),
    folder=lambda _: settings_of_the_system("Code") / "User",
    servers=ServerList("mcp.json", key="servers", entry={"type": "stdio"}, in_project=".vscode/mcp.json"),
    installed_as="vscode",
    project_option="connect this project only",
    then="Start the server in VS Code: MCP: List Servers.",
)


def _handler(command: str) -> dict[str, str | int]:
    shell = "powershell" if os.name == "nt" else "bash"
    return {"type": "command", shell: command, "timeoutSec": 10}


COPILOT_CLI = Client(
    source="copilot-cli",
    name="Copilot CLI",
    room=Room(18_000, in_bytes=True),
    handshake=("github-copilot-developer", "copilot-cli"),
    folder=lambda places: places.folder("COPILOT_HOME", ".copilot"),
    servers=ServerList("mcp-config.json", entry={"type": "local", "tools": ["*"]}),
    hooks=Hooks(
        events=("sessionStart", "userPromptSubmitted", "preToolUse", "agentStop", "sessionEnd"),
        file="hooks/context-registry.json",
        format="list",
        handler=_handler,
    ),
)
