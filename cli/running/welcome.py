"""The output of `ctxr up`: what was imported, where everything is, and how to connect a client."""

from __future__ import annotations

from collections.abc import Sequence

import click

from cli.connect.installation import INSTALLABLE
from cli.connect.snippets import this_server
from cli.incoming.sync import Bars, Damage, report_lines
from cli.running.addresses import local_address, shown_address
from cli.running.exposure import SECRET_FILE
from orchestrator.sync.store_report import StoreReport
from registry.settings import Settings


class FirstStart:
    """Prints how a server starts. What to paste comes last, where people look."""

    def __init__(self, settings: Settings, bars: Bars) -> None:
        self._settings, self._bars = settings, bars
        self._is_over = False
        self._page = ""
        self._damage = Damage()

    def ready(self, page: str) -> None:
        """Print the address as soon as calls are answered; `page` is the dashboard's address for this user."""
        self._page = page
        click.echo(f"Context Registry answers at {local_address(self._settings)}/. Importing this machine's histories:")

    def report(self, reports: Sequence[StoreReport]) -> None:
        """Print the first import and the welcome text; of later imports only damage."""
        damage = list(self._damage.lines(reports))
        if self._is_over:
            for line in damage:
                click.echo(line)
            return
        self._is_over = True
        self._bars.close()
        if reports:
            click.echo("\n".join(report_lines(reports)))
        elif self._settings.database_url.startswith("postgresql"):
            click.echo("none, for this registry is shared: `ctxr sync` imports those of this machine.")
        else:
            click.echo("none found; those that appear later are imported too.")
        click.echo(f"\n{welcome(self._settings, self._page)}")


def welcome(settings: Settings, page: str) -> str:
    """Return the whole text; `page` is the dashboard's address, which signs in once where it has a code."""
    address = local_address(settings)
    lines = [
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
        lines.insert(2, f"                The link signs in once. Programs send {secret}")
    return "\n".join(lines)
