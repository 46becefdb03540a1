"""The operations, each with all that is known of it beside its work and its request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from registry.access import Level


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


@dataclass(frozen=True, slots=True)
class OperationFacts:
    """Facts about one operation."""

    work: str
    """`module:name` of its `Steps` in `orchestrator.operations`, loaded when it is first asked for."""
    level: Level
    """The permission a token needs. Deleting for good needs `admin`, whatever stands here."""
    alias: str = ""
    syncs_first: bool = False
    """Answers from what is stored, so that clients' news is brought in first."""
    is_local: bool = False
    """Works on files of this machine, or on all that is stored: not over HTTP."""
    needs_everything: bool = False
    """Only for tokens without restrictions."""
    names_channel: bool = False
    """Changes the channel of just the name that is given, whether it exists or not."""
    instead: str = ""
    """For refusals: why it is not done over HTTP, and what to run."""


def _on_this_machine(work: str, *, syncs_first: bool = False) -> OperationFacts:
    return OperationFacts(work, Level.ADMIN, syncs_first=syncs_first, is_local=True, needs_everything=True)


READ, WRITE, ADMIN = Level.READ, Level.WRITE, Level.ADMIN
FACTS: Mapping[Operation, OperationFacts] = {
    Operation.CONVERSATION_LOG: OperationFacts("log:LOG", WRITE, alias="save", names_channel=True),
    Operation.EXTRACT: OperationFacts("extract:EXTRACT", READ, alias="retrieve", syncs_first=True),
    Operation.SEARCH: OperationFacts("search:SEARCH", READ, syncs_first=True),
    Operation.SEARCH_SESSIONS: OperationFacts("search_sessions:SESSIONS", READ, syncs_first=True),
    Operation.LIST: OperationFacts("history:LIST", READ, syncs_first=True),
    Operation.FETCH: OperationFacts("history:FETCH", READ, syncs_first=True),
    Operation.TAG: OperationFacts("manage:TAG", WRITE),
    Operation.DELETE: OperationFacts("manage:DELETE", WRITE, names_channel=True),
    Operation.RESTORE: OperationFacts("manage:RESTORE", WRITE, names_channel=True),
    Operation.IMPORT: OperationFacts("log:IMPORT", WRITE),
    Operation.DAILY_BRIEFING: OperationFacts("briefing:BRIEFING", WRITE, syncs_first=True),
    Operation.RESUME: OperationFacts(
        "resume:RESUME",
        ADMIN,
        instead="it writes a client's session on the server; run ctxr resume on the machine of the client",
    ),
    Operation.NOTE: OperationFacts("note:NOTE", READ, syncs_first=True),
    Operation.BLAME: OperationFacts(
        "blame:BLAME",
        ADMIN,
        syncs_first=True,
        needs_everything=True,
        instead="it runs git in a folder of the server; run ctxr blame on the machine where the repository is",
    ),
    Operation.CREATE_BACKUP: _on_this_machine("backup:CREATE", syncs_first=True),
    Operation.LIST_BACKUPS: _on_this_machine("backup:LIST"),
    Operation.VALIDATE_BACKUP: _on_this_machine("backup:VALIDATE"),
    Operation.RESTORE_BACKUP: _on_this_machine("backup:RESTORE"),
    Operation.MIGRATE: _on_this_machine("migrate:MIGRATE"),
    Operation.COMPLETE: OperationFacts("complete:COMPLETE", READ),
}
ALIASES = {facts.alias: operation for operation, facts in FACTS.items() if facts.alias}
READING = frozenset(operation for operation, facts in FACTS.items() if facts.syncs_first)
LOCAL = frozenset(operation for operation, facts in FACTS.items() if facts.is_local)
