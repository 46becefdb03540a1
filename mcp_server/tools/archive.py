"""The archive tools: backups of everything that is kept. Off unless the user starts the server with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ToolAnnotations
from pydantic import BaseModel, Field

from mcp_server.envelope import Envelope, client_name, reply
from mcp_server.tools.history import READING, SessionId
from orchestrator.lazy import RunOperation
from orchestrator.requests.calls import refusal, source_of
from orchestrator.requests.queries import CreateBackupQuery, MigrateQuery, RestoreBackupQuery, ValidateBackupQuery
from orchestrator.requests.shapes import (
    CreateBackupRequest,
    ListBackupsRequest,
    MigrateRequest,
    Request,
    RestoreBackupRequest,
    ValidateBackupRequest,
)
from registry.errors import InvalidRequest

ADDING = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
REPLACING = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)

BackupPath = Annotated[str, Field(min_length=1, description="its path, or its name in the folder of backups")]
Folder = Annotated[str, Field(min_length=1, description="a folder's full path")]
InCursor = Annotated[bool, Field(description="also inside Cursor's own database; what changes is noted, to undo it")]
DryRun = Annotated[bool, Field(description="only say what would move")]
Mode = Annotated[
    Literal["move", "copy"], Field(description="copy, with in_cursor: the old one stays, and Cursor gets another")
]


class BackupMade(BaseModel):
    """The backup's file, and what it holds: version, createdAt, stats, stores."""

    path: str
    manifest: dict[str, Any]


class Backups(BaseModel):
    """The backups there are, newest first."""

    backups: list[dict[str, Any]]


class BackupChecked(BaseModel):
    """Whether a backup is whole; `damaged` names each part that is not, and why."""

    path: str
    valid: bool
    parts: int
    damaged: list[dict[str, str]]
    manifest: dict[str, Any]


class BackupRestored(BaseModel):
    """The restored numbers; `safety_copy` is the backup of the state before.

    `messagesForgotten`: so many of the messages have been forgotten since the backup, and stay so.
    """

    path: str
    filesRestored: int
    sessionsRestored: int
    messagesRestored: int
    messagesForgotten: int
    safety_copy: str | None = None
    dry_run: bool
    damaged: list[dict[str, str]]


class Migrated(BaseModel):
    """How many sessions moved, and each of them: from where, to where."""

    successCount: int
    failedCount: int
    errors: list[str]
    dry_run: bool
    moves: list[dict[str, Any]]
    in_cursor: dict[str, Any] | None = None


