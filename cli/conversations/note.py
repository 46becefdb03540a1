"""`ctxr note`: print the note that a new chat gets at its start.

A client waits for it. Where the local process does not answer, an embedded registry is read without the database
layer, which takes half a second to import.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from cli.output import printable, printed
from cli.terminal import terminal
from orchestrator.answer.digests.quick_note import is_switched_off, quick_note
from orchestrator.sync.spool import registry_home


def _lines(result: dict[str, Any]) -> Iterator[str]:
    if result["note"]:
        yield printable(result["note"])


@click.command()
@click.argument("folder", default=".", help="The folder that the chat works in.")
@click.option("--session", metavar="ID", help="The new chat itself, which is left out.")
@click.option("--prompt", metavar="TEXT", help="Answer this prompt instead, if a past conversation clearly does.")
@click.option("--compacted", is_flag=True, help="Tell that session what its compaction dropped instead.")
@printed(_lines)
def note(folder: str, session: str | None, prompt: str | None, compacted: bool) -> dict[str, Any]:
    """Print the note that a new chat in a folder gets at its start (at most 300 tokens).

    After a compaction it tells what the client's summary does not (at most 1500
    characters): decisions, commands, files, failures. With a prompt it quotes the past conversation that answers it
    (at most 600 characters), or says nothing. The hooks of `ctxr install` pass it to clients that accept one.
    CTXR_START_NOTE=off switches the first two off, CTXR_HINTS=off the last.
    """
    where = os.path.abspath(os.path.join(terminal().folder, Path(folder).expanduser()))
    home = Path(registry_home())
    if is_switched_off(home, "hints" if prompt else "start_note"):
        return {"note": "", "tokens": 0, "told_of": []}
    if prompt:
        from cli.operations import run_operation

        return {"note": run_operation("hint", {"text": prompt, "session_id": session})["hint"]}
    result = None if terminal().run or compacted else quick_note(home, where, session)
    if result is None:
        from cli.operations import run_operation  # imports all operations' models

        outcome = run_operation("note", {"folder": where, "session_id": session, "is_compacted": compacted})
        result = {name: outcome[name] for name in ("note", "tokens", "told_of")}
    return result
