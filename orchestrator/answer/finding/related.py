"""Find the sessions about the same subject as one, by its title and first words."""

from __future__ import annotations

from typing import Any

from registry.domain import format_time
from registry.search.retrieval import find_messages
from registry.search.scope import Scope
from registry.storage.conversations.channels import ChannelRow, channels_by_number
from registry.storage.database import ReadTransaction


def related_sessions(tx: ReadTransaction, row: ChannelRow) -> list[dict[str, Any]]:
    """Return up to three other sessions that hold most of its title and first question, best first.

    It is a hint beside what was asked for, so only 5 000 postings are read.
    """
    words = " ".join(dict.fromkeys(filter(None, (row.title, row.first_message_preview))))
    scope = Scope(roles=["user", "assistant"], exclude_numbers=[row.number])
    found = find_messages(tx, words, scope, 5_000) if words else None
    near = [one.number for one in found.channels[:5] if found.covered(one.number) >= 0.6][:3] if found else []
    rows = channels_by_number(tx, near)
    return [
        {
            "session_id": other.session_id or other.name,
            "channel": other.name,
            "title": other.title or other.first_message_preview,
            "source": other.source,
            "project_name": other.project_name or "General",
            "updated_at": format_time(other.updated_at),
        }
        for other in map(rows.get, near)
        if other
    ]
