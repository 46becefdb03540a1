"""`ctxr tag` and `ctxr nickname`: what a session is called."""

from __future__ import annotations

import click

from cli.arguments import id_argument, operation
from cli.operations import run_operation
from cli.output import as_json_option, print_json
from cli.session_lines import title_of
from orchestrator.nicknames import suggest_nickname

MOST_NAMED = 1000


@click.command()
@id_argument
@click.argument("tags", nargs=-1, required=True, metavar="TAG...", help="One word or several.")
@click.option("--remove", is_flag=True, help="Take these tags off instead.")
@as_json_option
def tag(session_id: str, tags: tuple[str, ...], remove: bool, as_json: bool) -> None:
    """Give a session tags; those it has stay."""
    change = {"remove_tags" if remove else "add_tags": list(tags)}
    session = run_operation(operation("tag", change, session_id))["channel"]
    if as_json:
        print_json({"session": session})
    else:
        click.echo(f"{session['channel']}: {', '.join(session['tags']) or 'no tags'}")


@click.command()
@id_argument
@click.argument("name", required=False, help="What to call it; no two sessions have the same nickname.")
@click.option("--suggest", is_flag=True, help="Print a free nickname made of its first words, and change nothing.")
@as_json_option
def nickname(session_id: str, name: str | None, suggest: bool, as_json: bool) -> None:
    """Give a session a nickname to find it by.

    \b
    ctxr nickname 1 auth-design
    ctxr nickname 1 "$(ctxr nickname 1 --suggest)"
    """
    if suggest == bool(name):
        raise click.UsageError("Give either a NAME or --suggest.")
    if name is None:
        suggestion = _suggestion(session_id)
        if as_json:
            print_json({"suggestion": suggestion})
        else:
            click.echo(suggestion)
        return
    session = run_operation(operation("tag", {"nickname": name}, session_id))["channel"]
    if as_json:
        print_json({"session": session})
    else:
        click.echo(f"{session['channel']}: {session['nickname']}")


def _suggestion(session_id: str) -> str:
    session = run_operation(operation("fetch", {"session_id": session_id, "message_limit": 1}))["session"]
    named = run_operation(operation("list", {"tagged_only": True, "limit": MOST_NAMED}))["sessions"]
    taken = {other["nickname"] for other in named if other["channel"] != session["channel"]}
    return suggest_nickname(session["first_message_preview"] or title_of(session), taken)
