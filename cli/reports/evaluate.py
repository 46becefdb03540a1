"""`ctxr eval`: how well this registry finds what its users said it should find."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

import click

from cli.output import as_json_option, cut, line_width, one_line, print_json
from registry.settings import Settings, read_settings

NONE_KEPT = (
    "No case is kept yet. Open a run that missed something in the backoffice, and say what it should have found."
)


@click.command()
@as_json_option
def evaluate(as_json: bool) -> None:
    """Ask the kept questions again, and print how many still find what they should."""
    figures = asyncio.run(_figures(read_settings()))
    if as_json:
        print_json(figures)
        return
    for line in _lines(figures, line_width()):
        click.echo(line)


async def _figures(settings: Settings) -> dict[str, Any]:
    from orchestrator.evaluation import evaluate as ask_again
    from orchestrator.evaluation import hit_rates
    from orchestrator.opening import open_orchestrator

    async with open_orchestrator(settings) as orchestrator:
        outcomes = await ask_again(orchestrator, f"ctxr {version('context-registry')}")
    return {**hit_rates(outcomes), "results": [outcome.as_dict() for outcome in outcomes]}


def _lines(figures: Mapping[str, Any], width: int) -> Iterator[str]:
    if not figures["cases"]:
        yield NONE_KEPT
        return
    yield _rates("all", figures)
    for name, rates in figures["operations"].items():
        yield _rates(name, rates)
    missed = [one for one in figures["results"] if one["place"] is None]
    if missed:
        yield ""
        yield click.style("Not found", bold=True)
    for one in missed:
        yield cut(f"{one['operation']}: {one_line(one['text'] or '')} → {one['expected']}", width)


def _rates(name: str, rates: Mapping[str, Any]) -> str:
    return f"{name:16}{rates['found']:>5} of {rates['cases']} found ({rates['hit_rate']:.0%}), {rates['first']} first"
