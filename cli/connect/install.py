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
from cli.shared.process_handle import current_folder, current_handle
from registry.extras import uninstall_command
from registry.settings import default_home, read_settings
from sources.base import Paths
from sources.client import Client

WITH_PROJECT = [client for client in INSTALLABLE.values() if client.project_option]

client_argument = click.argument(
    "client",
    type=click.Choice(list(INSTALLABLE)),
    metavar="CLIENT",
    required=False,
    help=f"One of {', '.join(INSTALLABLE)}.",
)
_PROJECT_FOLDER = click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path)


@click.command()
@client_argument
@click.option("--all", "is_all", is_flag=True, help="Every client on this machine.")
@click.option(
    "--project",
    type=_PROJECT_FOLDER,
    metavar="FOLDER",
    help=" ".join(f"{each.name}: {each.project_option}." for each in WITH_PROJECT),
)
@yes_option
def install(client: str | None, is_all: bool, project: Path | None, yes: bool) -> None:
    """Connect CLIENT: its list of MCP servers, its hooks, Cursor's rule.

    Shows the changes and asks. The rest of each file stays as it is. A file that
    cannot hold keys is copied to the registry's folder first. May be run again.
    """
    server = this_server()
    clients, paths = _chosen(client, is_all, project), Paths(Path.home(), os.environ)
    if is_all:
        clients = [each for each in clients if connection_of(each, paths).is_here]
        if not clients:
            click.echo(f"None of these is on this machine: {', '.join(INSTALLABLE)}.")
    changes = {each.source: changes_of(each, paths, project, installs=True) for each in clients}
    _confirm_and_write([change for some in changes.values() for change in some], yes)
    write_launcher(this_program())
    for each in clients:
        if not changes[each.source]:
            click.echo(f"{each.name} is connected already; nothing to change.")
            continue
        click.echo(f"{each.name}: {each.next_step}")
        if each.link:
            click.echo(f"  This link adds the server alone: {server.link(each)}")
    if handle := current_handle():  # start the process, which also records what a cold window answers
        for each in clients:
            words = server_of(each, server).words[len(server.command) :]
            connection = handle.reach({"want": "window", "words": words, "folder": current_folder()})
            if connection:
                connection.close()


@click.command()
@client_argument
@click.option("--all", "is_all", is_flag=True, help="Every connected client.")
@click.option(
    "--project",
    type=_PROJECT_FOLDER,
    metavar="FOLDER",
    help=f"The FOLDER given to `ctxr install`: {', '.join(each.name for each in WITH_PROJECT)}.",
)
@yes_option
def uninstall(client: str | None, is_all: bool, project: Path | None, yes: bool) -> None:
    """Remove from CLIENT's settings what `ctxr install` added, and nothing else.

    The registry keeps all conversations; --all prints the command that removes
    these too, and the program.
    """
    clients, paths = _chosen(client, is_all, project), Paths(Path.home(), os.environ)
    changes = [change for each in clients for change in changes_of(each, paths, project, installs=False)]
    if not changes:
        name = "No client is connected" if is_all else f"{clients[0].name} is not connected"
        click.echo(f"{name}; nothing to change.")
    _confirm_and_write(changes, yes)
    if is_all:
        click.echo(f"To remove all conversations and the program too: {_removal_command()}")


def _removal_command() -> str:
    homes = dict.fromkeys((read_settings().home, default_home()))  # the launcher is in the default one
    folders = [str(home) for home in homes if home.exists()]
    is_windows = os.name == "nt"
    words = ["rmdir", "/s", *folders] if is_windows else ["rm", "-r", *folders]
    remove = [subprocess.list2cmdline(words) if is_windows else shlex.join(words)] if folders else []
    return " && ".join([*remove, uninstall_command()])


def _chosen(name: str | None, is_all: bool, project: Path | None) -> list[Client]:
    if bool(name) == is_all:
        raise click.UsageError(f"Give a CLIENT, one of {', '.join(INSTALLABLE)}, or --all.")
    if project and (name is None or INSTALLABLE[name] not in WITH_PROJECT):
        able = " and ".join(each.command for each in WITH_PROJECT)
        raise click.UsageError(f"--project is for {able}: {name or 'the others'} is connected for all folders.")
    return [INSTALLABLE[name]] if name else list(INSTALLABLE.values())


def _confirm_and_write(changes: Sequence[Rewrite], is_confirmed: bool) -> None:
    for change in changes:
        for line in change.diff():
            click.secho(line, fg={"+": "green", "-": "red", "@": "cyan"}.get(line[:1]))
    if changes and not is_confirmed:
        confirm("Write this?")
    for change, copy in write_changes(changes):
        copy_note = f" (before: {copy})" if copy else ""
        click.echo(f"{'wrote' if change.after is not None else 'removed'} {change.file}{copy_note}")
