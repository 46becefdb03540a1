"""`ctxr mcp`: the registry for one chat window of a client, over stdin and stdout."""

from __future__ import annotations

import os
import signal
import sys

import click


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
    from mcp_server.transport.stdio import run_stdio

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
    from orchestrator.requests.calls import working_folder

    named = os.path.abspath(os.path.join(folder or "", project)) if project else None
    return toolsets_named(toolsets), named or working_folder(folder)
