"""Measure an embedding model: how similar it calls unrelated texts, which differs from model to model.

Measured once for each model, on known pairs of requests and messages. It is used as long as a registry has too few
messages to compare with.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from statistics import fmean, pstdev
from typing import NamedTuple

from registry.search.meaning import similarity

VERSION = 2
Vectors = Sequence[Sequence[float]]


class Calibration(NamedTuple):
    """`background`, `spread`: mean and standard deviation of the similarity of unrelated texts. Of the known pairs
    the model finds `found` of `pairs`: nothing else is as similar to the request."""

    background: float
    spread: float
    found: int
    pairs: int


def texts() -> tuple[list[str], list[str]]:
    """Return requests, and the message that belongs to each, for measuring a model."""
    lines = files(__package__).joinpath("calibration.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.partition(" | ") for line in lines if line and not line.startswith("#")]
    return [request for request, _, _ in pairs], [message for _, _, message in pairs]


def calibrate(requests: Vectors, messages: Vectors) -> Calibration:
    """Measure a model by its vectors of `texts()`."""
    table = [[similarity(request, message) for message in messages] for request in requests]
    unrelated = [value for i, row in enumerate(table) for j, value in enumerate(row) if i != j]
    background, spread = fmean(unrelated), pstdev(unrelated)
    found = sum(table[i][i] == max(table[i]) for i in range(len(table)))
    return Calibration(background, spread, found, len(table))
