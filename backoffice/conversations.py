"""/bo/conversations, /bo/search, /bo/extracts; /bo/changes and /bo/edits for registries that follow this one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import fastapi
from fastapi import APIRouter, Query
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from backoffice import queries, schemas
from backoffice.bodies import LogArguments, LogBody
from backoffice.dependencies import CurrentClient, without_parameters
from orchestrator.remote.replayed_edits import replay
from orchestrator.requests.calls import as_log_request
from orchestrator.requests.refusals import invalid_request, succeeded
from orchestrator.views import conversations as views
from orchestrator.views.events import list_changes, list_edits
from registry.temporary_folder import TemporaryFolder

router = APIRouter(prefix="/bo", tags=["conversations"])

Id = Annotated[queries.Word, fastapi.Path(alias="id", description="the message's id", examples=[schemas.MESSAGE_ID])]


@router.get("/conversations", response_model=schemas.ItemPage[schemas.MessageItem])
async def show_messages(client: CurrentClient, query: Annotated[queries.MessagesQuery, Query()]) -> dict[str, Any]:
    """List messages by time, or those that match the words."""
    if query.q is None:
        return await client.view(views.list_messages, query.filters, query.page)
    return _page(await client.run("search", query.as_query(), query.channel))


def _page(answer: Mapping[str, Any]) -> dict[str, Any]:
    counts = answer["metadata"]
    return {"items": answer["messages"], "total": counts["total_count"], "next_cursor": counts.get("next_cursor")}


@router.get("/changes", response_model=schemas.ChangesPage)
async def show_changes(client: CurrentClient, query: Annotated[queries.ChangesQuery, Query()]) -> Any:
    """List messages in the order in which they were stored, for a remote copy of this registry."""
    return await client.view(list_changes, query.after)


@router.post(
    "/conversations",
    response_model=schemas.Logged,
    response_model_exclude_none=True,
    status_code=201,
    dependencies=[without_parameters],
)
async def store_messages(client: CurrentClient, given: LogArguments) -> dict[str, Any]:
    """Store the new messages of a conversation: conversation_log for hooks, importers and remote machines."""
    return succeeded(await client.answer(as_log_request(_without_unknown_fields(given))))


def _without_unknown_fields(given: dict[str, Any]) -> dict[str, Any]:
    """Refuse arguments that conversation_log does not have; the orchestrator validates the others."""
    unknown = sorted(given.keys() - LogBody.model_fields.keys())
    if unknown:
        raise invalid_request([{"type": "extra_forbidden", "loc": [name], "input": given[name]} for name in unknown])
    return given


@router.get("/conversations/{id}", response_model=schemas.MessageItem)
async def show_message(
    client: CurrentClient, message_id: Id, query: Annotated[queries.MessageQuery, Query()]
) -> dict[str, Any]:
    """Return one message."""
    return await client.view(views.show_message, message_id, include_deleted=query.include_deleted)


@router.delete("/conversations/{id}", response_model=schemas.MessageItem)
async def delete_message(
    client: CurrentClient, message_id: Id, query: Annotated[queries.DeletionQuery, Query()]
) -> Any:
    """Delete a message and return it as it now is."""
    return (await client.run("delete", {"id": message_id, "soft": query.soft}))["message"]


@router.post("/conversations/{id}/restore", response_model=schemas.MessageItem, dependencies=[without_parameters])
async def restore_message(client: CurrentClient, message_id: Id) -> Any:
    """Restore a softly deleted message and return it."""
    return (await client.run("restore", {"id": message_id}))["message"]


@router.get("/search", response_model=schemas.ItemPage[schemas.FoundMessage], response_model_exclude_unset=True)
async def search(client: CurrentClient, query: Annotated[queries.SearchParameters, Query()]) -> dict[str, Any]:
    """Search messages, best first."""
    return _page(await client.run("search", query.as_query(), query.channel))


@router.get("/extracts", response_model=schemas.ItemPage[schemas.ResultItem])
async def show_extracts(client: CurrentClient, query: Annotated[queries.ExtractsQuery, Query()]) -> dict[str, Any]:
    """List what extractions and briefings delivered, as message ids."""
    return await client.view(views.list_results, query.channel, query.page)


@router.get("/export", response_class=FileResponse)
async def export_owner(client: CurrentClient, query: Annotated[queries.OwnerQuery, Query()]) -> FileResponse:
    """Return the conversations of one person, without deleted ones, as a zip of JSON that `ctxr import` reads."""
    folder = TemporaryFolder()
    try:
        path = Path(folder.name, "conversations.zip")
        await client.run("export_owner", {"owner": query.owner, "path": str(path)})
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(
        path, media_type="application/zip", filename=path.name, background=BackgroundTask(folder.cleanup)
    )


@router.get("/edits", response_model=schemas.EditsPage, response_model_exclude_unset=True)
async def show_edits(client: CurrentClient, query: Annotated[queries.ChangesQuery, Query()]) -> dict[str, Any]:
    """List edits of names and tags, undone turns, deletions and forgetting, in the order of arrival here."""
    return await client.view(list_edits, query.after)


@router.post("/edits", response_model=schemas.EditsDone, dependencies=[without_parameters])
async def carry_out_edits(client: CurrentClient, given: schemas.EditsBody) -> dict[str, Any]:
    """Apply edits of another registry, unless a later one is known. Forgetting needs an admin's token."""
    outcomes = []
    for item in given.items:
        error = await replay(client.answer, client.writable_registry(), item.model_dump())
        outcomes.append({"why": f"{error['message']} {error['details']}" if error else None})
    return {"items": outcomes}
