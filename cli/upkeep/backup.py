"""`ctxr backup`: write the registry and the clients' histories to one file, and restore it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from cli.operations import full_path, run_operation
from cli.output import as_json_option, counted, local_time, one_line, printed, show
from registry.errors import ErrorCode

path_argument = click.argument("path", help="The backup's file, or its name in the backups folder.")


@click.group()
def backup() -> None:
    """Back up and restore the whole registry."""


def _created_lines(made: dict[str, Any]) -> Iterator[str]:
    yield made["path"]
    yield _contents(made["manifest"])
    for store in made["manifest"]["stores"]:
        for skipped in store.get("skipped", ()):
            click.echo(f"  not included: {one_line(skipped)}", err=True)


@backup.command()
@click.argument("path", required=False, help="A new .zip file. Default: one in the backups folder.")
@click.option("--no-stores", is_flag=True, help="Only the registry, not the clients' own histories.")
@printed(_created_lines)
def create(path: str | None, no_stores: bool) -> dict[str, Any]:
    """Write a backup: the registry, and the histories that clients keep.

    The registry stays in use meanwhile. Credentials are left out.
    """
    made = run_operation("create_backup", {"path": full_path(path) if path else None, "stores": not no_stores})
    return {name: made[name] for name in ("path", "manifest")}


def _list_lines(found: dict[str, Any]) -> Iterator[str]:
    for one in found["backups"]:
        yield one["path"]
        yield f"  {_contents(one['manifest'])}" if one["manifest"] else f"  damaged: {one['error']}"
    if not found["backups"]:
        click.echo("No backups yet; ctxr backup create makes one.", err=True)


@backup.command("list")
@printed(_list_lines)
def list_backups() -> dict[str, Any]:
    """List the backups in the backups folder, newest first."""
    return {"backups": run_operation("list_backups", {})["backups"]}


@backup.command()
@path_argument
@as_json_option
def validate(path: str, as_json: bool) -> None:
    """Compare every part of a backup with its SHA-256.

    Damaged parts are named, and the exit status is 1.
    """
    checked = run_operation("validate_backup", {"path": _backup_path(path)})
    if checked["valid"] or as_json:
        show(checked, as_json, lambda it: [f"{it['parts']} parts are undamaged. {_contents(it['manifest'])}"])
    if not checked["valid"]:
        click.echo(f"error: {ErrorCode.STORAGE_ERROR}: The backup is damaged.", err=True)
        for damage in checked["damaged"]:
            click.echo(f"damaged part: {damage['part']}: {damage['why']}", err=True)
        sys.exit(1)


@backup.command()
@path_argument
@click.option("--rest", is_flag=True, help="Restore what is left of a damaged backup.")
@click.option("--stores", "stores_to", metavar="FOLDER", help="Also write the clients' histories into a new folder.")
@click.option("--dry-run", is_flag=True, help="Restore into a temporary place only.")
@as_json_option
def restore(path: str, rest: bool, stores_to: str | None, dry_run: bool, as_json: bool) -> None:
    """Replace everything in the registry by a backup.

    The backup is checked and tried out in a temporary place, and the present
    contents are backed up first. Then all of it is replaced at once, or nothing.
    """
    folder = full_path(stores_to) if stores_to else None
    query = {"path": _backup_path(path), "rest": rest, "stores_to": folder, "dry_run": dry_run}
    show(run_operation("restore_backup", query), as_json, lambda done: _restored_lines(done, stores_to, dry_run))


def _restored_lines(done: dict[str, Any], stores_to: str | None, is_dry: bool) -> Iterator[str]:
    messages = counted(done["messagesRestored"], "message")
    outcome = "would be restored" if is_dry else "restored"
    yield f"{counted(done['sessionsRestored'], 'session')} with {messages} {outcome}."
    if done["messagesForgotten"]:
        yield f"Of these, forgotten since the backup and not restored: {counted(done['messagesForgotten'], 'message')}."
    if done["filesRestored"]:
        yield f"{done['filesRestored']} files of clients were written to {stores_to}."
    if done["safety_copy"]:
        yield f"The previous contents: {done['safety_copy']}"
    for damage in done["damaged"]:
        click.echo(f"lost with a damaged part: {damage['part']}: {damage['why']}", err=True)


def _backup_path(path: str) -> str:
    """Return the full path of an existing file; anything else is a name in the backups folder."""
    return full_path(path) if Path(path).expanduser().exists() else path


def _contents(manifest: dict[str, Any]) -> str:
    stats = manifest.get("stats", {})
    made = local_time(manifest["createdAt"]) if "createdAt" in manifest else "unknown"
    counts = [counted(stats["sessionCount"], "session"), counted(stats["messageCount"], "message")]
    if files := sum(store["files"] for store in manifest.get("stores", ())):
        counts.append(f"{files} files of clients")
    return f"{made}: {', '.join(counts)}, {stats['fileSize']:,} bytes"
