"""`ctxr note`: what a new chat is told at its start.

A client waits for it. So where the local process does not answer at once, the registry is read from here, without what
makes a whole process start slowly: no model, no look at the clients' stores, no record of the run; and an embedded one
without the database layer.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from cli.output import as_json_option, print_json, printable
from cli.terminal import terminal
from orchestrator.sync.spool import registry_home
from registry.errors import StorageError
from registry.storage.file_probe import QuickLook, embedded_file, setting


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
    if setting(_home(), os.environ, "start_note") == "off":
        told = {"note": "", "tokens": 0, "told_of": []}
    else:
        told = _read_at_once(where, session) or _asked(where, session)
    if as_json:
        print_json(told)
    elif told["note"]:
        click.echo(printable(str(told["note"])))


def _home() -> Path:
    return Path(registry_home())


def _asked(folder: str, session: str | None) -> dict[str, Any]:
    from cli.operations import operation, run_operation  # all operations' models, which a note by itself does without

    outcome = run_operation(operation("note", {"folder": folder, "session_id": session}))
    return {name: outcome[name] for name in ("note", "tokens", "told_of")}


def _read_at_once(folder: str, session: str | None) -> dict[str, Any] | None:
    """The note out of the registry as it stands; None in the local process, or if its tables are not today's."""
    if terminal().run:
        return None
    file = embedded_file(_home(), os.environ)
    try:
        return _looked_up(file, folder, session) if file else _read(folder, session)
    except StorageError:
        return None


def _looked_up(file: Path, folder: str, session: str | None) -> dict[str, Any]:
    from orchestrator.answer.delivery import context_of
    from orchestrator.answer.digests.start_note import LOOKED_AT, READ, STANDING, Standing, told, without_the_new_one
    from orchestrator.answer.standing import where_it_stands

    if not file.is_file():
        return told([])
    with QuickLook(file) as look:
        others = without_the_new_one([row._asdict() for row in look.latest_channels(folder, READ)], session)
        standing = []
        for each in others[:STANDING]:
            end = [
                {**row._asdict(), "tool": row.payload.get("tool"), "context": context_of(row.role, row.payload)}
                for row in look.end_of(each["number"], LOOKED_AT)
            ]
            standing.append(Standing(each, where_it_stands(end)))
    return told(standing + [Standing(each, {}) for each in others[STANDING:]])


def _read(folder: str, session: str | None) -> dict[str, Any]:
    import asyncio

    from orchestrator.answer.digests.start_note import told
    from orchestrator.operations.note import latest_of
    from registry.settings import read_settings
    from registry.storage.database import Database

    database = Database(read_settings().url)
    try:
        latest, _ = asyncio.run(database.read(lambda tx: latest_of(tx, folder, session)))
    finally:
        database.close()
    return told(latest)
