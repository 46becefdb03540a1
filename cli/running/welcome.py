"""The output of `ctxr up`: what was imported, where everything is, and how to connect a client."""

from __future__ import annotations

import click

from cli.connect.installation import INSTALLABLE
from cli.connect.snippets import this_server
from cli.running.addresses import local_address, shown_address
from cli.running.exposure import SECRET_FILE
from registry.settings import Settings


def welcome(settings: Settings, page: str) -> str:
    """Return the text that ends the first start; `page` is the dashboard's address, with a code where one is needed."""
    address = local_address(settings)
    lines = [
        "",
        click.style("Context Registry is running.", bold=True),
        f"  Dashboard     {page}",
        f"  MCP (HTTP)    {address}/mcp",
        f"  API           {address}/docs",
        f"  Registry      {shown_address(settings.url)}",
        "",
        f"Connect a client: ctxr install {'|'.join(INSTALLABLE)}",
        "Or paste this into its MCP settings (Cursor: ~/.cursor/mcp.json) and restart it:",
        this_server().mcp_json(),
        "",
        "Then say to your AI: continue the conversation about ...",
        "Trouble? ctxr doctor. Ctrl-C ends this server.",
    ]
    if "?" in page:
        secret = f"`Authorization: Bearer …` with the content of {settings.home / SECRET_FILE}"
        lines.insert(3, f"                The link signs in once. Programs send {secret}")
    return "\n".join(lines)
