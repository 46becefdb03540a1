"""What `ctxr up` says: what it found on this machine, where everything is, what to paste to connect each client."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import click

from cli.connect.installation import INSTALLABLE
from cli.connect.snippets import this_server
from cli.incoming.sync import Bars, Damage, lines_of
from cli.running.addresses import local_address, shown_address
from cli.running.exposure import SECRET_FILE
from orchestrator.sync.store_report import StoreReport
from registry.settings import Settings
from sources.base import Places
from sources.claude_code.client import CLAUDE_CODE
from sources.client import Client
from sources.cursor.client import CURSOR
from sources.exports.client import CLAUDE


class FirstStart:
    """Shows how a server starts. What to paste comes last, so that it stands where people look."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._is_over = False
        self._page = ""
        self._damage = Damage()
        self.bars = Bars()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.end()

    def ready(self, page: str) -> None:
        """Calls are answered; a browser comes in at that address."""
        self._page = page
        click.echo(
            f"Context Registry answers at {local_address(self._settings)}/. Bringing in this machine's histories:"
        )

    def told(self, reports: Sequence[StoreReport]) -> None:
        """The stores were read; of what comes later only damage needs words."""
        damage = list(self._damage.lines_of(reports))
        if self._is_over:
            for line in damage:
                click.echo(line)
            return
        self._is_over = True
        self.bars.end()
        lines = [line for report in reports for line in lines_of(report)]
        click.echo("\n".join([*(lines or [self._why_none()]), "", welcome(self._settings, self._page)]))

    def _why_none(self) -> str:
        if self._settings.database_url.startswith("postgresql"):
            return "none, for this registry is shared: `ctxr sync` brings in those of this machine."
        return "none found; those that appear later are brought in too."


def welcome(settings: Settings, page: str) -> str:
    """The whole text; `page`: where a browser comes in.

    What is pasted starts at the first column, so that it can be copied as it stands.
    """
    address, server = local_address(settings), this_server()
    return "\n".join(
        [
            click.style("Context Registry is running.", bold=True),
            "",
            f"  Dashboard     {page}",
            *_secret(settings, page),
            f"  MCP (HTTP)    {address}/mcp",
            f"  API           {address}/docs",
            f"  Registry      {shown_address(settings.url)}",
            "",
            f"Connect your clients: ctxr install {'|'.join(INSTALLABLE)}",
            "shows what it would write and asks. Or do it by hand, then restart them; a file",
            "that exists keeps its other entries: add ours beside them.",
            *_by_hand(CURSOR, server.mcp_json(), "or open this link:", server.link(CURSOR)),
            *_rule(CURSOR),
            *_by_hand(CLAUDE, server.mcp_json()),
            _title(CLAUDE_CODE.name, "a command"),
            server.claude_code_command(),
            "",
            "Then say to your AI: continue the conversation about ...",
            "Trouble? ctxr doctor. Ctrl-C ends this server.",
        ]
    )


def _secret(settings: Settings, page: str) -> Iterator[str]:
    if "?" in page:
        yield "                The link signs in once; others have accounts on this machine. Programs send"
        yield f"                `Authorization: Bearer …` with what is in {settings.home / SECRET_FILE}"


def _by_hand(client: Client, *lines: str) -> Iterator[str]:
    if client.servers:
        what = f"{client.name}, the server" if client.rule else client.name
        yield _title(what, client.servers.file(Places(Path.home(), os.environ)))
        yield from lines


def _rule(client: Client) -> Iterator[str]:
    if client.rule:
        yield _title(f"{client.name}, the rule", f"{client.rule.file} in your project")
        yield client.rule.alone.rstrip()


def _title(what: str, where: Path | str) -> str:
    return "\n" + click.style(f"── {what}: {where}", bold=True)
