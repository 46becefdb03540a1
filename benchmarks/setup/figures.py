"""Summaries of measured times, and text tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Any


@dataclass(frozen=True)
class Spread:
    """Median and 95th percentile of a series of times, in milliseconds."""

    p50: float
    p95: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Spread:
        """Summarise times given in seconds."""
        return cls(p50=1000 * median(seconds), p95=1000 * quantiles(seconds, n=20)[-1])

    def __str__(self) -> str:
        return f"{self.p50:.1f} / {self.p95:.1f}"


@dataclass(frozen=True)
class Comparison:
    """Times of the product and of a baseline from the same run; `aim` is the highest acceptable ratio of medians."""

    what: str
    baseline: Spread
    product: Spread
    aim: float

    @property
    def ratio(self) -> float:
        """Return the product's median divided by the baseline's."""
        return self.product.p50 / self.baseline.p50

    def row(self) -> tuple[str, ...]:
        verdict = "ok" if self.ratio <= self.aim else "MISSED"
        p95 = self.product.p95 / self.baseline.p95
        ratios = f"{self.ratio:.2f} / {p95:.2f}"
        return (self.what, str(self.baseline), str(self.product), ratios, f"{self.aim:g}", verdict)

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as JSON, times in milliseconds."""
        return asdict(self) | {"ratio": self.ratio}


COMPARISON_HEADS = ("p50 / p95 in ms", "bare server", "ctxr", "ratio", "aim", "")


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an aligned text table: the first column to the left, the others to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(heads, *rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(cells))
        for cells in (zip(line, widths, strict=True) for line in (heads, *rows))
    )
