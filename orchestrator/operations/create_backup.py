"""create_backup: write the registry and the clients' histories to one file."""

import asyncio
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import Field

from orchestrator.archive.container import VERSION, Archive, ArchiveWriter, add_stores
from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import Operation, Run, Steps, local_files_of
from orchestrator.tool import Caller, Effect, Outcome, Tool, ToolArguments
from registry.access import Level
from registry.domain import format_time, now
from registry.errors import InvalidRequest, StorageError
from registry.storage.database import ReadTransaction
from registry.storage.migrations import HEAD
from registry.storage.upkeep.table_export import TABLES, count_stored, rows_of

SUFFIX = ".ctxr-backup.zip"


class CreateBackupQuery(QueryShape):
    """The parts of a backup in addition to the registry, and its path."""

    path: str | None = Field(None, min_length=1, description="a new .zip file; default: in the folder of backups")
    stores: bool = Field(True, description="also the clients' own histories, which may be large")


class CreateBackupRequest(Request):
    operation = "create_backup"
    takes_long = True
    query: CreateBackupQuery = CreateBackupQuery()


def write_registry(tx: ReadTransaction, names: Iterator[Path]) -> ArchiveWriter:
    about = {
        "version": VERSION,
        "createdAt": format_time(now()),
        "program": version("context-registry"),
        "revision": HEAD,
        "database": tx.dialect.name,
        "stats": count_stored(tx),
    }
    writer = ArchiveWriter(names, about)
    try:
        writer.about["rows"] = {
            name: writer.add_lines(f"registry/{name}.jsonl", rows_of(tx, table)) for name, table in TABLES.items()
        }
    except BaseException:
        writer.discard()
        raise
    return writer


def folder_of_backups(run: Run) -> Path:
    """Return the existing folder of backups. Raises StorageError."""
    folder = local_files_of(run).folder
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as exc:
        raise StorageError("The folder of backups cannot be written.", f"{folder}: {exc.strerror}") from exc
    return folder


def free_names(folder: Path, label: str) -> Iterator[Path]:
    stamp = f"{now():%Y-%m-%dT%H%M%SZ}{label}"
    names = (folder / f"{stamp}{more}{SUFFIX}" for more in ("", *(f"-{number}" for number in range(2, 1000))))
    yield from (path for path in names if not path.exists())


def manifest_of(archive: Archive) -> dict[str, Any]:
    """Return a backup's manifest with the size of its file, but without the long list of parts."""
    manifest = {name: value for name, value in archive.about.items() if name != "parts"}
    return {**manifest, "stats": {**archive.about.get("stats", {}), "fileSize": archive.path.stat().st_size}}


def begin_backup(tx: ReadTransaction, run: Run, request: CreateBackupRequest) -> ArchiveWriter:
    names = iter([new_zip(request.query.path)]) if request.query.path else free_names(folder_of_backups(run), "")
    writer = write_registry(tx, names)
    run.recorder.explain(**writer.about["stats"], by="one read transaction, table by table")
    return writer


def new_zip(given: str) -> Path:
    """Return the path of a file that does not exist yet. Raises InvalidRequest."""
    path = Path(given).expanduser().absolute()
    if path.exists() or not path.parent.is_dir() or path.suffix != ".zip":
        raise InvalidRequest(
            "The file cannot be written there.",
            f"path: given {given!r}; allowed: a new .zip file in an existing folder",
        )
    return path


async def complete_backup(run: Run, request: CreateBackupRequest, data: ArchiveWriter) -> dict[str, Any]:
    local_files = local_files_of(run)
    try:
        stores = []
        if request.query.stores:
            stores = await asyncio.to_thread(add_stores, data, local_files.readers, local_files.paths)
        await asyncio.to_thread(data.finish, stores)
    except BaseException:
        data.discard()
        raise
    run.recorder.explain(path=str(data.path), stores=len(stores), files=sum(store["files"] for store in stores))
    archive = await asyncio.to_thread(Archive.open, data.path)
    return {"path": str(data.path), "manifest": {**manifest_of(archive), "parts": archive.about["parts"]}}


def refuse_remote_path(caller: Caller, path: str, *, is_new: bool = False) -> None:
    """Raise InvalidRequest for a path from a remote caller: it may only name a backup."""
    if not caller.is_local and (is_new or "/" in path or "\\" in path):
        raise InvalidRequest(
            "This server reads and writes no files for remote callers.",
            f"path: given {path!r}; allowed over HTTP: a backup's name as list_backups gives it, or none",
        )


class BackupArguments(ToolArguments, CreateBackupQuery):
    request_type = CreateBackupRequest

    def request(self, caller: Caller) -> Request | dict[str, Any]:
        if self.path:
            refuse_remote_path(caller, self.path, is_new=True)
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
    steps=Steps[CreateBackupRequest, ArchiveWriter](query=begin_backup, answer=complete_backup),
    tools=[BACKUP_TOOL],
    labels={"stores": ("with the clients' histories", "클라이언트 기록 포함")},
)
