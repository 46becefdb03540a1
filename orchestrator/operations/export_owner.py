"""export_owner: write all conversations of one person to a file that `ctxr import` can read."""

from importlib.metadata import version
from typing import Any

from pydantic import Field

from orchestrator.archive.container import VERSION, ArchiveWriter
from orchestrator.export.texts import document_name, export
from orchestrator.operations.create_backup import new_zip
from orchestrator.operations.fetch_session import document_of
from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import Operation, Run, Steps, as_read
from registry.access import Level
from registry.domain import format_time, now
from registry.errors import NotFound
from registry.storage.conversations.belonging import channels_of_owner
from registry.storage.database import ReadTransaction
from registry.storage.migrations import HEAD


class ExportOwnerQuery(QueryShape):
    """The person, and the file to write."""

    owner: str = Field(min_length=1, description="the person whose conversations are exported")
    path: str = Field(min_length=1, description="a new .zip file")


class ExportOwnerRequest(Request):
    operation = "export_owner"
    takes_long = True
    query: ExportOwnerQuery

    @property
    def limited_to_owner(self) -> str | None:
        return self.query.owner

    def summary(self) -> dict[str, Any]:
        return {"owner": self.query.owner}  # not the path, which is a temporary one for a download


def write_all(tx: ReadTransaction, run: Run, request: ExportOwnerRequest) -> dict[str, Any]:
    """Write every conversation that is not deleted, in one read transaction."""
    owner, path = request.query.owner, new_zip(request.query.path)
    rows = channels_of_owner(tx, owner)
    if not rows:
        raise NotFound("No conversations of that person.", f"owner: given {owner!r}; `ctxr token list` names them")
    counts = {"sessionCount": len(rows), "messageCount": sum(row.message_count for row in rows)}
    about = {"version": VERSION, "createdAt": format_time(now()), "revision": HEAD, "owner": owner, "stats": counts}
    writer = ArchiveWriter(iter([path]), {**about, "program": version("context-registry")})
    written = []
    try:
        for row in rows:
            session, messages = document_of(tx, row)
            name = document_name(session, "json")
            writer.add(f"conversations/{name}", export("json", session, messages), rows=len(messages))
            written.append({"channel": row.name, "messages": len(messages)})
        writer.finish([])
    except BaseException:
        writer.discard()
        raise
    run.recorder.explain(**counts)
    return {"path": str(path), "conversations": written}


OPERATION = Operation(
    request=ExportOwnerRequest,
    level=Level.ADMIN,
    own_level=Level.READ,
    is_local=True,
    steps=Steps[ExportOwnerRequest, dict[str, Any]](query=write_all, answer=as_read),
)
