"""What stands where in Cursor's databases: every statement we put to them.

Only key ranges and named keys: `LIKE` would scan gigabytes, and other keys of the same tables hold credentials.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sources.kit.jsonl import mapping, string
from sources.kit.loose_json import objects, read_json, strings
from sources.kit.sqlite_store import ClientDatabase

_DRAFT = "empty-state-draft"
_LIST_KEY = "composer.composerHeaders"
_WORKSPACE_LIST_KEY = "composer.composerData"
_CHAT_KEY = "workbench.panel.aichat.view.aichat.chatdata"
_PANE_KEY = "workbench.panel.composerChatViewPane"
_PANE_OF = "workbench.panel.aichat.view."

_HEADER_FIELDS = frozenset(
    (
        *("name", "subtitle", "createdAt", "lastUpdatedAt", "conversationCheckpointLastUpdatedAt"),
        *("workspaceIdentifier", "workspaceId", "agentLocation", "trackedGitRepos"),
        *("subagentInfo", "subagentTypeName", "subagentComposerIds", "subComposerIds"),
        *("isArchived", "unifiedMode", "forceMode"),
    )
)


class Trace(NamedTuple):
    """What changes when a conversation does, read without reading it (`CursorIde` says why)."""

    record_row: int = 0
    record_length: int = 0
    bubbles: int = 0
    newest_row: int = 0
    rows_total: int = 0


class GlobalStore:
    """The database `globalStorage/state.vscdb`: composers, their bubbles, and two generations of lists."""

    def __init__(self, database: ClientDatabase) -> None:
        self._database = database
        self._tables = database.tables()

    def composer_ids(self) -> list[str]:
        """The ids of all composers that have a record, without the empty input box."""
        if "cursorDiskKV" not in self._tables:
            return []
        rows = self._database.rows("SELECT key FROM cursorDiskKV WHERE key >= ? AND key < ?", _keys("composerData"))
        ids = (key.partition(":")[2] for (key,) in rows)
        return [composer_id for composer_id in ids if composer_id and composer_id != _DRAFT]

    def trace(self, composer_id: str) -> Trace:
        """The state of a composer; its bubbles are only counted in the index."""
        [record] = self._database.rows(
            "SELECT rowid, ifnull(length(CAST(value AS BLOB)), 0) FROM cursorDiskKV WHERE key = ?",
            (f"composerData:{composer_id}",),
        ) or [(0, 0)]
        [bubbles] = self._database.rows(
            "SELECT count(*), ifnull(max(rowid), 0), ifnull(sum(rowid), 0) FROM cursorDiskKV"
            " WHERE key >= ? AND key < ?",
            _keys(f"bubbleId:{composer_id}"),
        )
        return Trace(*record, *bubbles)

    def record(self, composer_id: str) -> Any:
        """The record of a composer as JSON text or bytes."""
        return self._value(f"composerData:{composer_id}")

    def bubble(self, composer_id: str, bubble_id: str) -> Any:
        """A bubble as JSON text or bytes; None if it is not there."""
        return self._value(f"bubbleId:{composer_id}:{bubble_id}")

    def bubble_ids(self, composer_id: str) -> list[str]:
        """The ids of a composer's bubbles in the order in which they were first written."""
        query = "SELECT key FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY rowid"
        return [key.split(":", 2)[2] for (key,) in self._database.rows(query, _keys(f"bubbleId:{composer_id}"))]

    def headers(self) -> dict[str, dict[str, Any]]:
        """What the lists say of each composer: the table before its stale mirror, field by field."""
        found: dict[str, dict[str, Any]] = {}
        for composer_id, header in (*self._mirrored_headers(), *self._table_headers()):
            found.setdefault(composer_id, {}).update(header)
        return found

    def _value(self, key: str) -> Any:
        rows = self._database.rows("SELECT value FROM cursorDiskKV WHERE key = ?", (key,))
        return rows[0][0] if rows else None

    def _mirrored_headers(self) -> Iterator[tuple[str, dict[str, Any]]]:
        if "ItemTable" in self._tables:
            for (value,) in self._database.rows("SELECT value FROM ItemTable WHERE key = ?", (_LIST_KEY,)):
                yield from _listed(mapping(read_json(value)))

    def _table_headers(self) -> Iterator[tuple[str, dict[str, Any]]]:
        if "composerHeaders" not in self._tables:
            return
        for row in self._database.records("SELECT * FROM composerHeaders"):
            composer_id = string(row.get("composerId"))
            if composer_id:
                yield composer_id, {**_wanted(mapping(read_json(row.get("value")))), **_wanted(row)}


class WorkspaceRows(NamedTuple):
    """What one workspace's database says: tabs of the old panel, composers it lists, composers it holds whole."""

    tabs: list[dict[str, Any]]
    listed: set[str]
    inline: dict[str, dict[str, Any]]


def workspace_rows(database: ClientDatabase) -> WorkspaceRows:
    """The conversations of a workspace's own database, by named keys only."""
    values = dict(_workspace_values(database))
    composers = mapping(values.pop(_WORKSPACE_LIST_KEY, None))
    tabs = objects(mapping(values.pop(_CHAT_KEY, None)).get("tabs"))
    whole = objects(composers.get("allComposers"))
    listed = {string(entry.get("composerId")) for entry in whole}
    listed.update(strings(composers.get("selectedComposerIds")), strings(composers.get("lastFocusedComposerIds")))
    listed.update(key.removeprefix(_PANE_OF) for pane in values.values() for key in mapping(pane))
    inline = {string(entry.get("composerId")): entry for entry in whole if entry.get("conversation")}
    return WorkspaceRows(tabs, listed - {""}, inline)


def _workspace_values(database: ClientDatabase) -> Iterator[tuple[str, Any]]:
    if "ItemTable" not in database.tables():
        return
    wanted = "SELECT key, value FROM ItemTable WHERE key IN (?, ?) OR (key >= ? AND key < ?)"
    for key, value in database.rows(wanted, (_WORKSPACE_LIST_KEY, _CHAT_KEY, _PANE_KEY, _PANE_KEY + "~")):
        yield key, read_json(value)


def _listed(given: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for header in objects(given.get("allComposers")):
        composer_id = string(header.get("composerId"))
        if composer_id:
            yield composer_id, _wanted(header)


def _wanted(header: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in header.items() if key in _HEADER_FIELDS and value not in (None, "", 0)}


def _keys(family: str) -> tuple[str, str]:
    """The range of keys that begin with `family:`; `;` is the character after the colon."""
    return f"{family}:", f"{family};"
