"""`ctxr stats`, `cost`, `eval` and `brief`: figures about the registry, and a day's briefing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from cli.conversations.log_and_extract import from_option, to_option
from cli.operations import run_operation, this_client, with_orchestrator
from cli.output import as_json_option, counted, cut, dim, line_width, one_line, pad, print_json, printable, printed
from orchestrator.operations.usage import GROUPS, KINDS, in_dollars
from orchestrator.requests.calls import utc_offset_minutes
from registry.domain import now
from registry.project import NO_PROJECT

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator

DAYS = 30


def _stats_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    yield f"{counted(figures['channels'], 'channel')}, {counted(figures['messages'], 'message')}"
    yield from _bars("By client", figures["sources"], "source")
    yield from _bars("By project", figures["projects"], "project")
    yield from _bars(f"By day, of the last {DAYS}", [day for day in figures["days"] if day["messages"]], "date")
    hours = [{**one, "hour": f"{one['hour']:02}:00"} for one in figures["hours"] if one["messages"]]
    yield from _bars("By hour of the day", hours, "hour")
    yield from _bars("Longest sessions", figures["longest"][:10], "title")
    yield from _bars("Most recalled", figures["most_recalled"][:10], "title", count_key="recalled")
    tokens = figures["tokens"]
    yield f"\nAbout {tokens['delivered']:,} tokens delivered, of {tokens['kept']:,} words stored"


@click.command()
@printed(_stats_lines)
def stats() -> dict[str, Any]:
    """Show figures: by client, project, day and hour."""
    from orchestrator.views.figures import registry_figures

    start = now() - timedelta(days=DAYS - 1)
    figures: dict[str, Any] = with_orchestrator(
        lambda orchestrator: orchestrator.view(registry_figures, start, utc_offset_minutes())
    )
    return figures


def _bars(title: str, rows: Sequence[Mapping[str, Any]], label_key: str, count_key: str = "messages") -> Iterator[str]:
    yield "\n" + click.style(title, bold=True)
    longest = max((row[count_key] for row in rows), default=0) or 1
    for row in rows[:DAYS]:
        bar = click.style("█" * -(-row[count_key] * (line_width() - 36) // longest), fg="cyan")
        yield f"{pad(one_line(row[label_key]), 24)}{row[count_key]:>10,}  {bar}"
    if len(rows) > DAYS:
        yield dim(f"and {len(rows) - DAYS} more: --json")


def _cost_lines(found: Mapping[str, Any]) -> Iterator[str]:
    total = found["total"]
    kinds = [kind for kind in KINDS if total[f"{kind}_tokens"] and kind != "reasoning"]  # part of the output
    labels = [kind.replace("_", " ") for kind in kinds] + (["list price"] if total["cost_usd"] is not None else [])
    table = [
        (_name(found["by"], row), [*(f"{row[f'{kind}_tokens']:,}" for kind in kinds), in_dollars(row["cost_usd"])])
        for row in [*found["rows"], {"name": "total", **total}]
    ]
    widths = [2 + max(len(label), len(table[-1][1][column])) for column, label in enumerate(labels)]
    left = max(line_width() - sum(widths), 16)
    for name, figures in [(found["by"], labels), *table]:
        yield pad(name, left) + "".join(f"{figure:>{width}}" for figure, width in zip(figures, widths, strict=False))
    if found["unpriced_models"]:
        yield dim(f"Without a price: {one_line(', '.join(found['unpriced_models']))}")
    for missing in found["without_counts"]:
        yield dim(f"{missing['client']}: tokens of {counted(missing['answers'], 'answer')} are not known")


def _name(by: str, row: Mapping[str, Any]) -> str:
    name = str(row.get("title") or row["name"] or (NO_PROJECT if by == "project" else "unknown"))
    return one_line(name.replace("\\", "/").rstrip("/").rpartition("/")[2] if by == "project" else name)


@click.command()
@click.option("--by", type=click.Choice(GROUPS), default="project", show_default=True, help="What to sum by.")
@from_option
@to_option
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Rows at most.")
@printed(_cost_lines)
def cost(by: str, from_: str | None, to: str | None, limit: int) -> dict[str, Any]:
    """Show tokens and their list price.

    Prices are the providers' list prices; your own go into prices.toml in CTXR_HOME, CTXR_PRICES=off hides them.

    \b
    ctxr cost --by model --from 30d
    """
    query = {"by": by, "from": from_, "to": to, "limit": limit, "utc_offset_minutes": utc_offset_minutes()}
    return run_operation("usage", query)


def _eval_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    if not figures["cases"]:
        yield "No test cases yet. Open a run that missed something in the backoffice, and name what it should find."
        return
    for name, rates in {"all": figures, **figures["operations"]}.items():
        found = f"{rates['found']:>5} of {rates['cases']} found ({rates['hit_rate']:.0%}), {rates['first']} first"
        yield f"{name:16}{found}"
    missed = [one for one in figures["results"] if one["place"] is None]
    if missed:
        yield "\n" + click.style("Not found", bold=True)
    for one in missed:
        yield cut(f"{one['operation']}: {one_line(one['text'] or '')} → {one['expected']}", line_width())


@click.command()
@printed(_eval_lines)
def evaluate() -> dict[str, Any]:
    """Run the test cases again, and print how many still find the expected message."""
    figures: dict[str, Any] = with_orchestrator(_hit_rates)
    return figures


async def _hit_rates(orchestrator: Orchestrator) -> dict[str, Any]:
    from orchestrator.recording.evaluation import evaluate, hit_rates

    outcomes = await evaluate(orchestrator, this_client())
    results = [
        {
            "id": one["id"],
            "operation": one["request"]["operation"],
            "text": (one["request"].get("query") or {}).get("text"),
            "expected": one["message_id"],
            "channel": one["channel"],
            "place": one["place"],
        }
        for one in outcomes
    ]
    return {**hit_rates(outcomes), "results": results}


@click.command()
@click.argument("date", default="yesterday", help="2026-01-31, or words: today, yesterday, 어제.")
@click.option("--language", type=click.Choice(["en", "ko"]), help="Default: the language used most that day.")
@click.option("--again", is_flag=True, help="Also retry deliveries whose outcome is unknown.")
@as_json_option
def brief(date: str, language: str | None, again: bool, as_json: bool) -> None:
    """Print a day's briefing: decisions, open questions, what was worked on.

    It is stored, and delivered once to the tools of config.toml's [[actions]]. If
    a delivery fails, the exit status is 1 and the same command tries it again.
    """
    query = {"date": date, "language": language, "again": again, "utc_offset_minutes": utc_offset_minutes()}
    done = run_operation("daily_briefing", query)["briefing"]
    if as_json:
        print_json(done)
    else:
        click.echo(printable(done["text"]), nl=False)
        for action in done["actions"]:
            click.echo(f"{action['name']}: {action.get('error') or action.get('result') or action['status']}", err=True)
    if any(action["status"] != "done" for action in done["actions"]):
        sys.exit(1)
