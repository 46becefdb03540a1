"""`ctxr note`: what a new chat is told at its start.

A client waits for it. So where the local process does not answer at once, the registry is read from here, without what
makes a whole process start slowly: no model, no look at the clients' stores, no record of the run.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import click

from cli.output import as_json_option, print_json, printable
from cli.terminal import terminal
from registry.errors import StorageError
from registry.settings import Settings, read_settings


@click.command()
@click.argument("folder", default=".", help="The folder that the chat works in.")
@click.option("--session", metavar="ID", help="The chat itself, of which nothing is told.")
@as_json_option
def note(folder: str, session: str | None, as_json: bool) -> None:
    """Say what a new chat in a folder is told at its start, at most 300 tokens.

    The hooks of `ctxr install` give it to the clients that take a note in at the
    start. CTXR_START_NOTE=off switches that off.
    """
    where = os.path.abspath(os.path.join(terminal().folder, Path(folder).expanduser()))
    settings = read_settings()
    if settings.start_note == "off":
        told = {"note": "", "tokens": 0, "told_of": []}
    else:
        told = _read_at_once(settings, where, session) or _asked(where, session)
    if as_json:
        print_json(told)
    elif told["note"]:
        click.echo(printable(str(told["note"])))


def _asked(folder: str, session: str | None) -> dict[str, Any]:
    from cli.operations import operation, run_operation  # all operations' models, which a note by itself does without

    outcome = run_operation(operation("note", {"folder": folder, "session_id": session}))
    return {name: outcome[name] for name in ("note", "tokens", "told_of")}


def _read_at_once(settings: Settings, folder: str, session: str | None) -> dict[str, Any] | None:
    """The note out of the registry as it stands; None in the local process, or if its tables are not today's."""
    if terminal().run:
        return None
    from orchestrator.answer.start_note import latest_of, told
    from registry.storage.database import Database

    if not (settings.database_url or (settings.home / "registry.db").is_file()):
        return told([])
    database = Database(settings.url)
    try:
        latest, _ = asyncio.run(database.read(lambda tx: latest_of(tx, folder, session)))
    except StorageError:
        return None
    finally:
        database.close()
    return told(latest)
