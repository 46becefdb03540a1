"""What an embedding model's numbers mean: models differ in how similar they call texts that have nothing in common.

Measured once for each model, on requests and messages of which we know what belongs together.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from statistics import fmean, pstdev
from typing import NamedTuple

from registry.search.meaning import SIGMAS, similarity

VERSION = 1
Vectors = Sequence[Sequence[float]]


class Calibration(NamedTuple):
    """`background`, `spread`: mean and standard deviation of the similarity of unrelated texts. Of the known pairs
    the model would find `found` of `pairs`."""

    background: float
    spread: float
    found: int
    pairs: int


def texts() -> list[str]:
    """What a model must embed to be measured: all requests, then all messages."""
    lines = files(__package__).joinpath("calibration.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.partition(" | ") for line in lines if line and not line.startswith("#")]
    return [request for request, _, _ in pairs] + [message for _, _, message in pairs]


def calibrate(vectors: Vectors) -> Calibration:
    """What the vectors of `texts()` tell of the model that made them."""
    middle = len(vectors) // 2
    requests, messages = vectors[:middle], vectors[middle:]
    table = [[similarity(request, message) for message in messages] for request in requests]
    unrelated = [value for i, row in enumerate(table) for j, value in enumerate(row) if i != j]
    background, spread = fmean(unrelated), pstdev(unrelated)
    found = sum(table[i][i] >= background + SIGMAS * spread for i in range(middle))
    return Calibration(background, spread, found, middle)
