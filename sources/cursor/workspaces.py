"""Read the folder `workspaceStorage`: the workspaces' projects and the conversations in their own databases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from registry.domain import Message, Role, Session
from sources.base import FoundSession
from sources.cursor.bubbles import attachments_of, bubble_text
from sources.cursor.conversations import Composer, first_line, headers_of, inline_bubbles, reading_of
from sources.cursor.projects import WorkspaceProjects
from sources.cursor.store import WorkspaceRows, workspace_rows
from sources.cursor.times import TimeFrame, dated, moment
from sources.kit import drafts
from sources.kit.files import folders_in, store_entries
from sources.kit.jsonl import string
from sources.kit.loose_json import objects
from sources.kit.sqlite_files import last_change
from sources.kit.sqlite_store import ClientDatabase
from sources.kit.workspace_files import project_of_workspace

DATABASE = "state.vscdb"
_SPEAKERS = {"user": Role.USER, "ai": Role.ASSISTANT}


def workspace_folders(user_folder: Path) -> list[Path]:
    """Return the folders of all workspaces that Cursor has opened, sorted. Raises StorageError."""
    return sorted(map(Path, folders_in(store_entries(user_folder / "workspaceStorage"))))


def note_workspace(folder: Path, workspaces: WorkspaceProjects, wait_s: float) -> WorkspaceRows:
    """Read one workspace, and note its project and which composers it lists. Raises StorageError."""
    project = project_of_workspace(folder)
    if project:
        workspaces.project_by_id[folder.name] = project
    database = folder / DATABASE
    if not database.exists():
        return WorkspaceRows([], set(), {})
    with ClientDatabase(database, wait_s) as opened:
        rows = workspace_rows(opened)
    if project:
        for composer_id in rows.listed:
            workspaces.project_by_composer.setdefault(composer_id, project)
    return rows


def own_conversations(
    folder: Path,
    rows: WorkspaceRows,
    workspaces: WorkspaceProjects,
    seen: Mapping[str, str],
    done: set[str],
    now: datetime,
) -> Iterator[FoundSession]:
    """Yield the changed conversations that only this workspace stores: tabs of the old panel, whole composers.

    Keys in `done` were met before and are passed over; it grows, since two workspaces may list the same one.
    """
    project = workspaces.project_by_id.get(folder.name)
    tabs = {string(tab.get("tabId")) or f"{folder.name}-{place}": tab for place, tab in enumerate(rows.tabs, 1)}
    for key, kept in (tabs | rows.inline).items():
        fingerprint = blake2b(json.dumps([kept, project]).encode(), digest_size=16).hexdigest()
        if key in done:
            continue
        done.add(key)
        if seen.get(key) == fingerprint:
            continue
        if key in rows.inline:
            inline = inline_bubbles(kept)
            bubbles = [(header, inline.get(header["bubbleId"])) for header in headers_of(kept)]
            reading = reading_of(Composer(key, kept, {}), bubbles, workspaces, now)
            found = FoundSession(key, fingerprint, reading.session, reading.skipped)
        else:
            found = FoundSession(key, fingerprint, tab_session(kept, key, project, now))
        touched = drafts.moment(last_change(folder / DATABASE) or None)
        yield replace(found, session=drafts.dated(found.session, touched))


# The chat panel that Cursor had before composers, until early 2025


def tab_session(tab: Mapping[str, Any], tab_id: str, project: str | None, now: datetime) -> Session:
    """Read a tab of the panel; Cursor stored a time for its last message only."""
    messages = list(_messages(objects(tab.get("bubbles"))))
    span = TimeFrame(None, moment(tab.get("lastSendTime")), now)
    asked = (first_line(message.text) for message in messages if message.role is Role.USER)
    titles = (string(tab.get("chatTitle")).strip(), *asked)
    title = next(filter(None, titles), "Untitled")
    return Session(session_id=tab_id, messages=dated(messages, span), title=title, project=project)


def _messages(bubbles: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
    for bubble in bubbles:
        role, text = _SPEAKERS.get(string(bubble.get("type"))), bubble_text(bubble)
        if role and text:
            more = {
                "native_id": string(bubble.get("id")) or string(bubble.get("bubbleId")),
                "model": string(bubble.get("modelType")) if role is Role.ASSISTANT else "",
                "attachments": attachments_of(bubble),
            }
            known = {name: value for name, value in more.items() if value}
            yield Message(role, text, moment(bubble.get("createdAt")), more=known)
