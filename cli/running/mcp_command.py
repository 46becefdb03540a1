"""`ctxr mcp`: the registry for one chat window of a client, over stdin and stdout."""

import os
import signal
import sys
from typing import NamedTuple

import click


@click.command()
@click.option(
    "--toolsets",
    default="default",
    show_default=True,
    metavar="NAMES",
    help="Tools to publish: default, history, all, archive, admin; with commas.",
)
@click.option("--project", metavar="FOLDER", help="The folder that `current` means. Default: the working folder.")
@click.option("--client", metavar="NAME", help="The client that starts it; limits the size of answers.")
@click.option("--captured", is_flag=True, help="Hooks capture the chats of this client: its model need not log them.")
def mcp(toolsets: str, project: str | None, client: str | None, captured: bool) -> None:
    """Speak MCP on stdin and stdout. Clients start this; `ctxr install` sets it up."""
    from mcp_server.transport.stdio import run_stdio
    from sources.clients import find_client

    options = window_options(toolsets, project, client, captured)
    connection = click.get_current_context().obj  # set for a window without a shared process
    if connection:
        connection.sendall(b"\n")
    else:
        # Reading stdin cannot be interrupted otherwise, and what was answered is stored already.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if sys.stdin.isatty():
            click.echo("Waiting for an MCP client on stdin; Ctrl-C ends this. Clients start it themselves.", err=True)
    run_stdio(options.toolsets, options.project, find_client(options.client), captured, connection)


class WindowOptions(NamedTuple):
    """The options of a chat window: its toolsets, the folder that `current` means, and its client."""

    toolsets: tuple[str, ...]
    project: str | None
    client: str
    is_captured: bool


def window_options(
    toolsets: str, project: str | None, client: str | None, captured: bool, folder: str | None = None
) -> WindowOptions:
    """Return the options of a window that was started in `folder`.

    Raises InvalidRequest if there is no such toolset or client.
    """
    from mcp_server.server import parse_toolsets
    from orchestrator.requests.calls import working_folder
    from registry.errors import InvalidRequest
    from sources.clients import CLIENTS, find_client

    if client and find_client(client) is None:
        allowed = ", ".join(one.command or one.source for one in CLIENTS)
        raise InvalidRequest("No such client.", f"--client: given {client!r}; allowed: {allowed}")
    project_folder = os.path.abspath(os.path.join(folder or "", project)) if project else None
    return WindowOptions(parse_toolsets(toolsets), project_folder or working_folder(folder), client or "", captured)
