"""Numbers and how they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Any


@dataclass(frozen=True)
class Spread:
    """What a series of times comes to, in milliseconds."""

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
    """The product beside a baseline of the same run; `aim` is the ratio of medians it should stay under."""

    what: str
    baseline: Spread
    product: Spread
    aim: float

    @property
    def ratio(self) -> float:
        """How many times the baseline's median."""
        return self.product.p50 / self.baseline.p50

    def row(self) -> tuple[str, ...]:
        """The comparison as a line of a table."""
        verdict = "ok" if self.ratio <= self.aim else "MISSED"
        p95 = self.product.p95 / self.baseline.p95
        ratios = f"{self.ratio:.2f} / {p95:.2f}"
        return (self.what, str(self.baseline), str(self.product), ratios, f"{self.aim:g}", verdict)

    def as_json(self) -> dict[str, Any]:
        """The comparison for machines, times in milliseconds."""
        return asdict(self) | {"ratio": self.ratio}


COMPARISON_HEADS = ("p50 / p95 in ms", "bare server", "ctxr", "ratio", "aim", "")


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns wide enough for what they hold, the first one left, the others right."""
    widths = [max(len(cell) for cell in column) for column in zip(heads, *rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(cells))
        for cells in (zip(line, widths, strict=True) for line in (heads, *rows))
    )
