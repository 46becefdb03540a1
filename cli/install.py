"""`ctxr install` and `ctxr uninstall`: a client's own settings, and `ctxr hook`, which they call."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from cli.connect.installation import NAMES, OF_A_PROJECT, parts_of
from cli.connect.settings_files import Rewrite, apply, rewrite
from cli.connect.snippets import StdioServer, this_server

client_argument = click.argument(
    "client", type=click.Choice(list(NAMES)), metavar="CLIENT", help=f"One of {', '.join(NAMES)}."
)
project_option = click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    metavar="FOLDER",
    help="Cursor: put the rule into this project. VS Code: connect this project only.",
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")

NOTES = {
    "cursor": "Restart Cursor. The server alone can also be added by this link:",
    "claude-desktop": "Quit Claude Desktop completely, and start it again.",
    "claude-code": "Start Claude Code anew.",
    "vscode": "Start the server in VS Code: MCP: List Servers.",
    "codex": "Start Codex anew, and trust the hooks when it asks, or with /hooks.",
}
"""What the user does then."""

NO_RULE = "The rule for Cursor belongs to a project: ctxr install cursor --project FOLDER"


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
    _check(client, project)
    server = this_server()
    if bundle:
        _write_bundle(client, server, bundle, yes)
        return
    parts = parts_of(client, server, Path.home(), project)
    done = _carry_out((rewrite(part.file, part.install) for part in parts), yes)
    click.echo(NOTES[client] if done else f"{NAMES[client]} is connected already; nothing to change.")
    if client == "cursor":
        click.echo(f"  {server.cursor_link()}" if done else "", nl=done)
        click.echo("" if project else NO_RULE, nl=not project)


@click.command()
@client_argument
@project_option
@yes_option
def uninstall(client: str, project: Path | None, yes: bool) -> None:
    """Take out of CLIENT's settings what `ctxr install` put there, and nothing else.

    The registry keeps all conversations.
    """
    _check(client, project)
    parts = parts_of(client, this_server(), Path.home(), project)
    if not _carry_out((rewrite(part.file, part.uninstall) for part in parts), yes):
        click.echo(f"{NAMES[client]} is not connected; nothing to change.")


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("client", default="", metavar="CLIENT", help="cursor, claude-code or codex.")
@click.argument("event", default="", metavar="EVENT", help="The client's own name of the event.")
def hook(client: str, event: str) -> None:
    """Note what a client's hook tells. Clients run this; `ctxr install` sees to it.

    The event is read on standard input and kept in a file until the registry takes
    it: at once if `ctxr serve` runs, else with the next command. Always ends with
    status 0, so that a chat is never held up.
    """
    from cli.hook import run_hook

    run_hook(client, event)


def _check(client: str, project: Path | None) -> None:
    if project and client not in OF_A_PROJECT:
        raise click.UsageError(f"--project is for {' and '.join(OF_A_PROJECT)}: {client} is connected for all folders.")


def _write_bundle(client: str, server: StdioServer, file: Path, is_agreed: bool) -> None:
    if client != "claude-desktop" or file.suffix != ".mcpb":
        raise click.UsageError("--bundle is for claude-desktop, and the FILE ends in .mcpb")
    from cli.connect.bundle import bundle

    if file.exists() and not is_agreed:
        click.confirm(f"{file} exists. Write it anew?", abort=True)
    file.write_bytes(bundle(server))
    click.echo(f"wrote {file}\nOpen it with Claude Desktop: a double click, or Settings, Extensions.")


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
