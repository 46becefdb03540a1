"""`ctxr migrate` and `ctxr project move`: sessions whose folder is another one now."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from cli.operations import id_argument, operation, run_operation
from cli.output import as_json_option, one_line, print_json

dry_run_option = click.option("--dry-run", is_flag=True, help="Only say which sessions would move.")


in_cursor_option = click.option(
    "--in-cursor", is_flag=True, help="Also inside Cursor's own database, while Cursor does not run."
)

_DONE = {
    (False, False): "moved",
    (False, True): "would move",
    (True, False): "copied; the copies come in with the next ctxr sync",
    (True, True): "would be copied",
}
_MODES = {False: "move", True: "copy"}
copy_option = click.option(
    "--copy", "is_copy", is_flag=True, help="With --in-cursor: the old one stays, a copy with a new id is made."
)


@click.group()
def migrate() -> None:
    """Let past sessions belong to another project folder.

    In the registry, and with --in-cursor in Cursor's own list, too. Quit Cursor
    for that; what is changed is noted first, and `ctxr migrate undo` puts it back.
    """


@migrate.command()
@id_argument
@click.argument("to", metavar="FOLDER", help="The project's folder.")
@in_cursor_option
@copy_option
@dry_run_option
@as_json_option
def session(session_id: str, to: str, in_cursor: bool, is_copy: bool, dry_run: bool, as_json: bool) -> None:
    """Move one session, or copy it in Cursor."""
    query = {"to": _path(to), "dry_run": dry_run, "in_cursor": in_cursor, "mode": _MODES[is_copy]}
    _show(run_operation(operation("migrate", query, session_id)), as_json, is_copy)


@migrate.command()
@click.argument("journal", help="The file that the move has named.")
@as_json_option
def undo(journal: str, as_json: bool) -> None:
    """Put back a move or a copy that was made in Cursor's database."""
    _show(run_operation(operation("migrate", {"undo": _path(journal)})), as_json)


@migrate.command()
@click.argument("old", help="The folder as it was called.")
@click.argument("new", help="Where it is now.")
@in_cursor_option
@copy_option
@dry_run_option
@as_json_option
def workspace(old: str, new: str, in_cursor: bool, is_copy: bool, dry_run: bool, as_json: bool) -> None:
    """Move all sessions of a folder, and of the folders in it, or copy them in Cursor."""
    given = {"dry_run": dry_run, "in_cursor": in_cursor, "mode": _MODES[is_copy]}
    query = {"workspace": _path(old), "to": _path(new), **given}
    _show(run_operation(operation("migrate", query)), as_json, is_copy)


@click.group()
def project() -> None:
    """Look after the folders that sessions belong to."""


project.add_command(click.Command("move", callback=workspace.callback, params=workspace.params, help=workspace.help))


def _path(given: str) -> str:
    return os.path.abspath(Path(given).expanduser())


def _show(done: dict[str, Any], as_json: bool, is_copy: bool = False) -> None:
    if as_json:
        print_json({name: value for name, value in done.items() if name != "success"})
        return
    would = _DONE[is_copy, done["dry_run"]]
    for one in done["moves"]:
        click.echo(one_line(f"{one['channel']}: {one['from'] or 'General'} -> {one['to']}"))
    click.echo(f"{done['successCount']} sessions {would}.")
    if there := done.get("in_cursor"):
        click.echo(
            f"In Cursor's database: {there['values']} values {'would change' if done['dry_run'] else 'changed'}."
        )
    if there and "journal" in there:
        click.echo(f"To put it back: ctxr migrate undo {there['journal']}")
