"""Read the conversations of the Cursor IDE, from every generation of its storage.

The generations store lists and bubbles in different tables and files (`store`, `projects`), and have different fields
in a record (`conversations`, `bubbles`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from registry.domain import now
from registry.errors import StorageError
from sources.base import FoundSession, Paths, Skipped, Source
from sources.clients import CURSOR
from sources.cursor.conversations import SETTLED_AFTER, Composer, counted, headers_of, inline_bubbles, read_composer
from sources.cursor.projects import WorkspaceProjects, listed_project
from sources.cursor.store import DATABASE, GlobalStore, read_workspace, workspace_conversations, workspace_folders
from sources.kit.files import digest, is_there
from sources.kit.loose_json import mapping, read_json
from sources.kit.sqlite_store import ClientDatabase, DamagedDatabase, last_change, stamp
from sources.kit.workspace_files import user_folders

_UNLISTED = "lost, or not written yet; the messages were read in the order in which they were written"
_NO_RECORD = "listed by Cursor, but it keeps no record of them"

_Header = Mapping[str, Any]


@dataclass(slots=True)
class CursorIde(Source):
    """Reads one installation of Cursor: its global database and those of all its workspaces.

    A conversation has changed if its record or its entry in the lists has, or if a bubble was added, removed or
    rewritten. Cursor's tables replace a row on conflict, so that a rewritten bubble has a new row number; the index
    returns numbers and counts without reading values. An update within a row is noticed when the turn ends, because
    Cursor then writes the record.
    """

    name: str = CURSOR.source
    clock: Callable[[], datetime] = field(default=now)

    def find(self, paths: Paths) -> Iterator[Path]:
        """Yield the path of the global database of each Cursor on this machine, even if only workspaces have one.

        In WSL the IDE runs on Windows: `CTXR_CURSOR_DIR` must name its `User` folder on the mounted drive.
        """
        usual = user_folders(paths, ("Cursor", "Cursor Nightly"))
        for user_folder in dict.fromkeys(paths.named("CTXR_CURSOR_DIR") or usual):
            if any(is_there(user_folder / name) for name in ("globalStorage", "workspaceStorage")):
                yield user_folder / "globalStorage" / DATABASE

    def stamp(self, store: Path) -> str:
        """Return a digest of the status of all databases.

        It changes once more a minute after the last write, so that an answer that was incomplete is read then.
        """
        databases = [store, *(folder / DATABASE for folder in workspace_folders(store.parents[1]))]
        idle = self.clock().timestamp() - max(map(last_change, databases)) > SETTLED_AFTER.total_seconds()
        return digest(idle, [(database.parent.name, stamp(database)) for database in databases])

    def count(self, store: Path) -> int:
        if not store.exists():
            return 0
        with ClientDatabase(store) as database:
            return len(GlobalStore(database).composer_ids())

    def watched(self, store: Path) -> Iterable[Path]:
        return [store.parent, store.parents[1] / "workspaceStorage"]

    def backup_patterns(self) -> Iterable[str]:
        return (f"globalStorage/{DATABASE}", f"workspaceStorage/*/{DATABASE}", "workspaceStorage/*/workspace.json")

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """Yield the new and the changed conversations, one at a time in memory.

        An answer that is being written is left to a later pass, but not its question. Raises StorageError if the global
        database cannot be read.
        """
        if not store.exists():
            yield Skipped(f"{store.parent.name}/{store.name}", "not there; only the workspaces' own were read")
            yield from self._workspaces(store, seen, WorkspaceProjects(), frozenset())
            return
        with ClientDatabase(store) as database:
            global_store, workspaces = GlobalStore(database), WorkspaceProjects()
            composer_ids = global_store.composer_ids()
            yield from self._workspaces(store, seen, workspaces, frozenset(composer_ids))
            yield from self._composers(global_store, composer_ids, seen, workspaces)

    def _workspaces(
        self, store: Path, seen: Mapping[str, str], workspaces: WorkspaceProjects, known: frozenset[str]
    ) -> Iterator[FoundSession | Skipped]:
        """Yield the conversations that only workspaces store, each once; fill `workspaces` with projects and lists.

        `known`: the ids of composers in the global database.
        """
        done = set(known)
        for folder in workspace_folders(store.parents[1]):
            try:
                records = read_workspace(folder, workspaces)
            except StorageError as exc:
                yield Skipped(f"workspace {folder.name}", exc.details)
                continue
            changed = workspace_conversations(folder, records, workspaces, seen, done, self.clock())
            yield from (found for found in changed if found.session.messages)

    def _composers(
        self, store: GlobalStore, composer_ids: list[str], seen: Mapping[str, str], workspaces: WorkspaceProjects
    ) -> Iterator[FoundSession | Skipped]:
        headers, recorded = store.headers(), frozenset(composer_ids)
        without_record = [composer_id for composer_id in headers if composer_id not in recorded]
        recoverable = [composer_id for composer_id in without_record if store.bubble_ids(composer_id)]
        skip_counts = Counter({_NO_RECORD: len(without_record) - len(recoverable)})
        for composer_id in (*composer_ids, *recoverable):
            header = headers.get(composer_id, {})
            try:
                project = listed_project(composer_id, header, workspaces)
                about = header.get("name"), header.get("lastUpdatedAt"), project
                fingerprint = digest(*store.trace(composer_id), *about)
                if seen.get(composer_id) == fingerprint:
                    continue
                outcome = self._conversation(store, composer_id, header, workspaces, fingerprint)
            except DamagedDatabase as exc:
                outcome = Skipped(f"conversation {composer_id}", exc.details)
            if isinstance(outcome, str):
                skip_counts[outcome] += 1
            else:
                yield outcome
        yield from (Skipped(counted(count, "conversation"), why) for why, count in skip_counts.items() if count)

    def _conversation(
        self, store: GlobalStore, composer_id: str, header: _Header, workspaces: WorkspaceProjects, fingerprint: str
    ) -> FoundSession | Skipped | str:
        """Return the conversation, or why there is none: Skipped, or a string if such reasons are only counted."""
        record = mapping(read_json(store.value(f"composerData:{composer_id}")))
        order, skipped = headers_of(record), tuple[Skipped, ...]()
        if not order and (ids := store.bubble_ids(composer_id)):
            order = [{"bubbleId": bubble_id} for bubble_id in ids]
            skipped = (Skipped(f"list of messages of {composer_id}", _UNLISTED),)
        if not (record or order):
            return Skipped(f"conversation {composer_id}", "its record is not a JSON object")
        composer, bubbles = Composer(composer_id, record, header), _bubbles(store, composer_id, record, order)
        reading = read_composer(composer, bubbles, workspaces, self.clock())
        if not reading.session.messages:
            return "drafts or empty conversations"
        fingerprint += "" if reading.settled else "…"
        return FoundSession(composer_id, fingerprint, reading.session, skipped + reading.skipped)


def _bubbles(
    store: GlobalStore, composer_id: str, record: _Header, order: list[dict[str, Any]]
) -> Iterator[tuple[_Header, Any]]:
    inline = inline_bubbles(record)
    for header in order:
        bubble_id = header["bubbleId"]
        stored = None if bubble_id in inline else store.value(f"bubbleId:{composer_id}:{bubble_id}")
        yield header, inline.get(bubble_id) if stored is None else stored
