"""`ctxr migrate` and `ctxr project move`: assign sessions to another project folder."""

from collections.abc import Iterator
from typing import Any

import click

from cli.operations import full_path, id_argument, run_operation
from cli.output import counted, one_line, printed

in_cursor_option = click.option("--in-cursor", is_flag=True, help="Also inside Cursor's database; quit Cursor first.")
copy_option = click.option(
    "--copy",
    "mode",
    flag_value="copy",
    default="move",
    help="With --in-cursor: keep the old session and make a copy with a new id.",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Only say which sessions would move.")


def _lines(done: dict[str, Any]) -> Iterator[str]:
    is_dry, in_cursor = done["dry_run"], done.get("in_cursor")
    verb = "copied" if click.get_current_context().params.get("mode") == "copy" else "moved"
    for one in done["moves"]:
        yield one_line(f"{one['channel']}: {one['from'] or 'General'} -> {one['to']}")
    yield f"{counted(done['successCount'], 'session')} {'would be ' if is_dry else ''}{verb}."
    if in_cursor:
        yield f"In Cursor's database: {in_cursor['values']} values {'would change' if is_dry else 'changed'}."
        if verb == "copied" and not is_dry:
            yield "The copies come in with the next ctxr sync."
        if "journal" in in_cursor:
            yield f"To undo: ctxr migrate undo {in_cursor['journal']}"


@click.group()
def migrate() -> None:
    """Assign past sessions to another project folder.

    In the registry, and with --in-cursor also in Cursor's own list. Changes are
    written to a journal first; `ctxr migrate undo` reverts them.
    """


@migrate.command()
@id_argument
@click.argument("to", metavar="FOLDER", help="The project's folder.")
@in_cursor_option
@copy_option
@dry_run_option
@printed(_lines)
def session(session_id: str, to: str, **options: Any) -> dict[str, Any]:
    """Move one session, or copy it in Cursor."""
    return run_operation("migrate", {"to": full_path(to), **options}, session_id)


@migrate.command()
@click.argument("journal", help="The file that the move has named.")
@printed(_lines)
def undo(journal: str) -> dict[str, Any]:
    """Revert a move or copy that was made in Cursor's database."""
    return run_operation("migrate", {"undo": full_path(journal)})


@migrate.command()
@click.argument("old", help="The former folder.")
@click.argument("new", help="The folder now.")
@in_cursor_option
@copy_option
@dry_run_option
@printed(_lines)
def workspace(old: str, new: str, **options: Any) -> dict[str, Any]:
    """Move all sessions of a folder and its subfolders, or copy them in Cursor."""
    query = {"workspace": full_path(old), "to": full_path(new), **options}
    return run_operation("migrate", query)


@click.group()
def project() -> None:
    """Manage the folders that sessions belong to."""


project.add_command(click.Command("move", callback=workspace.callback, params=workspace.params, help=workspace.help))
