"""One run as its page shows it: the recorded steps, with the messages they speak of. And two runs side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from orchestrator.nodes import NODES
from registry.domain import format_time, preview_of
from registry.storage.database import ReadTransaction
from registry.storage.executions import get_execution
from registry.storage.messages import MessageRow, by_ids, by_numbers

PREVIEW = 160


@dataclass(frozen=True, slots=True)
class RunView:
    """A run with what its page needs to know beyond the record."""

    run: dict[str, Any]
    steps: dict[str, dict[str, Any]]
    """By node."""
    edges: frozenset[tuple[str, str]]
    """The way taken through the graph."""
    judging: str | None
    """The node that noted verdicts on the messages found."""
    verdicts: list[dict[str, Any]]
    """On the best messages found, each with the message as `shown` (None: deleted since)."""
    delivered: list[dict[str, Any]]
    gone: int
    """How many of the delivered messages are deleted by now, or were left out of the record."""
    tokens: int | None
    """An estimate of the length of what was delivered, cut texts as they were cut; None where none was noted."""

    @property
    def path(self) -> list[str]:
        """The nodes that ran, in order."""
        return [step["node"] for step in self.run["steps"]]


def run_view(tx: ReadTransaction, execution_id: str) -> RunView:
    """The run with that id; NotFound if there is none."""
    run = get_execution(tx, execution_id)
    steps = {step["node"]: step for step in run["steps"]}
    judging = next((node for node, step in steps.items() if "verdicts" in step["detail"]), None)
    recorded = steps[judging]["detail"]["verdicts"] if judging else []
    verdicts = [verdict for verdict in recorded if isinstance(verdict, dict)]
    found = {row.number: row for row in by_numbers(tx, [verdict["message"] for verdict in verdicts])}
    ids = _delivered_ids(run, steps)
    rows = by_ids(tx, ids)
    return RunView(
        run,
        steps,
        frozenset(pairwise(step["node"] for step in run["steps"])),
        judging,
        [{**verdict, "shown": _message(found.get(verdict["message"]))} for verdict in verdicts],
        [message for row in rows if (message := _message(row))],
        len(ids) - len(rows),
        steps.get("cr_write", {}).get("detail", {}).get("tokens"),
    )


def _delivered_ids(run: Mapping[str, Any], steps: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What left the orchestrator: extract notes it when it writes, the others in their result."""
    noted = steps.get("cr_write", {}).get("detail", {}).get("delivered")
    answered = (run["result"] or {}).get("messages", [])
    ids = noted if noted is not None else answered
    return [id for id in ids if str(id).startswith("conv_")] if isinstance(ids, list) else []


def _message(row: MessageRow | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        "id": row.id,
        "channel": row.channel,
        "role": row.role,
        "preview": preview_of(row.text, PREVIEW),
        "timestamp": format_time(row.timestamp),
    }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side: figures by name, and who delivered which message."""

    figures: list[tuple[str, Any, Any]]
    durations: list[tuple[str, float | None, float | None]]
    delivered: list[tuple[dict[str, Any], bool, bool]]


def compare(here: RunView, there: RunView) -> Comparison:
    """What is the same and what differs; each figure's name, then this run's and the other's."""
    theirs = _figures(there)
    nodes = [name for name in NODES if name in here.steps or name in there.steps]
    return Comparison(
        [(name, ours, theirs[name]) for name, ours in _figures(here).items()],
        [(name, _duration(here, name), _duration(there, name)) for name in nodes],
        _union(here.delivered, there.delivered),
    )


def _figures(view: RunView) -> dict[str, Any]:
    query, judged = (view.steps.get(name or "", {}).get("detail", {}) for name in ("cr_query", view.judging))
    return {
        "status": view.run["status"],
        "error": (view.run["error"] or {}).get("code"),
        "channel": view.run["channel"],
        "words": ", ".join(query.get("words", [])) or None,
        "candidates": query.get("candidates"),
        "kept": judged.get("kept"),
        "dropped": judged.get("dropped"),
        "delivered": len(view.delivered) + view.gone,
        "tokens": view.tokens,
    }


def _duration(view: RunView, node: str) -> float | None:
    step = view.steps.get(node)
    return step["duration_ms"] if step else None


def _union(ours: Sequence[dict[str, Any]], theirs: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], bool, bool]]:
    here, there = _ids(ours), _ids(theirs)
    either = {message["id"]: message for message in [*ours, *theirs]}
    in_order = sorted(either.values(), key=lambda message: str(message["timestamp"]))
    return [(message, message["id"] in here, message["id"] in there) for message in in_order]


def _ids(messages: Iterable[Mapping[str, Any]]) -> set[str]:
    return {message["id"] for message in messages}
