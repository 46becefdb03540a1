"""Saved views and pinned conversations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Path
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from backoffice.dependencies import SOURCE, Asking, for_everything
from backoffice.pages.rendering import channel_url
from backoffice.queries import Word
from orchestrator.requests.field_types import ChannelName
from orchestrator.views import conversations
from registry.errors import InvalidRequest

router = APIRouter(default_response_class=HTMLResponse)

SEE_OTHER = 303
LISTS = ("/?", "/flow?")
"""Addresses of lists: only these can be saved as views."""
Name = Annotated[str, Form(min_length=1, max_length=100)]


@router.post("/views", dependencies=[for_everything])
async def keep_view(client: Asking, name: Name, address: Annotated[str, Form(max_length=4000)]) -> Response:
    """Save a list's filters under a name; the same name again replaces it."""
    if not address.startswith(LISTS):
        raise InvalidRequest("That is no list with filters.", f"address: given {address!r}; allowed: /?… or /flow?…")
    await client.change(conversations.save_view, name.strip() or name, address)
    return RedirectResponse(address, SEE_OTHER)


@router.post("/views/{view_id}/deletion", dependencies=[for_everything])
async def forget_view(client: Asking, view_id: Annotated[Word, Path()]) -> Response:
    """Delete a saved view."""
    await client.change(conversations.drop_view, view_id)
    return RedirectResponse("/", SEE_OTHER)


@router.post("/pins")
async def pin_channel(
    client: Asking, channel: Annotated[ChannelName, Form()], pinned: Annotated[bool, Form()] = True
) -> Response:
    """Pin or unpin a conversation."""
    await client.run({"operation": "tag", "channel": channel, "query": {"pinned": pinned}, "source": SOURCE})
    return RedirectResponse(channel_url(channel), SEE_OTHER)
