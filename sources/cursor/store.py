"""Query Cursor's databases.

Only by key ranges and single keys: `LIKE` would scan gigabytes, and other keys of the same tables have credentials.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from sources.base import FoundSession
from sources.cursor.conversations import Composer, headers_of, inline_bubbles, read_composer
from sources.cursor.projects import WorkspaceProjects
from sources.kit import drafts
from sources.kit.files import digest, folders_in, store_entries
from sources.kit.loose_json import Record, mapping, objects, read_json, string, strings
from sources.kit.sqlite_store import ClientDatabase, last_change
from sources.kit.workspace_files import project_of_workspace

GLOBAL_LIST_KEY, WORKSPACE_LIST_KEY = "composer.composerHeaders", "composer.composerData"
_CHAT_KEY = "workbench.panel.aichat.view.aichat.chatdata"
_PANE_KEY = "workbench.panel.composerChatViewPane"

_HEADER_FIELDS = (
    *("name", "createdAt", "lastUpdatedAt", "conversationCheckpointLastUpdatedAt"),
    *("workspaceIdentifier", "workspaceId", "trackedGitRepos"),
    *("subagentInfo", "unifiedMode", "forceMode"),
)


class GlobalStore:
    """The database `globalStorage/state.vscdb`: composers, their bubbles, and two generations of lists of them."""

    def __init__(self, database: ClientDatabase) -> None:
        self._database = database
        self._tables = database.tables()

    def composer_ids(self) -> list[str]:
        """Return the ids of all composers with a record, except the empty draft."""
        if "cursorDiskKV" not in self._tables:
            return []
        rows = self._database.rows("SELECT key FROM cursorDiskKV WHERE key >= ? AND key < ?", _keys("composerData"))
        ids = (key.partition(":")[2] for (key,) in rows)
        return [composer_id for composer_id in ids if composer_id not in ("", "empty-state-draft")]

    def trace(self, composer_id: str) -> tuple[int, ...]:
        """Return numbers that change with the composer, without reading values: row and length of its record; count,
        newest row and sum of rows of its bubbles."""
        [record] = self._database.rows(
            "SELECT rowid, ifnull(length(CAST(value AS BLOB)), 0) FROM cursorDiskKV WHERE key = ?",
            (f"composerData:{composer_id}",),
        ) or [(0, 0)]
        [bubbles] = self._database.rows(
            "SELECT count(*), ifnull(max(rowid), 0), ifnull(sum(rowid), 0) FROM cursorDiskKV"
            " WHERE key >= ? AND key < ?",
            _keys(f"bubbleId:{composer_id}"),
        )
        return (*record, *bubbles)

    def bubble_ids(self, composer_id: str) -> list[str]:
        """Return the ids of a composer's bubbles in the order in which they were written."""
        query = "SELECT key FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY rowid"
        return [key.split(":", 2)[2] for (key,) in self._database.rows(query, _keys(f"bubbleId:{composer_id}"))]

    def headers(self) -> dict[str, dict[str, Any]]:
        """Return the fields of each composer in the lists; the table overrides the old list, which may be stale."""
        entries: list[dict[str, Any]] = []
        if "ItemTable" in self._tables:
            for (value,) in self._database.rows("SELECT value FROM ItemTable WHERE key = ?", (GLOBAL_LIST_KEY,)):
                entries += objects(mapping(read_json(value)).get("allComposers"))
        if "composerHeaders" in self._tables:
            for row in self._database.records("SELECT * FROM composerHeaders"):
                entries += [{**mapping(read_json(row.get("value"))), "composerId": row.get("composerId")}, row]
        found: dict[str, dict[str, Any]] = {}
        for entry in entries:
            if composer_id := string(entry.get("composerId")):
                wanted = {key: entry[key] for key in _HEADER_FIELDS if entry.get(key) not in (None, "", 0)}
                found.setdefault(composer_id, {}).update(wanted)
        return found

    def value(self, key: str) -> Any:
        rows = self._database.rows("SELECT value FROM cursorDiskKV WHERE key = ?", (key,))
        return rows[0][0] if rows else None