class ArchiveTools:
    """The archive tools. Not `is_local`: callers may not choose files to write or read."""

    def __init__(self, run: RunOperation, *, is_local: bool) -> None:
        self._run, self._is_local = run, is_local

    async def create_backup(
        self,
        ctx: Context[Any, Any],
        path: Annotated[str | None, Field(min_length=1, description="a new .zip file")] = None,
        stores: Annotated[bool, Field(description="also the clients' own histories, which may be large")] = True,
    ) -> Annotated[CallToolResult, Envelope[BackupMade]]:
        if path and not self._is_local:
            return await self._refused("create_backup", path, ctx)
        request = CreateBackupRequest(query=CreateBackupQuery(path=path, stores=stores), source=_source(ctx))
        return await self._answered("create_backup", request, ctx)

    async def list_backups(self, ctx: Context[Any, Any]) -> Annotated[CallToolResult, Envelope[Backups]]:
        return await self._answered("list_backups", ListBackupsRequest(source=_source(ctx)), ctx)

    async def validate_backup(
        self, ctx: Context[Any, Any], path: BackupPath
    ) -> Annotated[CallToolResult, Envelope[BackupChecked]]:
        if self._is_out_of_reach(path):
            return await self._refused("validate_backup", path, ctx)
        request = ValidateBackupRequest(query=ValidateBackupQuery(path=path), source=_source(ctx))
        return await self._answered("validate_backup", request, ctx)

    async def restore_backup(
        self,
        ctx: Context[Any, Any],
        path: BackupPath,
        rest: Annotated[bool, Field(description="of a damaged backup, what is left")] = False,
        dry_run: Annotated[bool, Field(description="only say what would come back")] = False,
    ) -> Annotated[CallToolResult, Envelope[BackupRestored]]:
        if self._is_out_of_reach(path):
            return await self._refused("restore_backup", path, ctx)
        query = RestoreBackupQuery(path=path, rest=rest, dry_run=dry_run)
        return await self._answered("restore_backup", RestoreBackupRequest(query=query, source=_source(ctx)), ctx)

    async def migrate_session(
        self,
        ctx: Context[Any, Any],
        session_id: SessionId,
        to: Folder,
        dry_run: DryRun = False,
        in_cursor: InCursor = False,
        mode: Mode = "move",
    ) -> Annotated[CallToolResult, Envelope[Migrated]]:
        query = MigrateQuery(to=to, dry_run=dry_run, in_cursor=in_cursor, mode=mode)
        request = MigrateRequest(channel=session_id, query=query, source=_source(ctx))
        return await self._answered("migrate_session", request, ctx)

    async def migrate_workspace(
        self,
        ctx: Context[Any, Any],
        workspace: Folder,
        to: Folder,
        dry_run: DryRun = False,
        in_cursor: InCursor = False,
        mode: Mode = "move",
    ) -> Annotated[CallToolResult, Envelope[Migrated]]:
        query = MigrateQuery(workspace=workspace, to=to, dry_run=dry_run, in_cursor=in_cursor, mode=mode)
        request = MigrateRequest(query=query, source=_source(ctx))
        return await self._answered("migrate_workspace", request, ctx)

    async def _answered(self, tool: str, request: Request, ctx: Context[Any, Any]) -> CallToolResult:
        return reply(tool, await self._run(request, client_name(ctx)))

    def _is_out_of_reach(self, path: str) -> bool:
        return not self._is_local and ("/" in path or "\\" in path)

    async def _refused(self, tool: str, path: str, ctx: Context[Any, Any]) -> CallToolResult:
        error = InvalidRequest(
            "This server reads and writes no files for others.",
            f"path: given {path!r}; allowed over HTTP: a backup's name as list_backups gives it, or none",
        )
        client = client_name(ctx)
        return reply(tool, await self._run(refusal(tool, error, client), client))

    def declared(self) -> Iterable[tuple[Callable[..., Any], str, ToolAnnotations, str]]:
        """Each tool with its title, its hints, and what an AI is told of it."""
        return (
            (
                self.create_backup,
                "Back up all conversations",
                ADDING,
                "Write a backup of the whole registry and of the clients' own histories into one file. Use it "
                "when the user asks for a backup, or before something risky.",
            ),
            (
                self.list_backups,
                "List backups",
                READING,
                "The backups there are, newest first, each with when it was made and how much it holds.",
            ),
            (
                self.validate_backup,
                "Check a backup",
                READING,
                "Read every part of a backup and compare it with its SHA-256. Damaged parts are named.",
            ),
            (
                self.restore_backup,
                "Restore a backup",
                REPLACING,
                "Put a backup in the place of everything the registry holds, only when the user asks for exactly "
                "that. What is there now is backed up first. Try it with dry_run before.",
            ),
            (
                self.migrate_session,
                "Move a session to another project",
                REPLACING,
                "Let one past session belong to another project folder, in this registry and, with in_cursor, in "
                "Cursor's own list, while Cursor does not run. Only when the user asks for it; try it with dry_run "
                "before.",
            ),
            (
                self.migrate_workspace,
                "Move a project's sessions",
                REPLACING,
                "Let all past sessions of a folder that was renamed or moved belong to where it is now, in this "
                "registry and, with in_cursor, in Cursor's own list, while Cursor does not run. Only when the user "
                "asks for it; try it with dry_run before.",
            ),
        )


def add_archive_tools(server: MCPServer[Any], run: RunOperation, *, is_local: bool) -> None:
    """Publish the tools, each as the table says."""
    for tool, title, hints, description in ArchiveTools(run, is_local=is_local).declared():
        server.add_tool(tool, title=title, annotations=hints, description=description)


def _source(ctx: Context[Any, Any]) -> str:
    return source_of(None, client_name(ctx))
