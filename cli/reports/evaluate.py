"""`ctxr eval`: how well this registry finds what its users said it should find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from cli.operations import this_client, with_orchestrator
from cli.output import as_json_option, cut, one_line, print_report

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator

NONE_KEPT = (
    "No case is kept yet. Open a run that missed something in the backoffice, and say what it should have found."
)


@click.command()
@as_json_option
def evaluate(as_json: bool) -> None:
    """Ask the kept questions again, and print how many still find what they should."""
    print_report(with_orchestrator(_figures), as_json, _lines)


async def _figures(orchestrator: Orchestrator) -> dict[str, Any]:
    from orchestrator.recording.evaluation import evaluate as ask_again
    from orchestrator.recording.evaluation import hit_rates

    outcomes = await ask_again(orchestrator, this_client())
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
