"""`ctxr note`: print the note that a new chat gets at its start.

A client waits for it. If the local process does not answer, an embedded registry is read without the database
layer, which takes half a second to import.
"""

import json
import os
from pathlib import Path
from typing import Any

import click

from cli.output import printable, printed
from cli.terminal import terminal
from orchestrator.answer.digests.quick_note import has_no_hints, is_switched_off, quick_note
from orchestrator.sync.spool import registry_home
from registry.domain import preview_of


@click.command()
@click.argument("folder", default=".", help="The folder that the chat works in.")
@click.option("--session", metavar="ID", help="The new chat itself, which is not listed.")
@click.option("--prompt", metavar="TEXT", help="Answer this prompt instead, if a past conversation clearly does.")
@click.option("--act", metavar="JSON", help="Print a warning about this command or edit instead.")
@click.option("--client", metavar="NAME", default="", help="The client that asks: hints can be off for it.")
@click.option("--compacted", is_flag=True, help="Print what the compaction of that session dropped instead.")
@printed(lambda result: [printable(result["note"])] if result["note"] else [])
def note(
    folder: str, session: str | None, prompt: str | None, act: str | None, client: str, compacted: bool
) -> dict[str, Any]:
    """Print the note that a new chat in a folder gets at its start (at most 300 tokens).

    --compacted: what the client's summary of the chat lacks (at most 1500
    characters): decisions, commands, files, failures. --prompt: lines of the past conversation that answers it (at most
    600 characters). --act: a warning from a past chat of the project (at most 200): the command failed and another one
    worked, or the opposite was decided. Often there is nothing to print. The hooks of `ctxr install` pass the output to
    clients that accept it. CTXR_START_NOTE=off switches the first two off, CTXR_HINTS=off the others, and
    CTXR_HINTS_OFF=codex,/home/kim/secret all hints for that client and in that folder.
    """
    chat_folder = os.path.abspath(os.path.join(terminal().folder, Path(folder).expanduser()))
    home = Path(registry_home())
    is_hint = bool(prompt or act)
    if has_no_hints(home, client, chat_folder) if is_hint else is_switched_off(home, "start_note"):
        return {"note": "", "tokens": 0, "told_of": []}
    if not (is_hint or compacted or terminal().run) and (found := quick_note(home, chat_folder, session)):
        return found
    from cli.operations import run_operation  # imports all operations' models

    if is_hint:
        prompt_query = {"text": prompt, "folder": chat_folder, "session_id": session}
        query = prompt_query if prompt else act_query(act or "", chat_folder, session)
        return {"note": run_operation("hint", query, source=client or "ctxr")["hint"] if query else ""}
    outcome = run_operation("note", {"folder": chat_folder, "session_id": session, "is_compacted": compacted})
    return {name: outcome[name] for name in ("note", "tokens", "told_of")}


def act_query(given: str, folder: str, session: str | None) -> dict[str, Any] | None:
    """Return the hint query for a tool call's parameters, given as JSON; None if the call changes nothing."""
    from orchestrator.answer.finding.before_act import act_of  # a start note does not need it

    try:
        act = act_of(json.loads(given))
    except ValueError as exc:
        raise click.BadParameter(f"not JSON: {exc}", param_hint="--act") from exc
    about = {"folder": folder, "session_id": session}
    return {"text": preview_of(act.command or act.file), "act": act._asdict(), **about} if act else None
