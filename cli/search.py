"""`ctxr search`: past sessions by what was said in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import click

from cli.conversations import Moment, print_explanation
from cli.operations import operation, project_option, run_operation, source_option
from cli.output import as_json_option, line_width, print_json, wrap
from cli.session_lines import one_line, session_entry
from orchestrator.calls import search_result, utc_offset_minutes
from registry.errors import NotFound

HIT = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)
INDENT = " " * 6


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="QUERY...", help="What it was about.")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Sessions at most.")
@click.option("--offset", type=click.IntRange(0), default=0, help="Leave out so many, the best ones.")
@project_option
@source_option
@click.option("--tag", help="Only those with this tag.")
@click.option("--from", "from_", type=Moment(), help="Only messages since this day or time.")
@click.option("--to", type=Moment(ends_day=True), help="Only messages until this day (with it) or time.")
@click.option(
    "--context",
    "context_window",
    type=click.IntRange(0, 50),
    default=5,
    show_default=True,
    help="Messages around a match, with --json.",
)
@click.option("--explain", is_flag=True, help="Also show what was looked up, kept and left out, and why.")
@as_json_option
def search(words: tuple[str, ...], as_json: bool, explain: bool, from_: str | None, **wanted: Any) -> None:
    """Search past sessions by what was said in them.

    Put a phrase in quotes, a minus before what must not occur, a star behind the
    beginning of a word; `tag:`, `project:`, `source:`, `after:` and `before:` narrow it.

    \b
    ctxr search fibonacci optimisation
    ctxr search '"docker compose" -swarm after:2026-01'
    ctxr search 어제 이야기한 인증
    """
    query = {**wanted, "text": " ".join(words), "from": from_, "utc_offset_minutes": utc_offset_minutes()}
    outcome = run_operation(operation("search_sessions", query), print_explanation if explain else None)
    found = search_result({**outcome, "project": wanted["project"] or "all"})
    if as_json:
        print_json(found)
    for line in [] if as_json else _lines(found, line_width()):
        click.echo(line)
    if not found["sessions"]:
        raise NotFound("No matching conversations found", f"No conversations found for query: '{query['text']}'")


def _lines(found: Mapping[str, Any], width: int) -> Iterator[str]:
    if ignored := found["understood"].get("ignored_time"):
        yield click.style(f"Nothing from {ignored}; this is from other times.", dim=True)
        yield ""
    for session in found["sessions"]:
        yield from session_entry(session, width)
        for match in session["matches"]:
            yield from _match_lines(match, width)
        yield ""
    pagination = found["pagination"]
    if pagination["has_more"]:
        after = pagination["offset"] + len(found["sessions"])
        yield click.style(f"{after} of {pagination['total']}. For more: --offset {after}", dim=True)


def _match_lines(match: Mapping[str, Any], width: int) -> Iterator[str]:
    """What was hit is bold; the marks around it are for programs."""
    lines = wrap(f"[{match['role'].upper()}] {one_line(match['snippet'])}", width - len(INDENT))
    text = HIT.sub(lambda hit: click.style(hit[1], bold=True), "\n".join(lines))
    yield from (INDENT + line for line in text.split("\n"))
