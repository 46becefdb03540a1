"""Compose the note of a new chat directly from an embedded registry's file, without the database layer."""

import os
from pathlib import Path
from typing import Any

from orchestrator.answer.conversation_state import state_of
from orchestrator.answer.delivery import context_of
from orchestrator.answer.digests.start_note import (
    SESSIONS_READ,
    SESSIONS_WITH_STATE,
    STATE_MESSAGES,
    SessionState,
    compose_note,
    recent_sessions,
)
from registry.domain import is_within
from registry.errors import StorageError
from registry.project import Project, repository_id
from registry.storage.file_probe import embedded_file, open_registry_file, setting


def is_switched_off(home: Path, name: str) -> bool:
    """Return True if a setting is off."""
    return setting(home, os.environ, name) == "off"


def has_no_hints(home: Path, client: str, folder: str) -> bool:
    """Return True if hints are off for everything, for a client or for a folder."""
    off = [name for one in setting(home, os.environ, "hints_off").split(",") if (name := one.strip())]
    return is_switched_off(home, "hints") or client in off or any(is_within(folder, one) for one in off)


def quick_note(home: Path, folder: str, session: str | None) -> dict[str, Any] | None:
    """Return the note for a folder; None for a registry on a server, or one whose tables are of another version."""
    file = embedded_file(home, os.environ)
    if file is None:
        return None
    if not file.is_file():
        return compose_note([], session_id=session)
    try:
        with open_registry_file(file) as look:
            project, repository = Project.from_path(folder).path, repository_id(folder)
            others = recent_sessions(look.latest_channels(project, repository, SESSIONS_READ), session)
            remembered, with_state = look.remembered(project, repository), []
            for each in others[:SESSIONS_WITH_STATE]:
                end = [
                    {**one, "tool": one["payload"].get("tool"), "context": context_of(one["role"], one["payload"])}
                    for one in look.last_messages(each["number"], STATE_MESSAGES)
                ]
                with_state.append(SessionState(each, state_of(end)))
    except StorageError:
        return None
    titles = [SessionState(each, {}) for each in others[SESSIONS_WITH_STATE:]]
    return compose_note(with_state + titles, remembered, session)
