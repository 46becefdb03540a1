"""Sessions whose folder is now another one: a project that was renamed or moved keeps its history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from orchestrator.requests.shapes import MigrateRequest
from orchestrator.state import Run, State, Steps
from registry.domain import Project, now
from registry.errors import InvalidRequest, NotFound
from registry.storage.conversations.channels import ChannelRow, find_channel
from registry.storage.conversations.project_moves import channels_of_project, move_channel, project_paths
from registry.storage.conversations.references import resolve_session
from registry.storage.database import ReadTransaction, WriteTransaction
from sources.cursor.copying import plan_copy
from sources.cursor.journal import Step, apply, refuse_while_running, undo
from sources.cursor.moving import plan, target_of
from sources.cursor.reader import CursorIde

Moves = Sequence[tuple[ChannelRow, str]]
CURSOR = "cursor"


def move(tx: WriteTransaction, run: Run, request: MigrateRequest, _state: State) -> dict[str, Any]:
    """Move one session, or all of a folder and of the folders in it, or a move back. What is told undoes it."""
    query = request.query
    if query.undo:
        return _back(tx, run, Path(query.undo))
    old, new = _folder(query.workspace or ""), _folder(query.to)
    if bool(request.channel) == bool(query.workspace) or not new:
        raise InvalidRequest(
            "Say which sessions move, and where.",
            "allowed: query.to, and either channel, a session's id, or query.workspace",
        )
    is_copy = query.mode == "copy"
    if is_copy and not query.in_cursor:
        raise InvalidRequest("A copy is made in Cursor's own list.", "mode: copy is allowed with in_cursor alone")
    rows = [resolve_session(tx, request.channel)] if request.channel else _of(tx, old)
    moved = [(row, _moved_path(row, old, new)) for row in rows if not is_copy or row.source == CURSOR]
    told = _told(moved, dry_run=query.dry_run)
    run.recorder.explain(sessions=len(rows), to=new, dry_run=query.dry_run, in_cursor=query.in_cursor, mode=query.mode)
    for row, path in () if query.dry_run or is_copy else moved:
        move_channel(tx, row, path)
    return told | _in_cursor(run, moved, told, query.mode) if query.in_cursor else told


def _told(moved: Moves, *, dry_run: bool) -> dict[str, Any]:
    return {
        "successCount": len(moved),
        "failedCount": 0,
        "errors": [],
        "dry_run": dry_run,
        "moves": [{"channel": row.name, "from": row.project_path, "to": path} for row, path in moved],
    }


def _in_cursor(run: Run, moved: Moves, told: dict[str, Any], mode: str) -> dict[str, Any]:
    """Move or copy in Cursor's databases too, after ours, which are rolled back with it. Returns the journal's path.

    A copy is a conversation of its own: it comes in with the next sync, and nothing here has moved.
    """
    if run.shelf is None or run.shelf.places is None:
        raise InvalidRequest("Cursor's database is not here.", "ask `ctxr migrate` on the machine where Cursor runs")
    users = [store.parents[1] for store in CursorIde().find(run.shelf.places)]
    steps = [step for user in users for step in _planned(user, moved, mode)]
    about = {"in_cursor": {"values": len(steps)}}
    if told["dry_run"]:
        return about
    refuse_while_running()
    if not steps:
        return about
    journal = run.shelf.folder / f"{now():%Y-%m-%dT%H%M%S%fZ}-cursor-{mode}.json"
    apply(steps, journal, {"moves": told["moves"] if mode == "move" else []})
    run.recorder.explain(journal=str(journal), values=len(steps))
    return {"in_cursor": {"values": len(steps), "journal": str(journal)}}


def _planned(user_folder: Path, moved: Moves, mode: str) -> Iterable[Step]:
    by_folder: dict[str, list[str]] = {}
    for row, path in moved:
        if row.source == CURSOR and row.session_id:
            by_folder.setdefault(path, []).append(row.session_id)
    for path, composer_ids in by_folder.items():
        target = target_of(user_folder, path)
        yield from (
            plan(user_folder, composer_ids, target) if mode == "move" else plan_copy(user_folder, composer_ids, target)
        )


def _back(tx: WriteTransaction, run: Run, journal: Path) -> dict[str, Any]:
    """A move in Cursor's database put back, there and here."""
    noted = undo(journal)
    there = [(find_channel(tx, one["channel"]), one["from"]) for one in noted["moves"]]
    moved = [(row, path) for row, path in there if row is not None and path]
    for row, path in moved:
        move_channel(tx, row, path)
    run.recorder.explain(undone=str(journal), sessions=len(moved))
    return _told(moved, dry_run=False)


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
