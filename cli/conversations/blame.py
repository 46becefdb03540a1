"""`ctxr blame`: the conversations in which a line, a file or a commit came about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from cli.operations import SessionId, operation, run_operation
from cli.output import as_json_option, print_json, printable
from cli.terminal import terminal


@click.command()
@click.argument("file", required=False, metavar="FILE[:LINE]", help="A file in a git repository, or one line of it.")
@click.option("--commit", help="What this commit changed, instead of a file.")
@click.option("--session", "session_id", type=SessionId(), help="The other way: the commits made from a session.")
@click.option(
    "--limit", type=click.IntRange(min=1, max=100), default=5, show_default=True, help="Conversations, or commits."
)
@as_json_option
def blame(file: str | None, commit: str | None, session_id: str | None, limit: int, as_json: bool) -> None:
    """Find the conversations in which a line, a file or a commit came about.

    Lays git's history beside what was said: when, in which project, which files
    tools changed and which lines were written. The best comes first, with how sure
    that is. Nothing is needed in the repository.

    \b
    ctxr blame src/pay.py:42
    ctxr blame --commit HEAD~3
    ctxr blame --session 1
    """
    if sum(map(bool, (file, commit, session_id))) != 1:
        raise click.UsageError("Give one of: a FILE, --commit, --session.")
    query = {"file": file, "commit": commit, "session_id": session_id, "limit": limit, "folder": terminal().folder}
    outcome = run_operation(operation("blame", query))
    result = {name: value for name, value in outcome.items() if name != "success"}
    if as_json:
        print_json(result)
    else:
        click.echo(printable("\n".join(_lines(result, of_session=bool(session_id)))))


def _lines(result: dict[str, Any], *, of_session: bool) -> Iterator[str]:
    if text := result.get("text"):
        yield f"  {text.strip()}"
    for found in result["found"]:
        session, commit = found["session"], found["commit"]
        made = f"{commit['sha'][:10]}  {commit['time'][:10]}  {commit['summary']}"
        if of_session:
            yield f"{made}\n    {found['confidence']}: {', '.join(found['why'])}"
        else:
            title = session["title"] or session["first_message_preview"] or session["channel"]
            yield f"{found['confidence']:6}  {title}  ({session['source']}, {session['session_id']})"
            yield f"    {', '.join(found['why'])}\n    {made}"
