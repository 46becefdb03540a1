"""Suggest names and tags for sessions that have none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator.answer.digests.suggested_nickname import suggest_nickname
from orchestrator.answer.digests.suggested_tags import suggest_tags
from orchestrator.answer.digests.summary import sentences_in
from registry.domain import preview_of
from registry.storage.conversations.facets import tags_like
from registry.storage.conversations.nicknames import all_nicknames
from registry.storage.database import ReadTransaction

KNOWN_TAGS = 200
"""Number of tags in use that are considered, the most used first."""
TITLE = 60
"""Characters of a title."""


def add_suggestions(tx: ReadTransaction, sessions: Sequence[dict[str, Any]]) -> None:
    """`suggested_title`, `suggested_nickname` and `suggested_tags` for each without; no two nicknames are the same."""
    untitled, nameless, untagged = (
        [one for one in sessions if not one[name]] for name in ("title", "nickname", "tags")
    )
    for one in untitled:
        one["suggested_title"] = suggest_title(one["first_message_preview"] or "") or one["channel"]
    taken = all_nicknames(tx) if nameless else set()
    for one in nameless:
        one["suggested_nickname"] = suggest_nickname(one["title"] or one["first_message_preview"] or "", taken)
        taken.add(one["suggested_nickname"])
    used = tags_like(tx, "", KNOWN_TAGS) if untagged else []
    for one in untagged:
        texts = (one["title"], one["first_message_preview"], one["summary"])
        one["suggested_tags"] = suggest_tags([text or "" for text in texts], used)


def suggest_title(text: str) -> str:
    """The first sentence that says something, without what dresses it up; "" where nothing does."""
    return preview_of(next(sentences_in(text), text), TITLE).rstrip(".,:;")
