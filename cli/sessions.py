"""`ctxr list`, `ctxr recent` and `ctxr show`: past sessions, listed and read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import click

from cli.arguments import id_argument, operation, project_option, source_option
from cli.conversations import Moment
from cli.operations import run_operation
from cli.output import as_json_option, line_width, print_json
from cli.session_lines import session_list, session_page
from orchestrator.calls import session_result

limit_option = click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Sessions at most."
)
offset_option = click.option("--offset", type=click.IntRange(0), default=0, help="Leave out so many, the latest ones.")


@click.command("list")
@limit_option
@offset_option
@project_option
@source_option
@click.option("--tagged", is_flag=True, help="Only those with a nickname or tags.")
@click.option("--tag", help="Only those with this tag.")
@click.option("--since", type=Moment(), help="Only those active since this day or time.")
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
        print_json({"sessions": sessions, "pagination": pagination})
        return
    if not sessions:
        click.echo("No sessions. ctxr sync brings in what this machine's clients keep.", err=True)
        return
    # A filter hides sessions that count for the place; the latest ones all stand before the rest.
    is_filtered = any(query.get(name) for name in ("project", "source", "tag", "tagged_only"))
    for line in session_list(sessions, line_width(), None if is_filtered else pagination["offset"] + 1):
        click.echo(line)
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
