"""`ctxr up`, `ctxr serve` and `ctxr open`: run the server, and open its dashboard."""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import click

from cli.operations import SessionId, run_operation
from cli.output import TerminalError
from cli.running.addresses import is_registry, local_address, shown_address
from orchestrator.sync.store_report import StoreReport
from registry.log import set_up_logging
from registry.settings import Settings, read_settings

host_option = click.option("--host", metavar="ADDRESS", help="Address to listen on. Default: CTXR_HOST, or 127.0.0.1.")
port_option = click.option(
    "--port", type=click.IntRange(1, 65535), metavar="PORT", help="Port to listen on. Default: CTXR_PORT, or 8765."
)


@click.command()
@host_option
@port_option
def up(**given: Any) -> None:
    """Start here: import this machine's histories, show how to connect, serve.

    While it runs it imports what your AI clients write, as they write it. May be
    run again at any time.
    """
    from cli.connect.snippets import this_program, write_launcher
    from cli.incoming.sync import Bars, skip_lines, summary

    settings, reported, page = _settings(given), set[tuple[str, str]](), ""
    with suppress(OSError):  # a read-only registry is served, too
        write_launcher(this_program())

    def ready(address: str) -> None:
        nonlocal page
        page = address
        click.echo(f"Context Registry answers at {local_address(settings)}/. Importing this machine's histories:")

    def report(reports: Sequence[StoreReport]) -> None:
        nonlocal page
        lines = list(skip_lines(reports, reported))  # for later imports: the summary of the first one counts them
        if page:  # the first import: what to do comes last, where people look
            bars.close()
            none = "none found; those that appear later are imported too."
            if settings.database_url.startswith("postgresql"):
                none = "none, because this registry is shared: `ctxr sync` imports those of this machine."
            lines = [summary(reports) if reports else none, welcome(settings, page)]
            page = ""
        for line in lines:
            click.echo(line)

    with Bars() as bars:
        _serve(settings, ready, report, bars)


def welcome(settings: Settings, page: str) -> str:
    """Return the text that ends the first start; `page` is the dashboard's address, with a code where one is needed."""
    from cli.connect.snippets import command_name, this_server
    from cli.running.exposure import SECRET_FILE

    address = local_address(settings)
    lines = [
        click.style("Context Registry is running.", bold=True) + f" Ctrl-C ends it. Trouble? {command_name()} doctor",
        f"  MCP, API    {address}/mcp, {address}/docs",
        f"  Registry    {shown_address(settings.url)}",
        f"Connect the clients of this machine: {command_name()} install --all",
        "Or paste this into the MCP settings of any other, and restart it:",
        "  " + re.sub(r"\n *", "", this_server().mcp_json()),
        "Then say to your AI: continue the conversation about ...",
    ]
    if "?" in page:
        secret = f"`Authorization: Bearer …` with the content of {settings.home / SECRET_FILE}"
        lines.append(f"This link signs in once. Programs send {secret}")
    return "\n".join([*lines, f"Open the dashboard: {page}"])


@click.command()
@host_option
@port_option
def serve(**given: Any) -> None:
    """Serve MCP, the HTTP API and the dashboard on one port.

    \b
    /      dashboard
    /mcp   MCP over streamable HTTP
    /bo    HTTP API, described at /docs

    While it runs it imports what AI clients on this machine write; for a shared
    registry on PostgreSQL use `ctxr sync` instead. Ctrl-C or SIGTERM ends it.

    Listening on an address that other machines reach requires a token (`ctxr token
    create`), and TLS or the address of a proxy that provides it.
    """
    from cli.incoming.sync import skip_lines

    settings, reported = _settings(given), set[tuple[str, str]]()

    def ready(page: str) -> None:
        click.echo(f"Context Registry at {local_address(settings)}, MCP at /mcp. Ctrl-C ends it.", err=True)
        if "?" in page:
            click.echo(f"To sign in, open once: {page}", err=True)

    def report(reports: Sequence[StoreReport]) -> None:
        for line in skip_lines(reports, reported):
            click.echo(line, err=True)

    _serve(settings, ready, report)


@click.command("open")
@click.argument(
    "session_id", metavar="[ID]", required=False, type=SessionId(), help="A session to show, as in `ctxr show`."
)
def open_page(session_id: str | None) -> None:
    """Print a link to the dashboard, or to a session, and open it.

    The link signs you in once, within an hour, even if a token is needed.
    """
    from cli.running.exposure import page_address

    settings = read_settings()
    path = "/"
    if session_id:
        session = run_operation("fetch", {"session_id": session_id, "message_limit": 1})["session"]
        path = f"/channels/{quote(session['channel'], safe='')}"
    if not is_registry(local_address(settings)):
        raise TerminalError("NOT_RUNNING", f"No server answers at {local_address(settings)}.", "ctxr up starts it")
    link = page_address(settings, is_open=False, path=path)
    click.echo(link)
    click.launch(link)


def _settings(given: dict[str, Any]) -> Settings:
    return read_settings(**{name: value for name, value in given.items() if value is not None})


def _serve(settings: Settings, *callbacks: Any) -> None:
    from cli.running.serve import serve_registry  # imports the whole server, which `ctxr -h` does not need

    set_up_logging(settings.log_format)
    serve_registry(settings, *callbacks)
