"""/steps: what to do first; each step is ticked off while the page is open."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from backoffice.dependencies import CurrentClient, HttpClient, Local
from backoffice.machine import Machine
from backoffice.pages.rendering import render, see_other
from orchestrator.sample import SAMPLE, log_sample
from orchestrator.views import conversations, figures
from orchestrator.views.conversations import Page

router = APIRouter(default_response_class=HTMLResponse)

MIN_MESSAGES = 4  # of a conversation that makes a good example of a question


@router.get("/steps")
async def steps_page(request: Request, client: CurrentClient) -> HTMLResponse:
    return render(request, "steps.html", steps=await first_steps(request, client))


@router.post("/settings/sample")
async def add_sample(client: CurrentClient, _here: Local) -> RedirectResponse:
    """Store the sample's conversations, which can be deleted like all others."""
    await log_sample(client.answer)
    return see_other("/")


@router.post("/settings/sample/removal")
async def remove_sample(client: CurrentClient, _here: Local) -> RedirectResponse:
    """Move the sample's conversations to the trash."""
    for one in (await client.view(conversations.list_channels, {"tag": SAMPLE}, Page(50)))["items"]:
        await client.run("delete", {"soft": True}, one["channel"])
    return see_other("/")


async def first_steps(request: Request, client: HttpClient) -> dict[str, Any]:
    """Return how far the first steps are, and a title for a question about an own conversation."""
    machine: Machine = request.app.state.machine
    can_sync = client.registry.syncs_automatically and not (client.access and client.access.is_restricted)
    latest = (await client.view(conversations.list_channels, {}, Page(50)))["items"]
    suitable = (one["title"] for one in latest if one["title"] and one["message_count"] >= MIN_MESSAGES)
    return {
        **await client.view(figures.first_steps),
        "can_sync": can_sync,
        "is_syncing": can_sync and machine.is_syncing,
        "connected": await machine.connected_clients() if can_sync else [],
        "example": next(suitable, None),
        "has_sample": any(SAMPLE in one["tags"] for one in latest),
    }
