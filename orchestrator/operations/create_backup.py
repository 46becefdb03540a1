"""create_backup: write the registry and the clients' histories into one file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from orchestrator.archive.container import Archive, ArchiveWriter
from orchestrator.archive.stores import add_stores
from orchestrator.backup_files import (
    finish,
    free_names,
    manifest_of,
    refuse_far_path,
    write_registry,
)
from orchestrator.operation import Operation
from orchestrator.requests.queries import QueryShape
from orchestrator.requests.shapes import Request
from orchestrator.state import Run, Shelf, Steps, shelf_of
from orchestrator.tool import Caller, Effect, Outcome, Tool, ToolArguments
from registry.access import Level
from registry.errors import InvalidRequest
from registry.storage.database import ReadTransaction


class CreateBackupQuery(QueryShape):
    """The parts of a backup beside the registry, and its path."""

    path: str | None = Field(None, min_length=1, description="a new file; default: one in the folder of backups")
    stores: bool = Field(True, description="also the clients' own histories")


class CreateBackupRequest(Request):
    operation = "create_backup"
    takes_long = True
    query: CreateBackupQuery = CreateBackupQuery()


def begin(tx: ReadTransaction, run: Run, request: CreateBackupRequest) -> ArchiveWriter:
    """Write the registry, table by table, in one read transaction."""
    shelf = shelf_of(run)
    path = _new_file(shelf, request.query.path)
    writer = write_registry(tx, path, run.tell)
    run.recorder.explain(path=str(path), **writer.about["stats"], by="one read transaction, table by table")
    return writer


def _new_file(shelf: Shelf, given: str | None) -> Path:
    if given is None:
        return next(free_names(shelf.folder, ""))
    path = Path(given).expanduser().absolute()
    if path.exists() or not path.parent.is_dir() or path.suffix != ".zip":
        raise InvalidRequest(
            "The backup cannot be written there.",
            f"path: given {given!r}; allowed: a new file in a folder that exists, with .zip at its end",
        )
    return path


async def complete(run: Run, request: CreateBackupRequest, data: ArchiveWriter) -> dict[str, Any]:
    """Add the clients' stores, and finish the backup."""
    shelf = shelf_of(run)
    try:
        stores = []
        if request.query.stores:
            stores = await asyncio.to_thread(add_stores, data, shelf.readers, shelf.places, run.tell)
        await asyncio.to_thread(finish, data, stores)
    except BaseException:
        data.discard()
        raise
    run.recorder.explain(stores=len(stores), files=sum(store["files"] for store in stores))
    archive = await asyncio.to_thread(Archive.open, data.path)
    return {"path": str(data.path), "manifest": {**manifest_of(archive), "parts": archive.about["parts"]}}


class BackupArguments(ToolArguments):
    asked = CreateBackupRequest
    path: Annotated[str | None, Field(min_length=1, description="a new .zip file")] = None
    stores: Annotated[bool, Field(description="also the clients' own histories, which may be large")] = True

    def request(self, caller: Caller) -> Request | dict[str, Any]:
        if self.path:
            refuse_far_path(caller, self.path, is_new=True)
        return super().request(caller)

    async def result(self, outcome: Outcome, caller: Caller) -> dict[str, Any]:
        manifest = {name: value for name, value in outcome["manifest"].items() if name != "parts"}
        return {"path": outcome["path"], "manifest": manifest}


BACKUP_TOOL = Tool(
    name="create_backup",
    title="Back up all conversations",
    description="Write a backup of the whole registry and of the clients' own histories into one file. Use it when the "
    "user asks for a backup, or before something risky.",
    effect=Effect.ADDS,
    arguments=BackupArguments,
    returns=["path", "manifest"],
    example={"stores": False},
    toolset="archive",
)
OPERATION = Operation(
    request=CreateBackupRequest,
    level=Level.ADMIN,
    syncs_first=True,
    is_local=True,
    steps=Steps[CreateBackupRequest, ArchiveWriter](query=begin, keep=complete),
    tools=[BACKUP_TOOL],
    labels={
        "stores": ("with the clients' histories", "클라이언트 기록 포함"),
    },
)
