"""validate_backup: compare every part of a backup with its SHA-256."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated, Any, ClassVar

from pydantic import Field

from orchestrator.archive.container import Archive
from orchestrator.backup_files import (
    existing_backup,
    find_damage,
    manifest_of,
    no_query,
    refuse_far_path,
)
from orchestrator.operation import Operation
from orchestrator.requests.queries import QueryShape
from orchestrator.requests.shapes import Request
from orchestrator.state import Run, Steps, shelf_of
from orchestrator.tool import Caller, Effect, Tool, ToolArguments
from registry.access import Level


class ValidateBackupQuery(QueryShape):
    """The backup to check."""

    path: str = Field(min_length=1, description="its path, or its name in the folder of backups")


class ValidateBackupRequest(Request):
    operation = "validate_backup"
    takes_long = True
    query: ValidateBackupQuery


async def validated(run: Run, request: ValidateBackupRequest, _data: None) -> dict[str, Any]:
    path = existing_backup(shelf_of(run), request.query.path)
    archive = await asyncio.to_thread(Archive.open, path)
    damaged = await asyncio.to_thread(find_damage, archive, run.tell)
    run.recorder.explain(parts=len(archive.names), damaged=[damage.part for damage in damaged])
    return {
        "path": str(path),
        "valid": not damaged,
        "parts": len(archive.names),
        "damaged": [asdict(damage) for damage in damaged],
        "manifest": manifest_of(archive),
    }


class NamedBackup(ToolArguments):
    asked: ClassVar[type[Request]] = ValidateBackupRequest
    path: Annotated[str, Field(min_length=1, description="its path, or its name in the folder of backups")]

    def request(self, caller: Caller) -> Request | dict[str, Any]:
        refuse_far_path(caller, self.path)
        return super().request(caller)


VALIDATE_TOOL = Tool(
    name="validate_backup",
    title="Check a backup",
    description="Read every part of a backup and compare it with its SHA-256. Damaged parts are named.",
    effect=Effect.READS,
    arguments=NamedBackup,
    returns=["path", "valid", "parts", "damaged", "manifest"],
    example={"path": "2026-01-31T083000Z.ctxr-backup.zip"},
    toolset="archive",
)
OPERATION = Operation(
    request=ValidateBackupRequest,
    level=Level.ADMIN,
    is_local=True,
    steps=Steps[ValidateBackupRequest, None](query=no_query, keep=validated),
    tools=[VALIDATE_TOOL],
)
