"""What a run should have found: where it was lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from backoffice.pages.flow.run import RunView
from backoffice.pages.flow.verdicts import DELIVERED, WITH_QUESTION
from registry.domain import preview_of
from registry.storage.conversations.messages import get_message
from registry.storage.database import ReadTransaction
from registry.text.ranking.matching import matched_words
from registry.text.request.query import parse_query


class Expected(NamedTuple):
    """The expected message, the step that lost it (None: it was delivered), and why, in words."""

    id: str
    channel: str
    preview: str
    step: str | None
    why: str


def expected_in(tx: ReadTransaction, view: RunView, message_id: str) -> Expected:
    """What became of a message in a run; NotFound if there is no such message."""
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
