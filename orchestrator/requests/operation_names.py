"""The operations by name: their short forms, and which of them read, and which are for this machine alone."""

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
    RESUME = "resume"
    NOTE = "note"
    BLAME = "blame"
    CREATE_BACKUP = "create_backup"
    LIST_BACKUPS = "list_backups"
    VALIDATE_BACKUP = "validate_backup"
    RESTORE_BACKUP = "restore_backup"
    MIGRATE = "migrate"
    COMPLETE = "complete"


ALIASES = {"save": Operation.CONVERSATION_LOG, "retrieve": Operation.EXTRACT}
"""Shorter names, accepted wherever an operation is named."""


READING = frozenset(
    {
        Operation.EXTRACT,
        Operation.SEARCH,
        Operation.SEARCH_SESSIONS,
        Operation.LIST,
        Operation.FETCH,
        Operation.NOTE,
        Operation.BLAME,
        Operation.DAILY_BRIEFING,
        Operation.CREATE_BACKUP,
    }
)
"""Operations that answer from what is there, so that it is worth looking first for what has come in."""


LOCAL = frozenset(
    {
        Operation.CREATE_BACKUP,
        Operation.LIST_BACKUPS,
        Operation.VALIDATE_BACKUP,
        Operation.RESTORE_BACKUP,
        Operation.MIGRATE,
    }
)
"""Operations on files of this machine, or on everything that is kept: not for whoever reaches a server's HTTP side."""
