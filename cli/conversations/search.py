"""`ctxr search`: past sessions by what was said in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from cli.conversations.log_and_extract import SINCE, UNTIL, Moment, also_option, print_explanation
from cli.conversations.session_lines import elsewhere, session_entry
from cli.conversations.transcript import WORDS_RELAXED
from cli.operations import operation, project_option, run_operation, source_option
from cli.output import as_json_option, line_width, one_line, print_json, with_bold_hits, wrap
from orchestrator.operations.search_sessions import search_result
from orchestrator.requests.calls import utc_offset_minutes
from registry.errors import NotFound

INDENT = " " * 6
MAX_TOKENS = 6000
"""A reader's eye skips what a model has to read: more than the tools give."""


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="QUERY...", help="What it was about.")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Sessions at most.")
@click.option("--offset", type=click.IntRange(0), default=0, help="Leave out so many, the best ones.")
@project_option
@source_option
@click.option("--tag", help="Only those with this tag.")
@click.option("--from", "from_", type=Moment(), help=SINCE)
@click.option("--to", type=Moment(is_end=True), help=UNTIL)
@click.option(
    "--context",
    "context_window",
    type=click.IntRange(0, 50),
    default=2,
    show_default=True,
    help="Messages around a match, with --json.",
)
@also_option
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    default=MAX_TOKENS,
    show_default=True,
    help="The sessions and passages together stay within so many tokens.",
)
@click.option("--explain", is_flag=True, help="Also show what was looked up, kept and left out, and why.")
@as_json_option
def search(
    words: tuple[str, ...], as_json: bool, explain: bool, from_: str | None, also: tuple[str, ...], **wanted: Any
) -> None:
    """Search past sessions by what was said in them.

    Put a phrase in quotes, a minus before what must not occur, a star behind the
    beginning of a word; `tag:`, `project:`, `source:`, `after:` and `before:` narrow it.

    \b
    ctxr search fibonacci optimisation
    ctxr search '"docker compose" -swarm after:2026-01'
    ctxr search 어제 이야기한 인증
    """
    text = " ".join(words)
    query = {**wanted, "text": text, "also": also, "from": from_, "utc_offset_minutes": utc_offset_minutes()}
    outcome = run_operation(operation("search_sessions", query), print_explanation if explain else None)
    found = search_result({**outcome, "project": wanted["project"] or "all"})
    if as_json:
        print_json(found)
    for line in [] if as_json else _lines(found, line_width()):
        click.echo(line)
    if not found["sessions"]:
        raise NotFound("No matching conversations found", _where_nothing_is(found, text))


def _lines(found: Mapping[str, Any], width: int) -> Iterator[str]:
    if found["sessions"] and found["understood"].get("relaxed") == "words":
        yield click.style(WORDS_RELAXED, dim=True)
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


def _where_nothing_is(found: Mapping[str, Any], text: str) -> str:
    when = found["understood"].get("when")
    spoken = [f"No conversations found for query: '{text}'", f"nothing from {when}" if when else "", elsewhere(found)]
    return "; ".join(filter(None, spoken))


def _match_lines(match: Mapping[str, Any], width: int) -> Iterator[str]:
    lines = wrap(f"[{match['role'].upper()}] {one_line(match['snippet'])}", width - len(INDENT))
    yield from (INDENT + line for line in with_bold_hits("\n".join(lines)).split("\n"))
