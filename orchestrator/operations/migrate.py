"""Sessions whose folder is now another one: a project that was renamed or moved keeps its history."""

from __future__ import annotations

from typing import Any

from orchestrator.requests import MigrateRequest
from orchestrator.state import Run, State, Steps
from registry.domain import Project
from registry.errors import InvalidRequest, NotFound
from registry.storage.channels import ChannelRow, channels_of_project, move_channel, project_paths
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.references import resolve_session


def move(tx: WriteTransaction, run: Run, request: MigrateRequest, _state: State) -> dict[str, Any]:
    """Move one session, or all of a folder and of the folders in it. What is told is what can be undone with."""
    query = request.query
    old, new = _folder(query.workspace or ""), _folder(query.to)
    if bool(request.channel) == bool(query.workspace):
        raise InvalidRequest("Say which sessions move.", "allowed: either channel, a session's id, or query.workspace")
    rows = [resolve_session(tx, request.channel)] if request.channel else _of(tx, old)
    moved = [(row, _moved_path(row, old, new)) for row in rows]
    run.recorder.explain(sessions=len(rows), to=new, dry_run=query.dry_run)
    if not query.dry_run:
        for row, path in moved:
            move_channel(tx, row, path)
    return {
        "successCount": len(moved),
        "failedCount": 0,
        "errors": [],
        "dry_run": query.dry_run,
        "moves": [{"channel": row.name, "from": row.project_path, "to": path} for row, path in moved],
    }


def _folder(given: str) -> str:
    return given.rstrip("/\\") or given


def _of(tx: ReadTransaction, old: str) -> list[ChannelRow]:
    rows = channels_of_project(tx, old)
    if not rows:
        known = ", ".join(project_paths(tx)[:5])
        raise NotFound("No such project", f"workspace: given {old!r}; there are: {known or 'none yet'}")
    return rows


def _moved_path(row: ChannelRow, old: str, new: str) -> str:
    """A folder inside the one that moved went with it."""
    inside = (row.project_path or "")[len(old) :] if old else ""
    return Project.from_path(new + inside).path


MIGRATE = Steps[MigrateRequest, None](write=move)
