"""migrate: move sessions to another project folder, optionally in Cursor's database, too."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import GeneralState, Operation, Run, Steps, local_files_of
from orchestrator.tool import Caller, Effect, SessionId, Tool, ToolArguments
from registry.access import Level
from registry.domain import now
from registry.errors import InvalidRequest, NotFound
from registry.project import Project
from registry.storage.conversations.belonging import channels_of_project, move_channel
from registry.storage.conversations.channels import ChannelRow, find_channel
from registry.storage.conversations.facets import projects_by_activity
from registry.storage.conversations.references import resolve_session
from registry.storage.database import ReadTransaction, WriteTransaction
from sources.cursor.journal import Step, apply, refuse_while_running, undo
from sources.cursor.moving import plan_copy, plan_move, target_of
from sources.cursor.reader import CursorIde

Moves = Sequence[tuple[ChannelRow, str]]
CURSOR = "cursor"


class MoveOptions(QueryShape):
    """The options of a move."""

    dry_run: bool = Field(False, description="only say what would move")
    in_cursor: bool = Field(False, description="also inside Cursor's own database; what changes is noted, to undo it")
    mode: Literal["move", "copy"] = Field(
        "move", description="copy, with in_cursor: the old one stays, and Cursor gets another"
    )


class MigrateQuery(MoveOptions):
    """The sessions of a folder, or the request's channel, and their new folder."""

    to: str = Field("", description="the folder's path now")
    workspace: str | None = Field(None, min_length=1, description="the folder's path before")
    undo: str | None = Field(None, min_length=1, description="instead: the journal of a move in Cursor, to put it back")


class MigrateRequest(Request):
    operation = "migrate"
    query: MigrateQuery


def move(tx: WriteTransaction, run: Run, request: MigrateRequest, _state: GeneralState) -> dict[str, Any]:
    """Move one session or all sessions of a folder and its subfolders; or undo a move."""
    query = request.query
    if query.undo:
        return _undo_move(tx, run, Path(query.undo))
    old, new = _folder(query.workspace or ""), _folder(query.to)
    if bool(request.channel) == bool(query.workspace) or not new:
        raise InvalidRequest(
            "Say which sessions move, and where.",
            "allowed: query.to, and either channel, a session's id, or query.workspace",
        )
    is_copy = query.mode == "copy"
    if is_copy and not query.in_cursor:
        raise InvalidRequest(
            "A copy can only be made in Cursor's own list.", "mode: copy is allowed only with in_cursor"
        )
    rows = [resolve_session(tx, request.channel)] if request.channel else _channels_of(tx, old)
    moved = [(row, _moved_path(row, old, new)) for row in rows if not is_copy or row.source == CURSOR]
    result = _move_result(moved, dry_run=query.dry_run)
    run.recorder.explain(sessions=len(rows), to=new, dry_run=query.dry_run, in_cursor=query.in_cursor, mode=query.mode)
    for row, path in () if query.dry_run or is_copy else moved:
        move_channel(tx, row, path)
    return result | _move_in_cursor(run, moved, result, query.mode) if query.in_cursor else result


def _move_result(moved: Moves, *, dry_run: bool) -> dict[str, Any]:
    return {
        "successCount": len(moved),
        "failedCount": 0,
        "errors": [],
        "dry_run": dry_run,
        "moves": [{"channel": row.name, "from": row.project_path, "to": path} for row, path in moved],
    }


def _move_in_cursor(run: Run, moved: Moves, result: dict[str, Any], mode: str) -> dict[str, Any]:
    """Move or copy sessions in Cursor's databases, during our transaction; return the path of the journal.

    A copy is a new conversation, which the next sync imports; nothing moves here.
    """
    local_files = local_files_of(run)
    users = [store.parents[1] for store in CursorIde().find(local_files.paths)]
    steps = [step for user in users for step in _plan_steps(user, moved, mode)]
    about = {"in_cursor": {"values": len(steps)}}
    if result["dry_run"]:
        return about
    refuse_while_running()
    if not steps:
        return about
    journal = local_files.folder / f"{now():%Y-%m-%dT%H%M%S%fZ}-cursor-{mode}.json"
    apply(steps, journal, {"moves": result["moves"] if mode == "move" else []})
    run.recorder.explain(journal=str(journal), values=len(steps))
    return {"in_cursor": {"values": len(steps), "journal": str(journal)}}


