"""Read one run with the messages that its steps name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from orchestrator.recording.recorder import KEPT_ITEMS
from orchestrator.views.verdicts import DELIVERED, WITH_QUESTION, Judgement, Missed, RecordedLookup
from registry.domain import format_time, names_message, preview_of
from registry.storage.conversations.messages import MessageRow, by_ids, by_numbers, get_message
from registry.storage.database import ReadTransaction
from registry.storage.records.executions import get_execution
from registry.text.ranking.matching import matched_words
from registry.text.request.query import parse_query


@dataclass(frozen=True, slots=True)
class RunView:
    """A run with what its page needs to know beyond the record."""

    run: dict[str, Any]
    steps: dict[str, dict[str, Any]]
    """By node."""
    edges: frozenset[tuple[str, str]]
    """The edges taken through the graph."""
    judging: str | None
    """The node that recorded the verdicts."""
    verdicts: list[Judgement]
    """Verdicts on the best messages found."""
    missed: Missed | None
    """Reasons why nothing or only a guess was delivered, if words were asked for."""
    delivered: list[dict[str, Any]]
    gone: int
    """Delivered messages that are deleted by now, or not in the record."""
    tokens: int | None
    """Estimated tokens delivered; None if they were not recorded."""

    @property
    def path(self) -> list[str]:
        return [step["node"] for step in self.run["steps"]]


def run_view(tx: ReadTransaction, execution_id: str) -> RunView:
    run = get_execution(tx, execution_id)
    steps = {step["node"]: step for step in run["steps"]}
    judging = next((node for node, step in steps.items() if "verdicts" in step["detail"]), None)
    recorded = steps[judging]["detail"]["verdicts"] if judging else []
    verdicts = [verdict for verdict in recorded if isinstance(verdict, dict)]
    found = {row.number: row for row in by_numbers(tx, [verdict["message"] for verdict in verdicts])}
    ids, is_complete = _delivered_ids(run, steps)
    rows = by_ids(tx, ids)
    lookup = RecordedLookup(run["operation"], steps.get("cr_query", {}).get("detail", {}), frozenset(ids), is_complete)
    judged = [lookup.judge(one, row := found.get(one["message"]), _message(row)) for one in verdicts]
    is_unsure = not run["delivered"] or run["status"] == "guessed"
    return RunView(
        run,
        steps,
        frozenset(pairwise(step["node"] for step in run["steps"])),
        judging,
        judged,
        lookup.missed(judged) if lookup.noted.get("words") and is_unsure else None,
        [message for row in rows if (message := _message(row))],
        len(ids) - len(rows),
        steps.get("cr_write", {}).get("detail", {}).get("tokens"),
    )


def _delivered_ids(run: Mapping[str, Any], steps: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], bool]:
    noted = steps.get("cr_write", {}).get("detail", {}).get("delivered")
    given = noted if noted is not None else (run["result"] or {}).get("messages", [])
    given = given if isinstance(given, list) else []
    ids = [id for id in given if names_message(str(id))]
    return ids, len(ids) == len(given) and len(ids) < KEPT_ITEMS


def _message(row: MessageRow | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        "id": row.id,
        "channel": row.channel,
        "role": row.role,
        "preview": preview_of(row.text, 160),
        "timestamp": format_time(row.timestamp),
    }


class Expected(NamedTuple):
    """The expected message, the step that lost it (None: it was delivered), and why, in words."""

    id: str
    channel: str
    preview: str
    step: str | None
    why: str


def expected_in(tx: ReadTransaction, view: RunView, message_id: str) -> Expected:
    """Return what became of a message in a run; NotFound if there is no such message."""
    row = get_message(tx, message_id)
    step, why = _lost(view, row)
    return Expected(row.id, row.channel, preview_of(row.text), step, why)


def _lost(view: RunView, row: Any) -> tuple[str | None, str]:
    delivered = {one["id"] for one in view.delivered}
    if row.id in delivered:
        return None, "It was delivered."
    verdict = next((one for one in view.verdicts if one.shown and one.shown["id"] == row.id), None)
    if verdict and verdict.verdict not in (DELIVERED, WITH_QUESTION):
        return view.judging, verdict.reason or "It was good enough, but the answer was full."
    query: Mapping[str, Any] = view.run["request"].get("query") or {}
    if query.get("roles") and row.role not in query["roles"]:
        return "cr_query", "Messages of its role were not asked for."
    if view.run["channel"] and view.run["channel"] != row.channel:
        return "cr_query", "Another conversation was chosen."
    words = [word for word in view.steps.get("cr_query", {}).get("detail", {}).get("words", [])]
    if not matched_words(parse_query(" ".join(map(str, words))), row.text):
        return "cr_query", "It holds no whole word of the request."
    return view.judging or "cr_query", "It was found, but ranked too low."
