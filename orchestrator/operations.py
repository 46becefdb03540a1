"""What the orchestrator can be asked to do, and the path each operation takes through the graph (contract 3)."""

from __future__ import annotations

from enum import StrEnum


class Operation(StrEnum):
    """The operations by their full names."""

    CONVERSATION_LOG = "conversation_log"
    EXTRACT = "extract"
    SEARCH = "search"
    SEARCH_SESSIONS = "search_sessions"
    LIST = "list"
    FETCH = "fetch"
    TAG = "tag"
    DELETE = "delete"
    RESTORE = "restore"
    IMPORT = "import"
    DAILY_BRIEFING = "daily_briefing"


ALIASES = {"save": Operation.CONVERSATION_LOG, "retrieve": Operation.EXTRACT}
"""The seed's shorter names, accepted wherever an operation is named."""

PATHS: dict[str, tuple[str, ...]] = {
    "conversation_log": ("plan", "cr_write"),
    "extract": ("plan", "cr_query", "filter", "cr_write"),
    "extract, shortened": ("plan", "cr_query", "filter", "transform", "cr_write"),
    "search": ("plan", "cr_query", "filter"),
    "search_sessions": ("plan", "cr_query", "filter"),
    "list": ("plan", "cr_query", "filter"),
    "fetch": ("plan", "cr_query", "filter"),
    "tag": ("plan", "cr_write"),
    "delete": ("plan", "cr_write"),
    "restore": ("plan", "cr_write"),
    "import": ("plan", "cr_write"),
    "daily_briefing": ("plan", "cr_query", "transform", "external_action", "cr_write"),
}
"""By name of path; an operation takes the path of its own name unless `plan` says otherwise."""

READING = frozenset({Operation.EXTRACT, Operation.SEARCH, Operation.SEARCH_SESSIONS, Operation.LIST, Operation.FETCH})
"""Operations that answer from what is there, so that it is worth looking first for what has come in."""

NODES = ("plan", "cr_query", "filter", "transform", "external_action", "cr_write")


def full_name(operation: str) -> str:
    """The operation's full name for one of its aliases; any other word as it is."""
    return ALIASES.get(operation, operation)
