"""`ctxr log` and `ctxr extract`: store a conversation, and find a part of one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, get_args

import click

from cli.conversations.transcript import transcript
from cli.operations import project_option, run_operation, run_request
from cli.output import line_width, printable, printed, wrap
from cli.terminal import terminal
from orchestrator.operations.extract import extract_result
from orchestrator.requests.calls import as_log_request, working_folder
from orchestrator.requests.field_types import Mode, RoleName
from registry.errors import InvalidRequest, NotFound
from registry.text.times.time_words import parse_span

if TYPE_CHECKING:
    from orchestrator.service import Execution


def _log_lines(result: dict[str, Any]) -> Iterator[str]:
    counts = f"{result['new_count']} new, {result['duplicate_count']} stored already"
    yield f"{result['channel']}: {result.get('not_kept', counts)}"


@click.command()
@click.argument("file", type=click.File("rb"), metavar="FILE|-", help="A JSON file, or - for standard input.")
@printed(_log_lines)
def log(file: IO[bytes]) -> dict[str, Any]:
    """Store a conversation.

    FILE holds the arguments of the tool conversation_log:

    \b
    {"channel": "cursor_session_20250929_1430",
     "messages": [{"role": "user", "text": "…", "timestamp": "…"}, …],
     "meta": {"source": "cursor", "project": "/home/me/shop"}}

    `timestamp` and `meta` are optional. Messages that are stored already are
    recognised, so a conversation may be sent again.
    """
    try:
        given = json.loads(file.read())
    except (ValueError, RecursionError) as exc:
        raise InvalidRequest("The input is not JSON.", str(exc)) from exc
    if not isinstance(given, dict):
        raise InvalidRequest("The input is not a conversation.", 'allowed: {"channel": …, "messages": […]}')
    return run_request(as_log_request(given))


class Moment(click.ParamType[str]):
    """A day, a time or words such as `yesterday`, by the user's clock.

    `is_end`: for a span such as a day or a week, take its end.
    """

    name = "TIME"

    def __init__(self, *, is_end: bool = False) -> None:
        self._is_end = is_end

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        here = datetime.now().astimezone().replace(tzinfo=None)  # naive: the UTC offset depends on the day
        span = parse_span(value, here)
        moment = span and (span.end if self._is_end else span.start)
        if moment is None:
            self.fail(f"{value!r} is not a time such as 2025-09-29, 2025-09-29T14:30, yesterday or 7d", param, ctx)
        return moment.astimezone().isoformat(timespec="milliseconds")


from_option = click.option(
    "--from", "from_", type=Moment(), help="Only messages since this day or time: 2025-09-29, yesterday, 7d."
)
to_option = click.option("--to", type=Moment(is_end=True), help="Only messages up to and including this day or time.")
also_option = click.option(
    "--also", multiple=True, metavar="WORDING", help="Another wording of the same question; may be repeated."
)
explain_option = click.option("--explain", is_flag=True, help="Also print what was searched for, kept and dropped.")


@click.command()
@click.argument(
    "words", nargs=-1, required=True, metavar="[CHANNEL] QUERY...", help="What it was about; perhaps its channel first."
)
@click.option("--limit", type=click.IntRange(1, 1000), help="Messages at most. Default: 20; no limit for a summary.")
@click.option(
    "--mode",
    type=click.Choice(get_args(Mode)),
    default="raw",
    show_default=True,
    help="Whole messages, a summary, or the beginning of each message.",
)
@also_option
@project_option
@from_option
@to_option
@click.option(
    "--role", "roles", type=click.Choice(get_args(RoleName)), multiple=True, help="Only this role; may be repeated."
)
@click.option("--max-tokens", type=click.IntRange(min=1), help="Token budget of the texts.")
@click.option("--cursor", help="Continue where the last answer ended.")
@explain_option
@printed(transcript)
def extract(words: tuple[str, ...], explain: bool, project: str | None, **options: Any) -> dict[str, Any]:
    """Find the part of a past conversation that QUERY is about.

    Each message comes with its turn: a question with its answer. Without CHANNEL
    the conversation that fits best is chosen, and others are named. With CHANNEL
    and an empty QUERY ("") you get the channel's last messages.

    \b
    ctxr extract fibonacci optimisation --also memoization --also "피보나치 최적화"
    ctxr extract cursor_session_20250929_1430 "메모리 사용량"
    """
    query = {**options, "from": options["from_"], "roles": options["roles"] or None}
    del query["from_"]

    def ask(text: str, channel: str | None = None) -> dict[str, Any]:
        about = {**query, "text": text or None}
        observe = print_explanation if explain else None
        here = {"folder": working_folder(terminal().folder), "project": project}
        return extract_result(run_operation("extract", about, channel, observe, **here))

    if len(words) != 2:
        return ask(" ".join(words))
    try:
        return ask(words[1], words[0])
    except NotFound as exc:
        if exc.message == "No such channel" and words[0].isalpha():  # a plain word is part of the query
            return ask(" ".join(words))
        raise


def print_explanation(run: Execution) -> None:
    """Print an execution's steps to stderr, with the details that each recorded."""
    click.secho(f"Why: {run.id}, {run.operation}, {run.duration_ms:.1f} ms", bold=True, err=True)
    for step in run.steps:
        click.echo(f"{step['node']}  {step['duration_ms']:.1f} ms  {step['status']}", err=True)
        for name, value in step["detail"].items():
            is_table = isinstance(value, list) and value and isinstance(value[0], dict)
            for item in value if is_table else [value]:
                if item not in (None, [], {}, ""):
                    lines = wrap(f"{name.replace('_', ' ')}: {printable(_plain(item))}", line_width() - 4)
                    click.echo("  " + "\n    ".join(lines), err=True)


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return f"{value:.2f}" if isinstance(value, float) else str(value)
