"""`ctxr backup`: everything that is kept, in one file, and back."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from cli.operations import operation, run_operation
from cli.output import as_json_option, counted, local_time, one_line, print_json
from registry.errors import ErrorCode

path_argument = click.argument("path", help="Its file, or its name in the folder of backups.")


@click.group()
def backup() -> None:
    """Back up everything that is kept, and put it back."""


@backup.command()
@click.argument("path", required=False, help="A new .zip file. Default: one in the folder of backups.")
@click.option("--no-stores", is_flag=True, help="Only the registry, not the clients' own histories.")
@as_json_option
def create(path: str | None, no_stores: bool, as_json: bool) -> None:
    """Write a backup: the registry, and the histories that clients keep.

    Everything goes on working meanwhile. What logs you in somewhere is left out.
    """
    query = {"path": path and os.path.abspath(Path(path).expanduser()), "stores": not no_stores}
    made = run_operation(operation("create_backup", query))
    if as_json:
        print_json({name: made[name] for name in ("path", "manifest")})
        return
    click.echo(made["path"])
    click.echo(_contents(made["manifest"]))
    for store in made["manifest"]["stores"]:
        for skipped in store.get("skipped", ()):
            click.echo(f"  not in it: {one_line(skipped)}", err=True)


@backup.command("list")
@as_json_option
def list_backups(as_json: bool) -> None:
    """List the backups in the folder of backups, newest first."""
    found = run_operation(operation("list_backups", {}))["backups"]
    if as_json:
        print_json({"backups": found})
        return
    for one in found:
        click.echo(one["path"])
        click.echo(f"  {_contents(one['manifest'])}" if one["manifest"] else f"  damaged: {one['error']}")
    if not found:
        click.echo("No backups yet; ctxr backup create makes one.", err=True)


@backup.command()
@path_argument
@as_json_option
def validate(path: str, as_json: bool) -> None:
    """Read every part of a backup and compare it with its SHA-256.

    Damaged parts are named, and the exit status is 1.
    """
    checked = run_operation(operation("validate_backup", {"path": _given(path)}))
    if as_json:
        print_json({name: value for name, value in checked.items() if name != "success"})
    elif checked["valid"]:
        click.echo(f"{checked['parts']} parts are whole. {_contents(checked['manifest'])}")
    if not checked["valid"]:
        click.echo(f"error: {ErrorCode.STORAGE_ERROR}: The backup is damaged.", err=True)
        for damage in checked["damaged"]:
            click.echo(f"damaged part: {damage['part']}: {damage['why']}", err=True)
        sys.exit(1)


@backup.command()
@path_argument
@click.option("--rest", is_flag=True, help="Of a damaged backup, what is left of it.")
@click.option("--stores", "stores_to", metavar="FOLDER", help="Write the clients' histories into a new folder, too.")
@click.option("--dry-run", is_flag=True, help="Try it in a temporary place, and change nothing.")
@as_json_option
def restore(path: str, rest: bool, stores_to: str | None, dry_run: bool, as_json: bool) -> None:
    """Put a backup in the place of everything the registry holds.

    It is checked, tried out in a temporary place, and what is there now is backed
    up first. Then all of it is exchanged at once, or nothing.
    """
    query = {
        "path": _given(path),
        "rest": rest,
        "stores_to": stores_to and os.path.abspath(Path(stores_to).expanduser()),
        "dry_run": dry_run,
    }
    done = run_operation(operation("restore_backup", query))
    if as_json:
        print_json({name: value for name, value in done.items() if name != "success"})
        return
    would = "would come back" if dry_run else "came back"
    messages = counted(done["messagesRestored"], "message")
    click.echo(f"{counted(done['sessionsRestored'], 'session')} with {messages} {would}.")
    if done["messagesForgotten"]:
        click.echo(f"Forgotten since, and still so: {counted(done['messagesForgotten'], 'message')} of these.")
    if done["filesRestored"]:
        click.echo(f"{done['filesRestored']} files of clients were written to {stores_to}.")
    if done["safety_copy"]:
        click.echo(f"What was there before: {done['safety_copy']}")
    for damage in done["damaged"]:
        click.echo(f"lost with a damaged part: {damage['part']}: {damage['why']}", err=True)


def _given(path: str) -> str:
    """A file here by its whole path, anything else as it is: a name in the folder of backups."""
    here = Path(path).expanduser()
    return str(here.absolute()) if here.exists() else path


def _contents(manifest: dict[str, Any]) -> str:
    stats = manifest.get("stats", {})
    made = local_time(manifest["createdAt"]) if "createdAt" in manifest else "unknown"
    files = sum(store["files"] for store in manifest.get("stores", ()))
    beside = f", {files} files of clients" if files else ""
    return (
        f"{made}: {counted(stats['sessionCount'], 'session')}, {counted(stats['messageCount'], 'message')}{beside},"
        f" {stats['fileSize']:,} bytes"
    )
