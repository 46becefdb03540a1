"""/bo/edits: what was named, tagged, deleted and forgotten, for registries that keep up with this one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from backoffice.dependencies import Asking, without_parameters
from backoffice.queries import ChangesQuery
from backoffice.schemas import EditsBody, EditsDone, EditsPage
from orchestrator.remote.replayed_edits import replay
from orchestrator.views.events import list_edits

router = APIRouter(prefix="/bo", tags=["conversations"])


@router.get("/edits", response_model=EditsPage, response_model_exclude_unset=True)
async def show_edits(client: Asking, query: Annotated[ChangesQuery, Query()]) -> dict[str, Any]:
    """List names, tags, deletions and forgetting, in the order in which they became known here."""
    return await client.view(list_edits, query.after)


@router.post("/edits", response_model=EditsDone, dependencies=[without_parameters])
async def carry_out_edits(client: Asking, given: EditsBody) -> dict[str, Any]:
    """Do what was done in a registry elsewhere, unless something later is known. To forget takes an admin's token."""
    whys = []
    for item in given.items:
        error = await replay(client.answer, client.writable_registry(), item.model_dump())
        whys.append({"why": f"{error['message']} {error['details']}" if error else None})
    return {"items": whys}
