"""`ctxr eval`: how well this registry finds what its users said it should find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from cli.operations import this_client, with_orchestrator
from cli.output import cut, line_width, one_line, printed

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator


def _lines(figures: Mapping[str, Any]) -> Iterator[str]:
    if not figures["cases"]:
        yield "No case is kept yet. Open a run that missed something in the backoffice, and say what it should find."
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
@printed(_lines)
def evaluate() -> dict[str, Any]:
    """Ask the kept questions again, and print how many still find what they should."""
    figures: dict[str, Any] = with_orchestrator(_figures)
    return figures


async def _figures(orchestrator: Orchestrator) -> dict[str, Any]:
    from orchestrator.recording.evaluation import evaluate, hit_rates

    outcomes = await evaluate(orchestrator, this_client())
    return {**hit_rates(outcomes), "results": [outcome.as_dict() for outcome in outcomes]}
