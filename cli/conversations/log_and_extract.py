"""`ctxr log` and `ctxr extract`: into the registry and out of it, from a terminal or a script."""

from __future__ import annotations

import json
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, get_args

import click

from cli.conversations.transcript import transcript
from cli.operations import operation, run_operation
from cli.output import as_json_option, line_width, print_json
from cli.terminal import terminal
from orchestrator.operations.extract import extract_result
from orchestrator.requests.calls import as_request, working_folder
from orchestrator.requests.field_types import Mode, RoleName
from registry.errors import InvalidRequest
from registry.text.times.time_words import parse_span

if TYPE_CHECKING:
    from registry.storage.records.executions import Execution


@click.command()
@click.argument("file", type=click.File("rb"), metavar="FILE|-", help="A file with the JSON, or - for standard input.")
@as_json_option
def log(file: IO[bytes], as_json: bool) -> None:
    """Store a conversation.

    FILE holds what the tool conversation_log takes:

    \b
    {"channel": "cursor_session_20250929_1430",
     "messages": [{"role": "user", "text": "…", "timestamp": "…"}, …],
     "meta": {"source": "cursor", "project": "/home/me/shop"}}

    `timestamp` and `meta` may be left out. What is stored already is recognised, so
    sending a conversation again, longer or not, is right.
    """
    outcome = run_operation(as_request("conversation_log", _parse(file.read())))
    result = {name: value for name, value in outcome.items() if name != "success"}
    if as_json:
        print_json(result)
    else:
        told = f"{result['new_count']} new, {result['duplicate_count']} stored before"
        click.echo(f"{result['channel']}: {result.get('not_kept', told)}")


def _parse(content: bytes) -> dict[str, Any]:
    try:
        given = json.loads(content)
    except (ValueError, RecursionError) as exc:
        raise InvalidRequest("The input is not JSON.", str(exc)) from exc
    if not isinstance(given, dict):
        raise InvalidRequest("The input is not a conversation.", 'allowed: {"channel": …, "messages": […]}')
    return given


class Moment(click.ParamType[str]):
    """A day, a time or words such as `yesterday` by the reader's clock, or an instant with its offset.

    `is_end`: what lasts, such as a day or a week, means its end.
    """

    name = "TIME"

    def __init__(self, *, is_end: bool = False) -> None:
        self._is_end = is_end

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The instant as ISO 8601 with offset."""
        here = datetime.now().astimezone().replace(tzinfo=None)  # each day has its own offset, summer or winter
        span = parse_span(value, here)
        moment = span and (span.end if self._is_end else span.start)
        if moment is None:
            self.fail(f"{value!r} is not a time such as 2025-09-29, 2025-09-29T14:30, yesterday or 7d", param, ctx)
        return moment.astimezone().isoformat(timespec="milliseconds")


SINCE = "Only messages since this day or time; words will do: yesterday, 7d."
UNTIL = "Only messages until this day (with it) or time."
also_option = click.option(
    "--also", multiple=True, metavar="WORDING", help="Another wording of the same question; may be repeated."
)


@click.command()
@click.argument(
    "words", nargs=-1, required=True, metavar="[CHANNEL] QUERY", help="A channel's name, and what it was about."
)
@click.option(
    "--limit", type=click.IntRange(1, 1000), help="Messages at most. Default: 20; for a summary as many as are read."
)
@click.option(
    "--mode",
    type=click.Choice(get_args(Mode)),
    default="raw",
    show_default=True,
    help="Whole messages, or a summary of them, or each one's beginning.",
)
@also_option
@click.option("--from", "from_", type=Moment(), help=SINCE)
@click.option("--to", type=Moment(is_end=True), help=UNTIL)
@click.option(
    "--role", "roles", type=click.Choice(get_args(RoleName)), multiple=True, help="Only this role; may be repeated."
)
@click.option("--max-tokens", type=click.IntRange(min=1), help="The texts together stay within so many tokens.")
@click.option("--cursor", help="Go on where the last answer ended.")
@click.option("--explain", is_flag=True, help="Also show what was looked up, kept and left out, and why.")
@as_json_option
def extract(words: tuple[str, ...], as_json: bool, explain: bool, **options: Any) -> None:
    """Find the part of a past conversation that QUERY is about.

    Each message found comes with its turn: a question with its answer. Without
    CHANNEL the conversation that fits best is chosen, and others are named. With
    CHANNEL and an empty QUERY ("") you get the channel's last messages.

    \b
    ctxr extract "fibonacci optimisation" --also memoization --also "피보나치 최적화"
    ctxr extract cursor_session_20250929_1430 "메모리 사용량"
    """
    if len(words) > 2:
        raise click.UsageError('More than a channel and a query: put the query in quotes, "like this".')
    channel = words[0] if len(words) == 2 else None
    query = {
        "text": words[-1] or None,
        "also": options["also"],
        **({"limit": options["limit"]} if options["limit"] else {}),
        "mode": options["mode"],
        "from": options["from_"],
        "to": options["to"],
        "roles": options["roles"] or None,
        "max_tokens": options["max_tokens"],
        "cursor": options["cursor"],
    }
    request = operation("extract", query, channel) | {"folder": working_folder(terminal().folder)}
    result = extract_result(run_operation(request, print_explanation if explain else None))
    if as_json:
        print_json(result)
    else:
        click.echo(transcript(result, line_width()))


def print_explanation(run: Execution) -> None:
    """Print why a run ended as it did, beside the answer: scripts read that from stdout."""
    from cli.conversations.explanation import explanation

    click.echo(explanation(run, line_width()) + "\n", err=True)