def _plan_steps(user_folder: Path, moved: Moves, mode: str) -> Iterable[Step]:
    by_folder: dict[str, list[str]] = {}
    for row, path in moved:
        if row.source == CURSOR and row.session_id:
            by_folder.setdefault(path, []).append(row.session_id)
    plan = plan_move if mode == "move" else plan_copy
    for path, composer_ids in by_folder.items():
        yield from plan(user_folder, composer_ids, target_of(user_folder, path))


def _undo_move(tx: WriteTransaction, run: Run, journal: Path) -> dict[str, Any]:
    noted = undo(journal)
    journalled = [(find_channel(tx, one["channel"]), one["from"]) for one in noted["moves"]]
    moved = [(row, path) for row, path in journalled if row is not None and path]
    for row, path in moved:
        move_channel(tx, row, path)
    run.recorder.explain(undone=str(journal), sessions=len(moved))
    return _move_result(moved, dry_run=False)


def _folder(given: str) -> str:
    return given.rstrip("/\\") or given


def _channels_of(tx: ReadTransaction, old: str) -> list[ChannelRow]:
    rows = channels_of_project(tx, old)
    if not rows:
        known = ", ".join(path for _, path, _ in projects_by_activity(tx, 5))
        raise NotFound("No such project", f"workspace: given {old!r}; there are: {known or 'none yet'}")
    return rows


def _moved_path(row: ChannelRow, old: str, new: str) -> str:
    """Return the new path; subfolders move with their folder."""
    inside = (row.project_path or "")[len(old) :] if old else ""
    return Project.from_path(new + inside).path


Folder = Annotated[str, Field(min_length=1, description="a folder's full path")]


class MigrateArguments(ToolArguments, MoveOptions):
    to: Folder

    def request(self, caller: Caller) -> MigrateRequest:
        query = MigrateQuery(**self.model_dump(exclude={"session_id"}))
        return MigrateRequest(channel=getattr(self, "session_id", None), query=query, source=caller.source)


class MigrateSessionArguments(MigrateArguments):
    session_id: SessionId


class MigrateWorkspaceArguments(MigrateArguments):
    workspace: Folder


MIGRATED = ["successCount", "failedCount", "errors", "dry_run", "moves", "in_cursor"]
SESSION_TOOL = Tool(
    name="migrate_session",
    title="Move a session to another project",
    description="Let one past session belong to another project folder, in this registry and, with in_cursor, in "
    "Cursor's own list, while Cursor does not run. Only when the user asks for it; try it with dry_run before.",
    effect=Effect.REPLACES,
    arguments=MigrateSessionArguments,
    returns=MIGRATED,
    example={"session_id": "auth-design", "to": "/home/me/shop"},
    toolset="archive",
)
WORKSPACE_TOOL = Tool(
    name="migrate_workspace",
    title="Move a project's sessions",
    description="Let all past sessions of a folder that was renamed or moved belong to where it is now, in this "
    "registry and, with in_cursor, in Cursor's own list, while Cursor does not run. Only when the user asks for it; "
    "try it with dry_run before.",
    effect=Effect.REPLACES,
    arguments=MigrateWorkspaceArguments,
    returns=MIGRATED,
    example={"workspace": "/home/me/shop-old", "to": "/home/me/shop", "dry_run": True},
    toolset="archive",
)
OPERATION = Operation(
    request=MigrateRequest,
    level=Level.ADMIN,
    is_local=True,
    steps=Steps[MigrateRequest, None](write=move),
    tools=[SESSION_TOOL, WORKSPACE_TOOL],
    labels={
        "in_cursor": ("also in Cursor's own database", "Cursor 자체 데이터베이스에서도"),
        "workspace": ("folder before", "이전 폴더"),
    },
)
