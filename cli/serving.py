"""`ctxr up`, `ctxr serve` and `ctxr mcp`: the registry, running."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from cli.addresses import local_address
from registry.log import set_up_logging
from registry.settings import Settings, read_settings

if TYPE_CHECKING:
    from cli.serve import Audience
    from orchestrator.sync.store_report import StoreReport

host_option = click.option("--host", metavar="ADDRESS", help="Address to listen on. Default: CTXR_HOST, or 127.0.0.1.")
port_option = click.option(
    "--port", type=click.IntRange(1, 65535), metavar="PORT", help="Port to listen on. Default: CTXR_PORT, or 8765."
)


@click.command()
@host_option
@port_option
def up(**given: Any) -> None:
    """Start here: bring in this machine's histories, say how to connect, serve.

    While it runs it brings in what your AI clients write, as they write it.
    May be repeated: what is there already stays as it is.
    """
    from cli.serve import Audience
    from cli.welcome import FirstStart

    settings = _settings(given)
    with FirstStart(settings) as first_start:
        _serve(settings, Audience(first_start.ready, first_start.told, first_start.bars))


@click.command()
@host_option
@port_option
def serve(**given: Any) -> None:
    """Serve MCP, the HTTP API and the dashboard on one port.

    \b
    /      dashboard
    /mcp   MCP over streamable HTTP
    /bo    HTTP API, described at /docs

    While it runs it brings in what AI clients on this machine write, as they
    write it; not into a shared registry on PostgreSQL, for which there is
    `ctxr sync`. Ctrl-C or SIGTERM ends it.

    Listening on another address than this machine's own takes a token (`ctxr
    token create`) and TLS, or the address of a proxy that does it.
    """
    from cli.progress import Damage
    from cli.serve import Audience

    settings, damage = _settings(given), Damage()

    def told(reports: Sequence[StoreReport]) -> None:
        for line in damage.lines_of(reports):
            click.echo(line, err=True)

    _serve(settings, Audience(lambda page: _say_where(settings, page), told))


@click.command()
@click.option(
    "--toolsets",
    default="default",
    show_default=True,
    metavar="NAMES",
    help="Which tools: default, history, all, archive, admin; with commas.",
)
@click.option("--project", metavar="FOLDER", help="The folder that `current` means. Default: the one it is started in.")
def mcp(toolsets: str, project: str | None) -> None:
    """Speak MCP on stdin and stdout: what a client starts for itself.

    Clients are told of this command by what `ctxr up` prints.
    """
    from mcp_server.stdio import run_stdio

    chosen, folder = window_options(toolsets, project)
    # Waiting for stdin cannot be interrupted otherwise, and what was answered is stored already.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.stdin.isatty():
        click.echo("Waiting for an MCP client on stdin; Ctrl-C ends this. Clients start it themselves.", err=True)
    run_stdio(chosen, folder)


def window_options(toolsets: str, project: str | None, folder: str | None = None) -> tuple[tuple[str, ...], str | None]:
    """The chosen toolsets, and the folder that `current` means for who is started in `folder`.

    Raises InvalidRequest if there is no such toolset.
    """
    from mcp_server.server import toolsets_named
    from orchestrator.calls import working_folder

    named = os.path.abspath(os.path.join(folder or "", project)) if project else None
    return toolsets_named(toolsets), named or working_folder(folder)


def _settings(given: dict[str, Any]) -> Settings:
    return read_settings(**{name: value for name, value in given.items() if value is not None})


def _serve(settings: Settings, audience: Audience) -> None:
    from cli.serve import serve_registry  # the whole server, which `ctxr -h` does not need

    set_up_logging()
    serve_registry(settings, audience)


def _say_where(settings: Settings, page: str) -> None:
    click.echo(f"Context Registry at {local_address(settings)}, MCP at /mcp. Ctrl-C ends it.", err=True)
    if "?" in page:
        click.echo(f"To sign in, open once: {page}", err=True)
