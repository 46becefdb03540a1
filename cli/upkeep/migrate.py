"""`ctxr migrate` and `ctxr project move`: sessions whose folder is another one now."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from cli.operations import id_argument, operation, run_operation
from cli.output import as_json_option, one_line, print_json

dry_run_option = click.option("--dry-run", is_flag=True, help="Only say which sessions would move.")


@click.group()
def migrate() -> None:
    """Let past sessions belong to another project folder.

    In the registry: the clients' own histories stay as they are.
    """


@migrate.command()
@id_argument
@click.argument("to", metavar="FOLDER", help="The project's folder.")
@dry_run_option
@as_json_option
def session(session_id: str, to: str, dry_run: bool, as_json: bool) -> None:
    """Move one session."""
    _show(run_operation(operation("migrate", {"to": _path(to), "dry_run": dry_run}, session_id)), as_json)


@migrate.command()
@click.argument("old", help="The folder as it was called.")
@click.argument("new", help="Where it is now.")
@dry_run_option
@as_json_option
def workspace(old: str, new: str, dry_run: bool, as_json: bool) -> None:
    """Move all sessions of a folder, and of the folders in it."""
    query = {"workspace": _path(old), "to": _path(new), "dry_run": dry_run}
    _show(run_operation(operation("migrate", query)), as_json)


@click.group()
def project() -> None:
    """Look after the folders that sessions belong to."""


project.add_command(click.Command("move", callback=workspace.callback, params=workspace.params, help=workspace.help))


def _path(given: str) -> str:
    return os.path.abspath(Path(given).expanduser())


def _show(done: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json({name: value for name, value in done.items() if name != "success"})
        return
    would = "would move" if done["dry_run"] else "moved"
    for one in done["moves"]:
        click.echo(one_line(f"{one['channel']}: {one['from'] or 'General'} -> {one['to']}"))
    click.echo(f"{done['successCount']} sessions {would}.")
