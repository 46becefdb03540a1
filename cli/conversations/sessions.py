"""What is done with past sessions: `ctxr list`, `recent` and `show`, `tag` and `nickname`, `export`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import click

from cli.conversations.log_and_extract import Moment
from cli.conversations.session_lines import Session, elsewhere, moved_from, session_list, session_page, title_of
from cli.operations import (
    ProjectFolder,
    SessionId,
    complete_tag,
    id_argument,
    operation,
    project_option,
    run_operation,
    source_option,
)
from cli.output import as_json_option, line_width, print_json
from orchestrator.answer.digests.suggested_nickname import suggest_nickname
from orchestrator.export.sharing import for_others
from orchestrator.export.texts import ExportFormat, document_name, write_new_file
from orchestrator.export.texts import export as render
from orchestrator.operations.fetch_session import session_result
from orchestrator.requests.field_types import MOST_COUNTED
from registry.errors import NotFound

limit_option = click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Sessions at most."
)
offset_option = click.option(
    "--offset", type=click.IntRange(0, MOST_COUNTED), default=0, help="Leave out so many, the latest ones."
)
MOST_NAMED = 1000


@click.command("list")
@limit_option
@offset_option
@project_option
@source_option
@click.option("--tagged", is_flag=True, help="Only those with a nickname or tags.")
@click.option("--tag", shell_complete=complete_tag, help="Only those with this tag.")
@click.option("--since", type=Moment(), help="Only those active since this day or time; words will do: yesterday, 7d.")
@click.option("--until", type=Moment(is_end=True), help="Only those last active until this day (with it) or time.")
@as_json_option
def list_sessions(as_json: bool, tagged: bool, **wanted: Any) -> None:
    """List past sessions, latest first.

    The place in the list, the nickname or the id is what `ctxr show` takes:

    \b
    ctxr list --project current
    ctxr show 3
    """
    _list({**wanted, "tagged_only": tagged}, as_json)


@click.command("recent")
@click.option("--days", type=click.IntRange(1, 3650), default=7, show_default=True, help="How many days back.")
@limit_option
@offset_option
@project_option
@source_option
@as_json_option
def recent(days: int, as_json: bool, **wanted: Any) -> None:
    """List the sessions of the last days."""
    since = datetime.now(UTC) - timedelta(days=days)
    _list({**wanted, "since": since.isoformat()}, as_json)


def _list(query: dict[str, Any], as_json: bool) -> None:
    found = run_operation(operation("list", query))
    sessions, pagination = found["sessions"], found["pagination"]
    if as_json:
        shown = ("sessions", "pagination", "elsewhere", "local_copy")
        print_json({name: found[name] for name in shown if name in found})
        return
    if not sessions:
        where = elsewhere(found) or "ctxr sync brings in what this machine's clients keep"
        click.echo(f"No sessions; {where}.", err=True)
        return
    # A filter hides sessions that count for the place; the latest ones all stand before the rest.
    is_filtered = any(query.get(name) for name in ("project", "source", "tag", "tagged_only", "until"))
    for line in session_list(sessions, line_width(), None if is_filtered else pagination["offset"] + 1):
        click.echo(line)
    for line in moved_from(found):
        click.echo(line, err=True)
    if pagination["has_more"]:
        after = pagination["offset"] + len(sessions)
        click.echo(click.style(f"{after} of {pagination['total']}. For more: --offset {after}", dim=True))


@click.command()
@id_argument
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Messages at most.")
@click.option("--before", type=click.IntRange(1), metavar="N", help="Only messages before the Nth.")
@click.option("--all", "is_whole", is_flag=True, help="All messages, what tools said in full.")
@as_json_option
def show(session_id: str, limit: int, before: int | None, is_whole: bool, as_json: bool) -> None:
    """Show a past session: its last messages, or all.

    \b
    ctxr show 1             the latest session
    ctxr show auth-design   by its nickname
    ctxr show 5e550000      by the beginning of its id
    """
    query = {
        "session_id": session_id,
        "message_limit": None if is_whole else limit,
        "before": before,
        "is_folded": not (is_whole or as_json),
    }
    page = session_result(run_operation(operation("fetch", query)))
    if as_json:
        print_json(page)
        return
    for line in session_page(page, line_width(), before, is_whole=is_whole):
        click.echo(line)
    first = page["messages"][0]["sequence"] if page["messages"] else 1
    if first > 1:
        click.echo(click.style(f"Earlier ones: --before {first}", dim=True))


@click.command()
@id_argument
@click.argument(
    "tags",
    nargs=-1,
    metavar="TAG...",
    shell_complete=complete_tag,
    help="One word or several.",
)
@click.option("--remove", is_flag=True, help="Take these tags off instead.")
@click.option("--suggest", is_flag=True, help="Print tags for what it speaks of, and change nothing.")
@as_json_option
def tag(session_id: str, tags: tuple[str, ...], remove: bool, suggest: bool, as_json: bool) -> None:
    """Give a session tags; those it has stay.

    \b
    ctxr tag 1 auth tokens
    ctxr tag 1 $(ctxr tag 1 --suggest)
    """
    if suggest == bool(tags):
        raise click.UsageError("Give either TAGs or --suggest.")
    if suggest:
        suggestions = _session(session_id).get("suggested_tags", [])
        if as_json:
            print_json({"suggestions": suggestions})
        else:
            click.echo("\n".join(suggestions))
        return
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


def _session(session_id: str) -> Session:
    found: Session = run_operation(operation("fetch", {"session_id": session_id, "message_limit": 1}))["session"]
    return found


def _suggestion(session_id: str) -> str:
    session = _session(session_id)
    named = run_operation(operation("list", {"tagged_only": True, "limit": MOST_NAMED}))["sessions"]
    taken = {other["nickname"] for other in named if other["channel"] != session["channel"]}
    return suggest_nickname(session["first_message_preview"] or title_of(session), taken)


@click.command()
@click.argument(
    "session_ids", metavar="ID...", nargs=-1, type=SessionId(), help="Sessions by id, channel, nickname or place."
)
@click.option("--project", type=ProjectFolder(), help="All sessions of a project instead: current, a path, or a name.")
@click.option(
    "--format",
    "to",
    type=click.Choice(get_args(ExportFormat)),
    default="markdown",
    show_default=True,
    help="What kind of document.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A new file, or a folder for several; nothing is overwritten. Default: print it.",
)
@click.option("--share", is_flag=True, help="For others to read: no secrets, folders, user names and addresses.")
@click.option("--hide", multiple=True, metavar="NAME", help="With --share, also this name. Give it as often as needed.")
def export(
    session_ids: tuple[str, ...],
    project: str | None,
    to: ExportFormat,
    output: Path | None,
    share: bool,
    hide: tuple[str, ...],
) -> None:
    """Write whole sessions as documents, to keep or to hand on.

    \b
    ctxr export 1 --format pdf --output chat.pdf
    ctxr export 1 3 auth-design --output notes/
    ctxr export --project current --share --format html --output shared/
    """
    if bool(session_ids) == bool(project):
        raise click.UsageError("Give either IDs or --project.")
    wanted = session_ids or tuple(_sessions_of(project))
    is_folder = len(wanted) > 1 or bool(project) or (output is not None and output.is_dir())
    if output is None and (is_folder or to == "pdf"):
        raise click.UsageError("Say where it goes: --output FOLDER" if is_folder else "A PDF needs --output FILE.")
    if output and is_folder:
        output.mkdir(exist_ok=True)
    for session_id in wanted:
        fetched = run_operation(operation("fetch", {"session_id": session_id, "is_complete": to == "json"}))
        told = fetched["session"], fetched["messages"]
        session, messages = for_others(*told, hide) if share else told
        document = render(to, session, messages)
        if output is None:
            click.echo(document, nl=False)
        else:
            click.echo(write_new_file(output / document_name(session, to) if is_folder else output, document))


def _sessions_of(project: str | None) -> Iterator[str]:
    offset, more = 0, True
    while more:
        found = run_operation(operation("list", {"project": project, "limit": MOST_NAMED, "offset": offset}))
        yield from (session["channel"] for session in found["sessions"])
        offset, more = offset + MOST_NAMED, found["pagination"]["has_more"]
    if offset == MOST_NAMED and not found["pagination"]["total"]:
        raise NotFound("No sessions of that project", f"project: given {project!r}; ctxr list shows all")
