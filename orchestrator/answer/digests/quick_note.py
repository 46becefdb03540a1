"""The note of a new chat, read from an embedded registry's file without the database layer."""

import os
from pathlib import Path
from typing import Any

from orchestrator.answer.delivery import context_of
from orchestrator.answer.digests.start_note import LOOKED_AT, READ, STANDING, Standing, told, without_the_new_one
from orchestrator.answer.standing import where_it_stands
from registry.domain import is_within
from registry.errors import StorageError
from registry.project import Project, repository_id
from registry.storage.file_probe import embedded_file, quick_look, setting


def is_switched_off(home: Path, name: str) -> bool:
    """Return whether that setting is off."""
    return setting(home, os.environ, name) == "off"


def has_no_hints(home: Path, client: str, folder: str) -> bool:
    """Return whether hints are off for everything, for a client or for a folder."""
    off = [name for one in setting(home, os.environ, "hints_off").split(",") if (name := one.strip())]
    return is_switched_off(home, "hints") or client in off or any(is_within(folder, one) for one in off)


def quick_note(home: Path, folder: str, session: str | None) -> dict[str, Any] | None:
    """Return the note for a folder; None for a registry on a server, or one whose tables are of another version."""
    file = embedded_file(home, os.environ)
    if file is None:
        return None
    if not file.is_file():
        return told([], session_id=session)
    try:
        with quick_look(file) as look:
            project, repository = Project.from_path(folder).path, repository_id(folder)
            others = without_the_new_one(look.latest_channels(project, repository, READ), session)
            kept, standing = look.remembered(project, repository), []
            for each in others[:STANDING]:
                end = [
                    {**one, "tool": one["payload"].get("tool"), "context": context_of(one["role"], one["payload"])}
                    for one in look.end_of(each["number"], LOOKED_AT)
                ]
                standing.append(Standing(each, where_it_stands(end)))
    except StorageError:
        return None
    return told(standing + [Standing(each, {}) for each in others[STANDING:]], kept, session)
