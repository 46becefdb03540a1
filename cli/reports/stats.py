"""`ctxr stats`: what is in the registry, in figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Any

import click

from cli.operations import with_orchestrator
from cli.output import as_json_option, counted, one_line, pad, print_report
from orchestrator.requests.calls import utc_offset_minutes

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator

DAYS = 30
SHOWN = 10
NAME, COUNT = 24, 10


@click.command()
@as_json_option
def stats(as_json: bool) -> None:
    """Show what is kept, in figures: by client, project and day."""
    print_report(with_orchestrator(_figures), as_json, _lines)


async def _figures(orchestrator: Orchestrator) -> dict[str, Any]:
    from registry.monitor.problems import recurring_problems
    from registry.monitor.recalls import recall_figures
    from registry.storage.conversations.facets import registry_totals

    days = last_days(datetime.now())
    return await orchestrator.registry.read(
        lambda tx: {
            **registry_totals(tx, days),
            **recall_figures(tx, utc_offset_minutes()),
            "problems": recurring_problems(tx),
        }
    )


def last_days(today: datetime) -> list[datetime]:
    """The beginnings of the reader's last days, oldest first, and of tomorrow."""
    midnights = (datetime.combine(today.date() + timedelta(days=n), time()) for n in range(1 - DAYS, 2))
    return [midnight.astimezone() for midnight in midnights]


def _lines(figures: Mapping[str, Any], width: int) -> Iterator[str]:
    yield f"{counted(figures['channels'], 'channel')}, {counted(figures['messages'], 'message')}"
    yield from _bars("By client", figures["sources"], "source", width)
    yield from _bars("By project", figures["projects"], "project", width)
    busy = [day for day in figures["days"] if day["messages"]]
    yield from _bars(f"By day, of the last {DAYS}", busy, "date", width, most=DAYS)
    hours = [{**one, "hour": f"{one['hour']:02}:00"} for one in figures["hours"] if one["messages"]]
    yield from _bars("By hour of the day", hours, "hour", width, most=24)
    yield from _bars("Longest sessions", figures["longest"], "title", width)
    yield from _bars("Most recalled", figures["most_recalled"], "title", width, of="recalled")
    yield from _bars("Problems that come back", figures["problems"], "line", width, of="sessions")
    tokens = figures["tokens"]
    yield ""
    yield f"About {tokens['delivered']:,} tokens given back, of {tokens['kept']:,} words kept"


def _bars(
    title: str, rows: Sequence[Mapping[str, Any]], name: str, width: int, most: int = SHOWN, of: str = "messages"
) -> Iterator[str]:
    yield ""
    yield click.style(title, bold=True)
    longest = max((row[of] for row in rows), default=0) or 1
    room = width - NAME - COUNT - 2
    for row in rows[:most]:
        bar = click.style("█" * -(-row[of] * room // longest), fg="cyan")
        yield f"{pad(one_line(row[name]), NAME)}{row[of]:>{COUNT},}  {bar}"
    if len(rows) > most:
        yield click.style(f"and {len(rows) - most} more: --json", dim=True)
