"""Commands on past sessions: `ctxr list`, `recent`, `show`, `tag`, `nickname` and `export`."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast, get_args

import click

from cli.conversations.log_and_extract import Moment
from cli.conversations.transcript import elsewhere_note, next_page_line, session_entry, session_page, sharing_text
from cli.operations import (
    ProjectFolder,
    SessionId,
    completes,
    full_path,
    id_argument,
    project_option,
    run_operation,
    source_option,
)
from cli.output import as_json_option, counted, dim, printed, show
from cli.safety.token import Expiry
from orchestrator.export.sharing import for_others
from orchestrator.export.texts import ExportFormat, document_name, write_new_file
from orchestrator.export.texts import export as render
from orchestrator.requests.field_types import MAX_COUNT
from registry.errors import NotFound

limit_option = click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Sessions at most."
)
offset_option = click.option(
    "--offset", type=click.IntRange(0, MAX_COUNT), default=0, help="Skip this many of the latest sessions."
)


@click.command("list")
@limit_option
@offset_option
@project_option
@source_option
@click.option("--tagged", "tagged_only", is_flag=True, help="Only sessions with a nickname or tags.")
@click.option("--tag", shell_complete=completes("tag"), help="Only sessions with this tag.")
@click.option("--since", type=Moment(), help="Only sessions active since this day or time: 2025-09-29, yesterday, 7d.")
@click.option("--until", type=Moment(is_end=True), help="Only sessions last active up to this day or time.")
@as_json_option
def list_sessions(as_json: bool, **wanted: Any) -> None:
    """List past sessions, latest first.

    `ctxr show` takes the number in the list, the nickname or the id:

    \b
    ctxr list --project current
    ctxr show 3
    """
    _list(wanted, as_json)


@click.command("recent")
@click.option("--days", type=click.IntRange(1, 3650), default=7, show_default=True, help="How many days back.")
@limit_option
@offset_option
@project_option
@source_option
@as_json_option
def recent(days: int, as_json: bool, **wanted: Any) -> None:
    """List the sessions of the last days."""
    _list({**wanted, "since": (datetime.now(UTC) - timedelta(days=days)).isoformat()}, as_json)


def _list(query: dict[str, Any], as_json: bool) -> None:
    found = run_operation("list", query)
    if as_json or found["sessions"]:
        names = ("sessions", "pagination", "elsewhere", "local_copy")
        show({name: found[name] for name in names if name in found}, as_json, _list_lines)
    else:
        total = found["pagination"]["total"]
        skipped = f"--offset skips all {total}" if total else ""
        narrowed = any(query.get(name) for name in ("source", "tag", "tagged_only", "since", "until"))
        hint = "ctxr list shows all" if narrowed else "ctxr sync imports the histories of this machine's clients"
        click.echo(f"No sessions; {elsewhere_note(found) or skipped or hint}.", err=True)


def _list_lines(found: dict[str, Any]) -> Iterator[str]:
    for session in found["sessions"]:
        yield from session_entry(session, session.get("index"))
    yield from next_page_line(found)


@click.command("show")
@id_argument
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Messages at most.")
@click.option("--before", type=click.IntRange(1), metavar="N", help="Only messages before the Nth.")
@click.option("--all", "is_whole", is_flag=True, help="All messages, with the full output of tools.")
@as_json_option
def show_session(session_id: str, limit: int, before: int | None, is_whole: bool, as_json: bool) -> None:
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
    page = run_operation("fetch", query)
    show(page, as_json, lambda page: session_page(page, before, is_whole=is_whole))
    first = page["messages"][0]["sequence"] if page["messages"] else 1
    # numbers are given by arrival, so the first message shown need not have the lowest one
    is_cut = first > 1 if before else page["session"]["message_count"] > limit
    if is_cut and len(page["messages"]) == limit and not (is_whole or as_json):
        click.echo(dim(f"Earlier ones: --before {first}"))


@click.command()
@id_argument
@click.argument("tags", nargs=-1, required=True, metavar="TAG...", shell_complete=completes("tag"), help="Tags.")
@click.option("--remove", is_flag=True, help="Remove these tags instead.")
@printed(lambda result: [f"{result['session']['channel']}: {', '.join(result['session']['tags']) or 'no tags'}"])
def tag(session_id: str, tags: tuple[str, ...], remove: bool) -> dict[str, Any]:
    """Add tags to a session."""
    change = {"remove_tags" if remove else "add_tags": list(tags)}
    return {"session": run_operation("tag", change, session_id)["channel"]}


@click.command()
@id_argument
@click.argument("name", help="The nickname; no two sessions have the same.")
@printed(lambda result: [f"{result['session']['channel']}: {result['session']['nickname']}"])
def nickname(session_id: str, name: str) -> dict[str, Any]:
    """Give a session a nickname to find it by."""
    return {"session": run_operation("tag", {"nickname": name}, session_id)["channel"]}


@click.command()
@id_argument
@click.option(
    "--with",
    "group",
    type=click.Choice(["project", "team", "nobody"]),
    required=True,
    help="project: people with a token for its project; team: all with a token; nobody: stop sharing.",
)
@click.option("--until", type=Expiry(), help="When sharing ends: 90d, 12h, or a day.")
@printed(lambda result: [f"{result['session']['channel']}: {sharing_text(result['session']) or 'not shared'}"])
def share(session_id: str, group: str, until: datetime | None) -> dict[str, Any]:
    """Share a session with others of a shared registry, or stop sharing it.

    \b
    ctxr share auth-design --with team --until 4w
    ctxr share auth-design --with nobody
    """
    query = {"with": group, "until": until and until.isoformat()}
    return {"session": run_operation("share", query, session_id)["channel"]}


@click.command()
@click.argument("session_ids", metavar="ID...", nargs=-1, type=SessionId(), help="Session ids, nicknames or numbers.")
@click.option("--project", type=ProjectFolder(), help="All sessions of a project instead: current, a path, or a name.")
@click.option(
    "--owner",
    metavar="PERSON",
    help="All sessions of a person of a shared registry instead, as JSON in one new zip that `ctxr import` reads.",
)
@click.option(
    "--format",
    "to",
    type=click.Choice([*get_args(ExportFormat), "md"]),
    default="markdown",
    show_default=True,
    help="The kind of document.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A new file, or a folder for several; nothing is overwritten. Default: stdout.",
)
@click.option("--share", is_flag=True, help="Remove secrets, folders, user names and addresses.")
@click.option("--hide", multiple=True, metavar="NAME", help="With --share, also remove this name; may be repeated.")
def export(
    session_ids: tuple[str, ...],
    project: str | None,
    owner: str | None,
    to: str,
    output: Path | None,
    share: bool,
    hide: tuple[str, ...],
) -> None:
    """Write whole sessions as documents.

    \b
    ctxr export 1 --format pdf --output chat.pdf
    ctxr export 1 3 auth-design --output notes/
    ctxr export --project current --share --format html --output shared/
    ctxr export --owner kim --output kim.zip
    """
    if [bool(session_ids), bool(project), bool(owner)].count(True) != 1:
        raise click.UsageError("Give either IDs, --project or --owner.")
    if owner:
        _export_owner(owner, output)
        return
    kind: ExportFormat = "markdown" if to == "md" else cast("ExportFormat", to)
    wanted = session_ids or tuple(_sessions_of(project))
    is_folder = len(wanted) > 1 or bool(project) or (output is not None and output.is_dir())
    if output is None and (is_folder or kind == "pdf"):
        raise click.UsageError("Give a folder: --output FOLDER" if is_folder else "A PDF needs --output FILE.")
    if output and is_folder:
        output.mkdir(exist_ok=True)
    for session_id in wanted:
        fetched = run_operation("fetch", {"session_id": session_id, "is_complete": True})
        session, messages = fetched["session"], fetched["messages"]
        if share:
            session, messages = for_others(session, messages, hide)
        document = render(kind, session, messages)
        if output is None:
            click.echo(document, nl=False)
        else:
            click.echo(write_new_file(output / document_name(session, kind) if is_folder else output, document))


def _export_owner(owner: str, output: Path | None) -> None:
    if output is None:
        raise click.UsageError("All sessions of a person need --output FILE.zip.")
    made = run_operation("export_owner", {"owner": owner, "path": full_path(str(output))})
    messages = sum(one["messages"] for one in made["conversations"])
    counts = f"{counted(len(made['conversations']), 'session')} with {counted(messages, 'message')}"
    click.echo(f"{made['path']}: {counts}")


def _sessions_of(project: str | None) -> Iterator[str]:
    offset, has_more = 0, True
    while has_more:
        found = run_operation("list", {"project": project, "limit": 1000, "offset": offset})
        if not found["pagination"]["total"]:
            raise NotFound("No sessions of that project", f"project: given {project!r}; ctxr list shows all")
        yield from (session["channel"] for session in found["sessions"])
        offset, has_more = offset + 1000, found["pagination"]["has_more"]
