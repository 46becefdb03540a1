"""`ctxr install` and `ctxr uninstall`: connect a client by changing its settings."""

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import click

from cli.connect.connections import changes_of, connection_of, write_changes
from cli.connect.installation import INSTALLABLE, server_of
from cli.connect.settings_files import Rewrite
from cli.connect.snippets import this_program, this_server, write_launcher
from cli.output import confirm, yes_option
from cli.shared.place import current_folder, this_place
from registry.extras import uninstall_command
from registry.settings import default_home, read_settings
from sources.base import Places
from sources.client import Client

WITH_PROJECT = [client for client in INSTALLABLE.values() if client.project_option]

client_argument = click.argument(
    "client",
    type=click.Choice(list(INSTALLABLE)),
    metavar="CLIENT",
    required=False,
    help=f"One of {', '.join(INSTALLABLE)}.",
)
project_option = click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    metavar="FOLDER",
    help=" ".join(f"{each.name}: {each.project_option}." for each in WITH_PROJECT),
)


@click.command()
@client_argument
@click.option("--all", "is_all", is_flag=True, help="Every client on this machine.")
@project_option
@yes_option
def install(client: str | None, is_all: bool, project: Path | None, yes: bool) -> None:
    """Connect CLIENT: its list of MCP servers, its hooks, Cursor's rule.

    Shows the changes and asks. The rest of each file stays as it is. A file that
    cannot hold keys is copied to the registry's folder first. May be run again.
    """
    server = this_server()
    chosen = _chosen(client, is_all, project)
    if is_all:
        places = Places(Path.home(), os.environ)
        chosen = [known for known in chosen if connection_of(known, places).is_here]
        if not chosen:
            click.echo(f"None of these is on this machine: {', '.join(INSTALLABLE)}.")
    changes = {
        known.source: changes_of(known, Places(Path.home(), os.environ), project, installs=True) for known in chosen
    }
    _carry_out([change for some in changes.values() for change in some], yes)
    write_launcher(this_program())
    for known in chosen:
        if not changes[known.source]:
            click.echo(f"{known.name} is connected already; nothing to change.")
            continue
        click.echo(f"{known.name}: {known.next_step}")
        if known.link:
            click.echo(f"  This link adds the server alone: {server.link(known)}")
    if place := this_place():  # start the process, which also records what a cold window answers
        for known in chosen:
            words = server_of(known, server).words[len(server.command) :]
            connection = place.reach({"want": "window", "words": words, "folder": current_folder()})
            if connection:
                connection.close()


@click.command()
@client_argument
@click.option("--all", "is_all", is_flag=True, help="Every connected client.")
@project_option
@yes_option
def uninstall(client: str | None, is_all: bool, project: Path | None, yes: bool) -> None:
    """Remove from CLIENT's settings what `ctxr install` added, and nothing else.

    The registry keeps all conversations; --all prints the command that removes
    these too, and the program.
    """
    chosen = _chosen(client, is_all, project)
    changes = [
        change
        for known in chosen
        for change in changes_of(known, Places(Path.home(), os.environ), project, installs=False)
    ]
    if not changes:
        name = "No client is connected" if is_all else f"{chosen[0].name} is not connected"
        click.echo(f"{name}; nothing to change.")
    _carry_out(changes, yes)
    if is_all:
        click.echo(f"To remove all conversations and the program too: {_removal()}")


def _removal() -> str:
    homes = dict.fromkeys((read_settings().home, default_home()))  # the launcher stands in the usual one
    folders = [str(home) for home in homes if home.exists()]
    is_windows = os.name == "nt"
    words = ["rmdir", "/s", *folders] if is_windows else ["rm", "-r", *folders]
    remove = [subprocess.list2cmdline(words) if is_windows else shlex.join(words)] if folders else []
    return " && ".join([*remove, uninstall_command()])


def _chosen(name: str | None, is_all: bool, project: Path | None) -> list[Client]:
    if bool(name) == is_all:
        raise click.UsageError(f"Either a CLIENT, one of {', '.join(INSTALLABLE)}; or --all.")
    if project and (name is None or INSTALLABLE[name] not in WITH_PROJECT):
        able = " and ".join(each.command for each in WITH_PROJECT)
        raise click.UsageError(f"--project is for {able}: {name or 'the others'} is connected for all folders.")
    return [INSTALLABLE[name]] if name else list(INSTALLABLE.values())


def _carry_out(changes: Sequence[Rewrite], is_agreed: bool) -> None:
    for change in changes:
        for line in change.diff():
            click.secho(line, fg={"+": "green", "-": "red", "@": "cyan"}.get(line[:1]))
    if changes and not is_agreed:
        confirm("Write this?")
    for change, copy in write_changes(changes):
        kept = f" (before: {copy})" if copy else ""
        click.echo(f"{'wrote' if change.after is not None else 'removed'} {change.file}{kept}")
