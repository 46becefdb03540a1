"""`ctxr cost`: tokens and their list price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from cli.conversations.log_and_extract import from_option, to_option
from cli.operations import run_operation
from cli.output import counted, dim, line_width, one_line, pad, printed
from orchestrator.operations.usage import GROUPS, KINDS, in_dollars
from orchestrator.requests.calls import utc_offset_minutes


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    total = found["total"]
    kinds = [kind for kind in KINDS if total[f"{kind}_tokens"] and kind != "reasoning"]  # that is in the output
    head = [kind.replace("_", " ") for kind in kinds] + (["list price"] if total["cost_usd"] is not None else [])
    table = [(_name(found["by"], row), _figures(row, kinds)) for row in [*found["rows"], {"name": "total", **total}]]
    widths = [2 + max(len(label), len(table[-1][1][place])) for place, label in enumerate(head)]
    left = max(line_width() - sum(widths), 16)
    for name, figures in [(found["by"], head), *table]:
        yield pad(name, left) + "".join(f"{figure:>{width}}" for figure, width in zip(figures, widths, strict=False))
    if found["unpriced_models"]:
        yield dim(f"Without a price: {one_line(', '.join(found['unpriced_models']))}")
    for missing in found["without_counts"]:
        yield dim(f"{missing['client']}: tokens of {counted(missing['answers'], 'answer')} are not known")


def _name(by: str, row: Mapping[str, Any]) -> str:
    name = str(row.get("title") or row["name"] or ("General" if by == "project" else "unknown"))
    return one_line(name.replace("\\", "/").rstrip("/").rpartition("/")[2] if by == "project" else name)


def _figures(row: Mapping[str, Any], kinds: Sequence[str]) -> list[str]:
    return [*(f"{row[f'{kind}_tokens']:,}" for kind in kinds), in_dollars(row["cost_usd"])]


@click.command()
@click.option("--by", type=click.Choice(GROUPS), default="project", show_default=True, help="What to sum by.")
@from_option
@to_option
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Rows at most.")
@printed(_lines)
def cost(by: str, from_: str | None, to: str | None, limit: int) -> dict[str, Any]:
    """Show tokens and their list price.

    Prices are the providers' list prices; your own go into prices.toml in CTXR_HOME, CTXR_PRICES=off hides them.

    \b
    ctxr cost --by model --from 30d
    """
    query = {"by": by, "from": from_, "to": to, "limit": limit, "utc_offset_minutes": utc_offset_minutes()}
    return run_operation("usage", query)
