"""`ctxr open`: open the dashboard, signed in."""

from __future__ import annotations

from urllib.parse import quote

import click

from cli.operations import SessionId, run_operation
from cli.output import TerminalError
from registry.settings import read_settings


@click.command("open")
@click.argument(
    "session_id", metavar="[ID]", required=False, type=SessionId(), help="A session to show, as in `ctxr show`."
)
def open_page(session_id: str | None) -> None:
    """Print a link to the dashboard, or to a session, and open it.

    The link signs you in once, within an hour: you get in even where a token is
    needed.
    """
    from cli.running.addresses import is_registry, local_address
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
