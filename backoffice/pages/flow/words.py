"""What a record's fields, and the few words of the program's own in them, are called on a page; in English."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.operations import labels

FIELDS = {name: english for name, (english, _) in labels().items()}

ROLES = {
    "user": "You",
    "assistant": "Assistant",
    "system": "System",
    "tool": "Tool",
    "thinking": "Thinking",
    "error": "Error",
}

ERRORS = {
    "INVALID_REQUEST": "Not valid",
    "UNAUTHORIZED": "Not let in",
    "NOT_FOUND": "Nothing found",
    "STORAGE_ERROR": "Storage",
    "TIMEOUT": "Took too long",
    "INTERNAL_ERROR": "Internal fault",
}

VALUES: Mapping[str, Mapping[str, str]] = {
    "mode": {
        "raw": "the messages themselves",
        "summary": "a summary",
        "digest": "a digest in a few lines",
        "move": "move",
        "copy": "copy",
    },
    "order": {"desc": "newest first", "asc": "oldest first"},
    "confidence": {"high": "high", "medium": "medium", "low": "low"},
    "relaxed": {
        "words": "the words",
        "time": "the time",
        "time and words": "the time and the words",
    },
    "data_types": {"conversation_summaries": "conversations", "notion_snapshots": "Notion pages"},
    "language": {"en": "English", "ko": "Korean"},
    "summary_by": {"extractive": "the program"},
    "project": {"General": "General"},
    "role": ROLES,
    "roles": ROLES,
    "changed": FIELDS,
}
"""By field; what is not here is data, and stays as it is."""


def field(name: str) -> str:
    """Return the English label of a record's field."""
    return FIELDS.get(name, name.replace("_", " "))


def named(details: str, translate: Callable[[str], str]) -> str:
    """Why a request was refused, its fields called as people call them: `query.limit: given 0` as `limit: given 0`."""
    return _FAULTY.sub(lambda found: translate(field(found[1])), details)


_FAULTY = re.compile(r"(?:^|(?<=; ))(?:query\.)?(\w+)(?=: (?:given|missing))")


def value(given: str, name: str) -> str | None:
    """A value of that field in English words; None if it is data."""
    return VALUES.get(name, {}).get(given)


def asked(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request with their labels."""
    return {**{name: given for name, given in request.items() if name != "query"}, **request.get("query", {})}
