"""`ctxr install` and `ctxr uninstall`: a client's own settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import click

from cli.connect.client_version import for_its_version
from cli.connect.connections import connection_of
from cli.connect.emptied import remember, what_was
from cli.connect.installation import INSTALLABLE, Edit, Part, parts_of
from cli.connect.jsonc import is_bare
from cli.connect.settings_files import Rewrite, apply, rewrite
from cli.connect.snippets import StdioServer, this_server
from sources.base import Places
from sources.client import Client

OF_A_PROJECT = [client for client in INSTALLABLE.values() if client.project_option]
"""Those that can keep something of us in a project's folder."""


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
    help=" ".join(f"{each.name}: {each.project_option}." for each in OF_A_PROJECT),
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


@click.command()
@client_argument
@click.option("--all", "is_all", is_flag=True, help="Every client that is on this machine.")
@project_option
@click.option(
    "--bundle",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Claude Desktop: write a bundle (.mcpb) to install by a double click.",
)
@yes_option
def install(client: str | None, is_all: bool, project: Path | None, bundle: Path | None, yes: bool) -> None:
    """Connect CLIENT: its list of MCP servers, its hooks, Cursor's rule.

    Shows what will change and asks. What else is in the files stays as it is, and a
    copy is kept beside each that can hold no key or token. May be repeated.
    """
    server = this_server()
    if bundle:
        _write_bundle(_checked(client, is_all, project)[0], server, bundle, yes)
        return
    chosen = [known for known in _checked(client, is_all, project) if not is_all or _is_here(known)]
    if not chosen:
        click.echo(f"None of these is on this machine: {', '.join(INSTALLABLE)}.")
    changed = {known.source: _installing(known, server, project) for known in chosen}
    _carry_out([change for changes in changed.values() for change in changes], yes)
    for known in chosen:
        _tell(known, server, is_new=bool(changed[known.source]), is_in_project=bool(project))


@click.command()
@client_argument
@click.option("--all", "is_all", is_flag=True, help="Every client that is connected.")
@project_option
@yes_option
def uninstall(client: str | None, is_all: bool, project: Path | None, yes: bool) -> None:
    """Take out of CLIENT's settings what `ctxr install` put there, and nothing else.

    The registry keeps all conversations.
    """
    chosen = _checked(client, is_all, project)
    changes = [change for known in chosen for change in _uninstalling(known, project)]
    if not changes:
        click.echo(
            f"{'No client' if is_all else chosen[0].name} is {'' if is_all else 'not '}connected; nothing to change."
        )
    _carry_out(changes, yes)


def _checked(name: str | None, is_all: bool, project: Path | None) -> list[Client]:
    if bool(name) == is_all:
        raise click.UsageError(f"Either a CLIENT, one of {', '.join(INSTALLABLE)}; or --all.")
    if project and (name is None or INSTALLABLE[name] not in OF_A_PROJECT):
        able = " and ".join(each.command for each in OF_A_PROJECT)
        raise click.UsageError(f"--project is for {able}: {name or 'the others'} is connected for all folders.")
    return [INSTALLABLE[name]] if name else list(INSTALLABLE.values())


def _is_here(client: Client) -> bool:
    return connection_of(client, Places(Path.home(), os.environ)).is_here


def _installing(client: Client, server: StdioServer, project: Path | None) -> list[Rewrite]:
    parts = parts_of(for_its_version(client), server, Places(Path.home(), os.environ), project)
    return [change for file, some in _by_file(parts) if (change := _rewrite(file, some, lambda part: part.install))]


def _uninstalling(client: Client, project: Path | None) -> list[Rewrite]:
    parts = parts_of(client, this_server(), Places(Path.home(), os.environ), project)
    changes = ((_rewrite(file, some, lambda part: part.uninstall), some) for file, some in _by_file(parts))
    return [_as_it_was(change, some) if change.after is None else change for change, some in changes if change]


def _as_it_was(change: Rewrite, parts: Sequence[Part]) -> Rewrite:
    only_us = _edited("", parts, lambda part: part.install)
    return replace(
        change,
        after=what_was(change.file),
        is_private=change.is_private or change.before == only_us.rstrip("\n") + "\n",
    )


def _by_file(parts: Iterable[Part]) -> Iterable[tuple[Path, list[Part]]]:
    files: dict[Path, list[Part]] = {}
    for part in parts:
        files.setdefault(part.file, []).append(part)
    return files.items()


def _rewrite(file: Path, parts: Sequence[Part], edit_of: Callable[[Part], Edit]) -> Rewrite | None:
    return rewrite(file, lambda text: _edited(text, parts, edit_of), any(part.is_private for part in parts))


def _edited(text: str, parts: Sequence[Part], edit_of: Callable[[Part], Edit]) -> str:
    for part in parts:
        text = edit_of(part)(text)
    return text


def _tell(client: Client, server: StdioServer, *, is_new: bool, is_in_project: bool) -> None:
    if not is_new:
        click.echo(f"{client.name} is connected already; nothing to change.")
    else:
        click.echo(f"{client.name}: {client.then}")
        if client.link:
            click.echo(f"  {server.link(client)}")
    if client.rule and not is_in_project:
        click.echo(f"The rule for {client.name} belongs to a project: ctxr install {client.command} --project FOLDER")


def _write_bundle(client: Client, server: StdioServer, file: Path, is_agreed: bool) -> None:
    if not client.takes_bundle or file.suffix != ".mcpb":
        able = " and ".join(each.command for each in INSTALLABLE.values() if each.takes_bundle)
        raise click.UsageError(f"--bundle is for {able}, and the FILE ends in .mcpb")
    from cli.connect.bundle import bundle

    if file.exists() and not is_agreed:
        click.confirm(f"{file} exists. Write it anew?", abort=True)
    file.write_bytes(bundle(server))
    click.echo(f"wrote {file}\nOpen it with {client.name}: a double click, or Settings, Extensions.")


def _carry_out(changes: Sequence[Rewrite], is_agreed: bool) -> None:
    """Show, ask, write. Abort if the user does not want it."""
    for change in changes:
        for line in change.diff():
            click.secho(line, fg={"+": "green", "-": "red", "@": "cyan"}.get(line[:1]))
    if changes and not is_agreed:
        click.confirm("Write this?", abort=True)
    for change in changes:
        copy = apply(change)
        if change.before is not None and change.after is not None:
            remember(change.file, change.before if is_bare(change.before) else None)
        elif change.after is None:
            remember(change.file, None)
        click.echo(
            f"{'wrote' if change.after is not None else 'removed'} {change.file}"
            + (f" (before: {copy.name})" if copy else "")
        )
