"""`ctxr note`: what a new chat is told at its start."""

from __future__ import annotations

import os
from pathlib import Path

import click

from cli.operations import operation, run_operation
from cli.output import as_json_option, print_json, printable
from cli.terminal import terminal
from registry.settings import read_settings


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
    if read_settings().start_note == "off":
        told = {"note": "", "tokens": 0, "told_of": []}
    else:
        outcome = run_operation(operation("note", {"folder": where, "session_id": session}))
        told = {name: outcome[name] for name in ("note", "tokens", "told_of")}
    if as_json:
        print_json(told)
    elif told["note"]:
        click.echo(printable(str(told["note"])))