def _keys(family: str) -> tuple[str, str]:
    """Return the range of keys that begin with `family:`; `;` is the character after the colon."""
    return f"{family}:", f"{family};"


DATABASE = "state.vscdb"


def workspace_folders(user_folder: Path) -> list[Path]:
    """Return the folders of all workspaces that Cursor has opened, sorted. Raises StorageError."""
    return sorted(map(Path, folders_in(store_entries(user_folder / "workspaceStorage"))))


def read_workspace(folder: Path, workspaces: WorkspaceProjects) -> dict[str, Record]:
    """Return the records of a workspace's own conversations by key: tabs of the old panel, whole composers.

    Its project and its listed composers are added to `workspaces`. Raises StorageError.
    """
    project, database = project_of_workspace(folder), folder / DATABASE
    if project:
        workspaces.project_by_id[folder.name] = project
    if not database.exists():
        return {}
    wanted = "SELECT key, value FROM ItemTable WHERE key IN (?, ?) OR (key >= ? AND key < ?)"
    keys = (WORKSPACE_LIST_KEY, _CHAT_KEY, _PANE_KEY, _PANE_KEY + "~")
    with ClientDatabase(database) as opened:
        rows = opened.rows(wanted, keys) if "ItemTable" in opened.tables() else []
    values = {key: read_json(value) for key, value in rows}
    composers = mapping(values.pop(WORKSPACE_LIST_KEY, None))
    tabs = objects(mapping(values.pop(_CHAT_KEY, None)).get("tabs"))
    whole = {string(entry.get("composerId")): entry for entry in objects(composers.get("allComposers"))}
    listed = {*whole, *strings(composers.get("selectedComposerIds")), *strings(composers.get("lastFocusedComposerIds"))}
    listed.update(key.removeprefix("workbench.panel.aichat.view.") for pane in values.values() for key in mapping(pane))
    for composer_id in filter(None, listed if project else ()):
        workspaces.project_by_composer.setdefault(composer_id, project)
    own = ((string(tab.get("tabId")) or f"{folder.name}-{index}", tab) for index, tab in enumerate(tabs, 1))
    inline = {composer_id: entry for composer_id, entry in whole.items() if entry.get("conversation")}
    return {key: record_of_tab(tab, folder.name) for key, tab in own} | inline


def workspace_conversations(
    folder: Path,
    records: Mapping[str, Record],
    workspaces: WorkspaceProjects,
    seen: Mapping[str, str],
    done: set[str],
    now: datetime,
) -> Iterator[FoundSession]:
    """Yield the changed conversations of a workspace's own records.

    Keys in `done` are skipped; all keys are added to it, because two workspaces may list the same conversation.
    """
    for key, record in records.items():
        fingerprint = digest(record, workspaces.project_by_id.get(folder.name))
        is_known = key in done or seen.get(key) == fingerprint
        done.add(key)
        if is_known:
            continue
        inline = inline_bubbles(record)
        bubbles = [(header, inline.get(header["bubbleId"])) for header in headers_of(record)]
        reading = read_composer(Composer(key, record, {}), bubbles, workspaces, now)
        session = drafts.dated(reading.session, drafts.moment(last_change(folder / DATABASE) or None))
        yield FoundSession(key, fingerprint, session, reading.skipped)


def record_of_tab(tab: Mapping[str, Any], workspace_id: str) -> dict[str, Any]:
    """Convert a tab of the chat panel, which Cursor had until early 2025, to a composer's record."""
    bubbles = [
        {
            **bubble,
            "type": {"user": 1, "ai": 2}.get(string(bubble.get("type"))),
            "bubbleId": string(bubble.get("id")) or string(bubble.get("bubbleId")),
            "modelInfo": {"modelName": bubble.get("modelType")},
        }
        for bubble in objects(tab.get("bubbles"))
    ]
    last = tab.get("lastSendTime")
    return {"name": tab.get("chatTitle"), "lastUpdatedAt": last, "conversation": bubbles, "workspaceId": workspace_id}
