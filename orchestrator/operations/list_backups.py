"""list_backups: list the backups in the folder of backups."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orchestrator.archive.container import Archive
from orchestrator.operations.create_backup import manifest_of
from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import Operation, Run, Steps, local_files_of, no_query
from orchestrator.tool import Effect, Tool, ToolArguments
from registry.access import Level
from registry.errors import StorageError


class ListBackupsRequest(Request):
    operation = "list_backups"
    query: QueryShape = QueryShape()


async def list_backups(run: Run, _request: ListBackupsRequest, _data: None) -> dict[str, Any]:
    return {"backups": await asyncio.to_thread(lambda: list(_read_manifests(local_files_of(run).folder)))}


def _read_manifests(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.zip"), key=lambda path: (path.stat().st_mtime, path.name), reverse=True):
        try:
            yield {"path": str(path), "manifest": manifest_of(Archive.open(path))}
        except StorageError as exc:
            yield {"path": str(path), "manifest": None, "error": exc.details}


class ListBackupsArguments(ToolArguments):
    request_type = ListBackupsRequest


LIST_BACKUPS_TOOL = Tool(
    name="list_backups",
    title="List backups",
    description="The backups there are, newest first, each with when it was made and how much it holds.",
    effect=Effect.READS,
    arguments=ListBackupsArguments,
    returns=["backups"],
    example={},
    toolset="archive",
)
OPERATION = Operation(
    request=ListBackupsRequest,
    level=Level.ADMIN,
    is_local=True,
    steps=Steps[ListBackupsRequest, None](query=no_query, answer=list_backups),
    tools=[LIST_BACKUPS_TOOL],
)
