"""The sessions that are about the same as one: found by its own first words, measured against itself."""

from __future__ import annotations

from typing import Any

from registry.domain import format_time
from registry.search.retrieval import find_messages
from registry.search.scope import Scope
from registry.storage.conversations.channels import ChannelRow, channels_by_number
from registry.storage.database import ReadTransaction

MOST = 3
NEAR = 0.6
"""Of what the session itself scores for its own words: less is not about the same."""
_SPOKEN = ["user", "assistant"]


BUDGET = 5_000
"""Postings that are read for it: it is a hint, and stands beside what was asked for."""


def related_sessions(tx: ReadTransaction, row: ChannelRow) -> list[dict[str, Any]]:
    """Up to three other sessions that hold nearly as much of its title and first question as it does, best first."""
    words = " ".join(dict.fromkeys(filter(None, (row.title, row.first_message_preview, row.project_name))))
    found = find_messages(tx, words, Scope(roles=_SPOKEN), BUDGET) if words else None
    scores = {one.number: one.score for one in found.channels} if found else {}
    least = NEAR * scores.pop(row.number, float("inf"))
    near = [number for number, score in scores.items() if score >= least][:MOST]
    rows = channels_by_number(tx, near)
    return [_named(rows[number]) for number in near if number in rows]


def _named(row: ChannelRow) -> dict[str, Any]:
    return {
        "session_id": row.session_id or row.name,
        "channel": row.name,
        "title": row.title or row.first_message_preview,
        "source": row.source,
        "project_name": row.project_name or "General",
        "updated_at": format_time(row.updated_at),
    }
