"""`ctxr resume`: continue a past conversation in another client."""

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from cli.operations import full_path, id_argument, run_operation
from cli.output import as_json_option, counted, show
from sources.writers import WRITERS


@click.command()
@id_argument
@click.option("--in", "client", type=click.Choice(list(WRITERS)), required=True, help="The client to continue in.")
@click.option("--last", type=click.IntRange(min=1), help="Only the last N questions with their answers.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Leave out older turns beyond this; default 100000.")
@click.option("--folder", type=click.Path(exists=True, file_okay=False), help="Start it here; default: its project.")
@click.option("--run", is_flag=True, help="Open the client instead of printing the command.")
@click.option("--dry-run", is_flag=True, help="Say what would be written, and write nothing.")
@click.option("--undo", is_flag=True, help="Remove what was written last, unless the conversation continued there.")
@as_json_option
def resume(session_id: str, client: str, run: bool, as_json: bool, folder: str | None, **options: Any) -> None:
    """Continue a past conversation in another client.

    Writes it as a session of that client and prints the command that opens it.
    Later messages there are added to the same conversation. Existing files are
    never changed.

    \b
    ctxr resume 1 --in codex
    ctxr resume auth-design --in claude-code --last 20 --run
    """
    query = {**options, "in": client, "session_id": session_id, "folder": full_path(folder) if folder else None}
    result = run_operation("resume", query)
    if run and not (as_json or "removed" in result or result.get("dry_run")):
        _open(result)
    else:
        show(result, as_json, _lines)


def _lines(result: dict[str, Any]) -> Iterator[str]:
    if "removed" in result:
        yield from (f"removed: {path}" for path in result["removed"])
        return
    if "path" in result:
        left_out = f" ({result['left_out']} earlier ones left out)" if result["left_out"] else ""
        yield counted(result["message_count"], "message") + left_out
        yield f"{'would write' if result['dry_run'] else 'written'}: {result['path']}"
    steps = [result[name] for name in ("before", "command") if name in result]
    yield " && ".join([f"cd {shlex.quote(result['folder'])}", *map(shlex.join, steps)])


def _open(result: dict[str, Any]) -> None:
    environment = {**os.environ, "PWD": result["folder"]}  # OpenCode takes its folder from PWD
    for step in ("before", "command"):
        if step in result:
            done = subprocess.run(result[step], cwd=result["folder"], env=environment, check=False)  # noqa: S603
            if done.returncode:
                raise click.exceptions.Exit(done.returncode)
            if step == "before":  # the client has imported it
                Path(result["path"]).unlink(missing_ok=True)
