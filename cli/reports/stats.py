"""`ctxr stats`: figures about the registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any

import click

from cli.operations import with_orchestrator
from cli.output import counted, dim, line_width, one_line, pad, printed
from orchestrator.requests.calls import utc_offset_minutes

DAYS = 30


def _lines(figures: Mapping[str, Any]) -> Iterator[str]:
    yield f"{counted(figures['channels'], 'channel')}, {counted(figures['messages'], 'message')}"
    yield from _bars("By client", figures["sources"], "source")
    yield from _bars("By project", figures["projects"], "project")
    yield from _bars(f"By day, of the last {DAYS}", [day for day in figures["days"] if day["messages"]], "date")
    hours = [{**one, "hour": f"{one['hour']:02}:00"} for one in figures["hours"] if one["messages"]]
    yield from _bars("By hour of the day", hours, "hour")
    yield from _bars("Longest sessions", figures["longest"][:10], "title")
    yield from _bars("Most recalled", figures["most_recalled"][:10], "title", of="recalled")
    yield from _bars("Recurring problems", figures["problems"][:10], "line", of="sessions")
    tokens = figures["tokens"]
    yield f"\nAbout {tokens['delivered']:,} tokens delivered, of {tokens['kept']:,} words kept"


@click.command()
@printed(_lines)
def stats() -> dict[str, Any]:
    """Show figures: by client, project, day and hour."""
    from orchestrator.views.figures import registry_figures

    days = last_days(datetime.now())
    figures: dict[str, Any] = with_orchestrator(
        lambda orchestrator: orchestrator.view(registry_figures, days, utc_offset_minutes())
    )
    return figures


def last_days(today: datetime) -> list[datetime]:
    """Return the local midnights of the last days, oldest first, and of tomorrow."""
    midnights = (datetime.combine(today.date() + timedelta(days=n), time()) for n in range(1 - DAYS, 2))
    return [midnight.astimezone() for midnight in midnights]


def _bars(title: str, rows: Sequence[Mapping[str, Any]], name: str, of: str = "messages") -> Iterator[str]:
    yield "\n" + click.style(title, bold=True)
    longest = max((row[of] for row in rows), default=0) or 1
    for row in rows[:DAYS]:
        bar = click.style("█" * -(-row[of] * (line_width() - 36) // longest), fg="cyan")
        yield f"{pad(one_line(row[name]), 24)}{row[of]:>10,}  {bar}"
    if len(rows) > DAYS:
        yield dim(f"and {len(rows) - DAYS} more: --json")
