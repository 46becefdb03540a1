"""/bo/edits: what was named, tagged, deleted and forgotten, for registries that keep up with this one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from backoffice.dependencies import Asking, Stored, Writable, without_parameters
from backoffice.queries import ChangesQuery
from backoffice.schemas import EditsBody, EditsDone, EditsPage
from orchestrator.remote.replayed_edits import carry_out
from registry.domain import parse_time
from registry.storage.exchange.edits import Edit, edits_after

router = APIRouter(prefix="/bo", tags=["conversations"])


@router.get("/edits", response_model=EditsPage, response_model_exclude_unset=True)
async def show_edits(registry: Stored, query: Annotated[ChangesQuery, Query()]) -> dict[str, Any]:
    """What channels were called, and what was deleted and forgotten, in the order in which it became known here."""
    found = await registry.read(lambda tx: edits_after(tx, query.after))
    return {"items": [said.as_dict() for said in found.items], "place": found.place, "is_all": found.is_all}


@router.post("/edits", response_model=EditsDone, dependencies=[without_parameters])
async def carry_out_edits(registry: Writable, client: Asking, given: EditsBody) -> dict[str, Any]:
    """Do what was done in a registry elsewhere, unless something later is known. To forget takes an admin's token."""
    whys = []
    for item in given.items:
        said = Edit(**{**item.model_dump(), "done_at": parse_time(item.done_at)})
        error = await carry_out(client.answer, registry, said)
        whys.append({"why": f"{error['message']} {error['details']}" if error else None})
    return {"items": whys}
