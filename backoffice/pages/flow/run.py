"""A run's waterfall, and its state at each step. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from registry.domain import parse_time


class WaterfallBar(NamedTuple):
    """A step of a run or the gap between two steps; milliseconds from the start, and shares of the whole."""

    name: str
    is_gap: bool
    start_ms: float
    duration_ms: float
    left: float
    width: float


WAITING, BETWEEN, FINISHING = "before the first step", "between two steps", "after the last step"
MIN_GAP_MS = 1.0  # starts are recorded to the millisecond, so a shorter gap says nothing


def waterfall(run: Mapping[str, Any]) -> list[WaterfallBar]:
    """Split a run's duration into its steps and the gaps between them."""
    began, total = parse_time(run["started_at"]), max(run["duration_ms"] or 0.0, 0.001)
    bars: list[WaterfallBar] = []
    at = 0.0

    def add(name: str, start: float, end: float, *, is_gap: bool) -> None:
        if not is_gap or end - start >= MIN_GAP_MS:
            left, right = min(start / total, 1.0), min(end / total, 1.0)
            bars.append(WaterfallBar(name, is_gap, start, end - start, left, right - left))

    for index, step in enumerate(run["steps"]):
        start = max((parse_time(step["started_at"]) - began).total_seconds() * 1000, at)
        add(BETWEEN if index else WAITING, at, start, is_gap=True)
        at = start + (step["duration_ms"] or 0.0)
        add(step["node"], start, at, is_gap=False)
    add(FINISHING, at, total, is_gap=True)
    return bars


class StatePart(NamedTuple):
    """The size of a part of the state before and after a node; None: absent."""

    name: str
    before: Any
    after: Any

    @property
    def part(self) -> str:
        return self.name.partition(".")[0]

    @property
    def differs(self) -> bool:
        return bool(self.before != self.after)


def states(steps: Sequence[Mapping[str, Any]]) -> dict[str, list[StatePart]]:
    """Return the parts of the state at each node; empty if they were not recorded."""
    found: dict[str, list[StatePart]] = {}
    before: dict[str, Any] = {}
    for step in steps:
        change = step["detail"].get("state")
        after = {**before, **_flat(change)} if isinstance(change, dict) else before
        found[step["node"]] = [StatePart(name, before.get(name), value) for name, value in after.items()]
        before = after
    return found


def _flat(change: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in change.items():
        parts = value.items() if isinstance(value, dict) else [(None, value)]
        flat |= {f"{name}.{part}" if part else name: size for part, size in parts if size not in (None, 0, False)}
    return flat
