"""`ctxr search`: find past sessions by words in their messages."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from cli.conversations.log_and_extract import also_option, explain_option, from_option, print_explanation, to_option
from cli.conversations.transcript import WORDS_RELAXED, elsewhere_note, next_page_line, session_entry
from cli.operations import project_option, run_operation, source_option
from cli.output import as_json_option, dim, line_width, one_line, show, with_bold_hits, wrap
from orchestrator.answer.delivery import UNDONE
from orchestrator.requests.calls import utc_offset_minutes
from registry.errors import NotFound


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="QUERY...", help="What it was about.")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Sessions at most.")
@click.option("--offset", type=click.IntRange(0), default=0, help="Skip this many of the best hits.")
@project_option
@source_option
@click.option("--tag", help="Only sessions with this tag.")
@from_option
@to_option
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
    default=6000,  # more than the tools give: a person skims
    show_default=True,
    help="Token budget of the sessions and passages.",
)
@explain_option
@as_json_option
def search(
    words: tuple[str, ...], as_json: bool, explain: bool, from_: str | None, also: tuple[str, ...], **wanted: Any
) -> None:
    """Search past sessions by words in their messages.

    Put a minus before a word that must not occur; `tag:`, `project:`, `source:`,
    `after:` and `before:` narrow the search.

    \b
    ctxr search fibonacci optimisation
    ctxr search 'docker compose -swarm after:2026-01'
    ctxr search 어제 이야기한 인증
    """
    text = " ".join(words)
    query = {**wanted, "text": text, "also": also, "from": from_, "utc_offset_minutes": utc_offset_minutes()}
    found = run_operation("search_sessions", query, observe=print_explanation if explain else None)
    found["project"] = wanted["project"] or "all"
    show(found, as_json, _lines)
    if not found["sessions"]:
        when = found["understood"].get("when")
        reasons = [f"No conversations found for query: '{text}'", f"nothing from {when}" if when else ""]
        raise NotFound("No matching conversations found", "; ".join(filter(None, [*reasons, elsewhere_note(found)])))


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    listed = run_operation("list", {"limit": 1000})["sessions"] if found["sessions"] else []
    numbers = {session["channel"]: number for number, session in enumerate(listed, 1)}  # which `ctxr show` accepts
    if found["sessions"] and found["understood"].get("relaxed") == "words":
        yield dim(WORDS_RELAXED) + "\n"
    elif confidence := found.get("confidence"):
        yield dim(f"Confidence: {confidence}") + "\n"
    for session in found["sessions"]:
        yield from session_entry(session, numbers.get(session["channel"]))
        for match in session["matches"]:
            undone = f" ({UNDONE})" if match.get("superseded") else ""
            lines = wrap(f"[{match['role'].upper()}] {one_line(match['snippet'])}{undone}", line_width() - 6)
            yield with_bold_hits("\n".join(" " * 6 + line for line in lines))
        yield ""
    yield from next_page_line(found)
