"""`ctxr install` and `ctxr uninstall`: a client's own settings, and `ctxr hook`, which they call."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import click

from cli.connect.installation import INSTALLABLE, parts_of
from cli.connect.settings_files import Rewrite, apply, rewrite
from cli.connect.snippets import StdioServer, this_server
from sources.base import Places
from sources.client import Client

OF_A_PROJECT = [client for client in INSTALLABLE.values() if client.project_option]
"""Those that can keep something of us in a project's folder."""


client_argument = click.argument(
    "client", type=click.Choice(list(INSTALLABLE)), metavar="CLIENT", help=f"One of {', '.join(INSTALLABLE)}."
)
project_option = click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    metavar="FOLDER",
    help=" ".join(f"{each.name}: {each.project_option}." for each in OF_A_PROJECT),
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


@click.command()
@client_argument
@project_option
@click.option(
    "--bundle",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Claude Desktop: write a bundle (.mcpb) to install by a double click.",
)
@yes_option
def install(client: str, project: Path | None, bundle: Path | None, yes: bool) -> None:
    """Connect CLIENT: its list of MCP servers, its hooks, Cursor's rule.

    Shows what will change and asks. What else is in the files stays as it is, and a
    copy of each is kept beside it. May be repeated.
    """
    known = _checked(client, project)
    server = this_server()
    if bundle:
        _write_bundle(known, server, bundle, yes)
        return
    parts = parts_of(known, server, Places(Path.home(), os.environ), project)
    if not _carry_out((rewrite(part.file, part.install) for part in parts), yes):
        click.echo(f"{known.name} is connected already; nothing to change.")
    else:
        click.echo(known.then)
        if known.link:
            click.echo(f"  {server.link(known)}")
    if known.rule and not project:
        click.echo(f"The rule for {known.name} belongs to a project: ctxr install {client} --project FOLDER")


@click.command()
@client_argument
@project_option
@yes_option
def uninstall(client: str, project: Path | None, yes: bool) -> None:
    """Take out of CLIENT's settings what `ctxr install` put there, and nothing else.

    The registry keeps all conversations.
    """
    known = _checked(client, project)
    parts = parts_of(known, this_server(), Places(Path.home(), os.environ), project)
    if not _carry_out((rewrite(part.file, part.uninstall) for part in parts), yes):
        click.echo(f"{known.name} is not connected; nothing to change.")


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("client", default="", metavar="CLIENT", help="cursor, claude-code or codex.")
@click.argument("event", default="", metavar="EVENT", help="The client's own name of the event.")
def hook(client: str, event: str) -> None:
    """Note what a client's hook tells. Clients run this; `ctxr install` sees to it.

    The event is read on standard input and kept in a file until the registry takes
    it: at once if `ctxr serve` runs, else with the next command. Always ends with
    status 0, so that a chat is never held up.
    """
    from cli.incoming.hook import run_hook

    run_hook(client, event)


def _checked(name: str, project: Path | None) -> Client:
    client = INSTALLABLE[name]
    if project and client not in OF_A_PROJECT:
        able = " and ".join(each.command for each in OF_A_PROJECT)
        raise click.UsageError(f"--project is for {able}: {name} is connected for all folders.")
    return client


def _write_bundle(client: Client, server: StdioServer, file: Path, is_agreed: bool) -> None:
    if not client.takes_bundle or file.suffix != ".mcpb":
        able = " and ".join(each.command for each in INSTALLABLE.values() if each.takes_bundle)
        raise click.UsageError(f"--bundle is for {able}, and the FILE ends in .mcpb")
    from cli.connect.bundle import bundle

    if file.exists() and not is_agreed:
        click.confirm(f"{file} exists. Write it anew?", abort=True)
    file.write_bytes(bundle(server))
    click.echo(f"wrote {file}\nOpen it with {client.name}: a double click, or Settings, Extensions.")


def _carry_out(rewrites: Iterable[Rewrite | None], is_agreed: bool) -> bool:
    """Show, ask, write. Whether there was anything to do; Abort if the user does not want it."""
    changes = [change for change in rewrites if change]
    for change in changes:
        for line in change.diff():
            click.secho(line, fg={"+": "green", "-": "red", "@": "cyan"}.get(line[:1]))
    if changes and not is_agreed:
        click.confirm("Write this?", abort=True)
    for change in changes:
        copy = apply(change)
        click.echo(
            f"{'wrote' if change.after else 'removed'} {change.file}" + (f" (before: {copy.name})" if copy else "")
        )
    return bool(changes)
