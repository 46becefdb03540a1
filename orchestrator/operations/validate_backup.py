"""validate_backup: compare every part of a backup with its SHA-256."""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from orchestrator.archive.container import Archive
from orchestrator.operations.create_backup import manifest_of, refuse_remote_path
from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import LocalFiles, Operation, Run, Steps, local_files_of, no_query
from orchestrator.tool import Caller, Effect, Tool, ToolArguments
from registry.access import Level
from registry.errors import NotFound


class ValidateBackupQuery(QueryShape):
    """The backup to check."""

    path: str = Field(min_length=1, description="its path, or its name in the folder of backups")


class ValidateBackupRequest(Request):
    operation = "validate_backup"
    takes_long = True
    query: ValidateBackupQuery


def existing_backup(local_files: LocalFiles, given: str) -> Path:
    path = Path(given).expanduser()
    if not path.is_absolute() and not path.is_file() and (local_files.folder / path).is_file():
        path = local_files.folder / path
    if not path.is_file():
        latest = ", ".join(sorted(file.name for file in local_files.folder.glob("*.zip"))[-3:])
        raise NotFound("No such backup", f"path: given {given!r}; there are: {latest or 'none yet'}")
    return path.absolute()


async def validate_backup(run: Run, request: ValidateBackupRequest, _data: None) -> dict[str, Any]:
    path = existing_backup(local_files_of(run), request.query.path)
    archive = await asyncio.to_thread(Archive.open, path)
    damaged = await asyncio.to_thread(archive.check)
    run.recorder.explain(parts=len(archive.names), damaged=[damage.part for damage in damaged])
    return {
        "path": str(path),
        "valid": not damaged,
        "parts": len(archive.names),
        "damaged": [asdict(damage) for damage in damaged],
        "manifest": manifest_of(archive),
    }


class NamedBackup(ToolArguments, ValidateBackupQuery):
    request_type: ClassVar[type[Request]] = ValidateBackupRequest

    def request(self, caller: Caller) -> Request | dict[str, Any]:
        refuse_remote_path(caller, self.path)
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
    steps=Steps[ValidateBackupRequest, None](query=no_query, answer=validate_backup),
    tools=[VALIDATE_TOOL],
)
