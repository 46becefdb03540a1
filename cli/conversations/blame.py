"""`ctxr blame`: find the conversations that a line, a file or a commit came from."""

from collections.abc import Iterator
from typing import Any

import click

from cli.operations import SessionId, run_operation
from cli.output import local_time, printable, printed
from cli.terminal import terminal


def _lines(result: dict[str, Any]) -> Iterator[str]:
    if text := result.get("text"):
        yield f"  {printable(text.strip())}"
    for found in result["found"]:
        session, commit = found["session"], found["commit"]
        title = session["title"] or session["first_message_preview"] or session["channel"]
        yield printable(f"{found['confidence']:6}  {title}  ({session['source']}, {session['session_id']})")
        yield printable(f"    {', '.join(found['why'])}")
        yield printable(f"    {commit['sha'][:10]}  {local_time(commit['time'])[:10]}  {commit['summary']}")


@click.command()
@click.argument("file", required=False, metavar="FILE[:LINE]", help="A file in a git repository, or one line of it.")
@click.option("--commit", help="A commit, instead of a file.")
@click.option("--session", "session_id", type=SessionId(), help="The other way: the commits made from a session.")
@click.option("--limit", type=click.IntRange(1, 100), default=5, show_default=True, help="Conversations, or commits.")
@printed(_lines)
def blame(file: str | None, commit: str | None, session_id: str | None, limit: int) -> dict[str, Any]:
    """Find the conversations that a line, a file or a commit came from.

    Compares git's history with the messages: when, in which project, which files
    tools changed and which lines were written. The best match comes first, with
    its confidence. Nothing needs to be set up in the repository.

    \b
    ctxr blame src/pay.py:42
    ctxr blame --commit HEAD~3
    ctxr blame --session 1
    """
    if sum(map(bool, (file, commit, session_id))) != 1:
        raise click.UsageError("Give one of: a FILE, --commit, --session.")
    query = {"file": file, "commit": commit, "session_id": session_id, "limit": limit, "folder": terminal().folder}
    return run_operation("blame", query)
