"""`ctxr resume`: a past conversation goes on in another client."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import Any

import click

from cli.operations import id_argument, operation, run_operation
from cli.output import as_json_option, counted, print_json
from sources.writers import WRITERS


@click.command()
@id_argument
@click.option("--in", "client", type=click.Choice(list(WRITERS)), required=True, help="The client to go on in.")
@click.option("--last", type=click.IntRange(min=1), help="Only the last so many questions with their answers.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="What is older than fits is left out; default 100000.")
@click.option("--folder", type=click.Path(exists=True, file_okay=False), help="Start it here; default: its project.")
@click.option("--run", is_flag=True, help="Open it right away instead of printing the command.")
@click.option("--dry-run", is_flag=True, help="Say what would be written, and write nothing.")
@click.option("--undo", is_flag=True, help="Remove what was written last, unless the conversation has gone on there.")
@as_json_option
def resume(session_id: str, run: bool, as_json: bool, **options: Any) -> None:
    """Go on with a past conversation in another client.

    Writes it as a session of that client's own and prints the command that opens
    it. What is said there joins the same conversation. No file that is there is
    ever changed.

    \b
    ctxr resume 1 --in codex
    ctxr resume auth-design --in claude-code --last 20 --run
    """
    query = {"in": options.pop("client"), "session_id": session_id, **options}
    query["folder"] = os.path.abspath(query["folder"]) if query["folder"] else None
    outcome = run_operation(operation("resume", query))
    result = {name: value for name, value in outcome.items() if name != "success"}
    if as_json:
        print_json(result)
    elif "removed" in result:
        click.echo("\n".join(f"removed: {path}" for path in result["removed"]))
    elif run and not result.get("dry_run"):
        _open(result)
    else:
        click.echo("\n".join(_lines(result)))


def _lines(result: dict[str, Any]) -> list[str]:
    lines = []
    if "path" in result:
        left_out = f" ({result['left_out']} earlier ones left out)" if result["left_out"] else ""
        lines.append(counted(result["message_count"], "message") + left_out)
        lines.append(f"{'would write' if result['dry_run'] else 'written'}: {result['path']}")
    steps = [result[name] for name in ("before", "command") if name in result]
    return [*lines, " && ".join([f"cd {shlex.quote(result['folder'])}", *map(shlex.join, steps)])]


def _open(result: dict[str, Any]) -> None:
    """The client takes this process's place in the terminal."""
    place = {**os.environ, "PWD": result["folder"]}  # OpenCode believes it, not where it stands
    for step in ("before", "command"):
        if step in result:
            done = subprocess.run(result[step], cwd=result["folder"], env=place, check=False)  # noqa: S603, the writer's
            if done.returncode:
                raise click.exceptions.Exit(done.returncode)
