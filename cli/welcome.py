"""What `ctxr up` says: where everything is, and what to paste to connect each client."""

from __future__ import annotations

from pathlib import Path

import click

from cli.checks import shown_address
from cli.clients import known_clients
from cli.installation import NAMES
from cli.probe import local_address
from cli.snippets import CURSOR_RULE, CURSOR_RULE_FILE, this_server
from registry.settings import Settings


def welcome(settings: Settings) -> str:
    """The whole text. What is pasted starts at the first column, so that it can be copied as it stands."""
    address, server = local_address(settings), this_server()
    config = {client.name: client.config for client in known_clients(Path.home())}
    return "\n".join(
        [
            click.style("Context Registry is running.", bold=True),
            "",
            f"  Dashboard     {address}/",
            f"  MCP (HTTP)    {address}/mcp",
            f"  API           {address}/docs",
            f"  Registry      {shown_address(settings.url)}",
            "",
            f"Connect your clients: ctxr install {'|'.join(NAMES)}",
            "shows what it would write and asks. Or do it by hand, then restart them; a file",
            "that exists keeps its other entries: add ours beside them.",
            _title("Cursor, the server", config["Cursor"]),
            server.mcp_json(),
            "or open this link:",
            server.cursor_link(),
            _title("Cursor, the rule", f"{CURSOR_RULE_FILE} in your project"),
            CURSOR_RULE.rstrip(),
            _title("Claude Desktop", config["Claude Desktop"]),
            server.mcp_json(),
            _title("Claude Code", "a command"),
            server.claude_code_command(),
            "",
            "Then say to your AI: continue the conversation about ...",
            "Trouble? ctxr doctor. Ctrl-C ends this server.",
        ]
    )


def _title(what: str, where: Path | str) -> str:
    return "\n" + click.style(f"── {what}: {where}", bold=True)
