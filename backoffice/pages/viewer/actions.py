"""Actions on conversations and messages: name, delete, restore, export."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from backoffice.channels import Name
from backoffice.conversations import Id
from backoffice.dependencies import SOURCE, Asking, Client
from backoffice.pages.rendering import address, channel_url, render
from backoffice.pages.viewer.export import as_archive, as_file
from backoffice.pages.viewer.messages import shown
from orchestrator.export.texts import ExportFormat
from orchestrator.requests.field_types import ChannelName
from orchestrator.views import conversations as views

router = APIRouter(default_response_class=HTMLResponse)

SEE_OTHER = 303


@router.post("/channels/{channel:path}")
async def name_channel(
    client: Asking,
    channel: Name,
    title: Annotated[str, Form()] = "",
    nickname: Annotated[str, Form()] = "",
    tags: Annotated[str, Form()] = "",
    suggested: Annotated[list[str], Form()] = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Set title, nickname and tags as the form has them: what is empty is cleared, suggested tags are added."""
    names: dict[str, Any] = {"title": title.strip() or None, "nickname": nickname.strip() or None}
    names["tags"] = [tag for tag in map(str.strip, [*tags.split(","), *suggested]) if tag]
    await client.run({"operation": "tag", "channel": channel, "query": names, "source": SOURCE})
    return RedirectResponse(channel_url(channel), SEE_OTHER)


@router.post("/deletions")
async def delete_channel(client: Asking, channel: Annotated[ChannelName, Form()]) -> Response:
    """Delete a conversation softly and show its page, which offers to undo."""
    await client.run({"operation": "delete", "channel": channel, "query": {"soft": True}, "source": SOURCE})
    return RedirectResponse(channel_url(channel), SEE_OTHER)


@router.post("/removals")
async def remove_channel(client: Asking, channel: Annotated[ChannelName, Form()]) -> Response:
    """Delete a deleted conversation forever."""
    # Only what is there can be removed; one that was deleted comes back for this moment.
    await client.run({"operation": "restore", "channel": channel, "query": {}, "source": SOURCE})
    await client.run({"operation": "delete", "channel": channel, "query": {"soft": False}, "source": SOURCE})
    return RedirectResponse("/settings/trash", SEE_OTHER)


@router.post("/selections")
async def act_on_several(
    client: Asking,
    do: Annotated[Literal["tag", "delete", "export"], Form()],
    channel: Annotated[list[ChannelName], Form()],
    tag: Annotated[str, Form()] = "",
) -> Response:
    """Tag, delete or export the selected conversations."""
    if do == "export":
        told = [await client.view(views.transcript, name) for name in channel]
        return await asyncio.to_thread(as_archive, told)
    if do == "delete":
        asked = {"operation": "delete", "query": {"soft": True}}
    else:
        asked = {"operation": "tag", "query": {"add_tags": [one for one in map(str.strip, tag.split(",")) if one]}}
    for name in channel:
        await client.run({**asked, "channel": name, "source": SOURCE})
    return RedirectResponse(
        "/settings/trash" if do == "delete" else address("/", tag=tag.split(",")[0].strip()), SEE_OTHER
    )


@router.post("/restorations")
async def restore_channel(client: Asking, channel: Annotated[ChannelName, Form()]) -> Response:
    """Restore a conversation with all its messages."""
    await client.run({"operation": "restore", "channel": channel, "query": {}, "source": SOURCE})
    return RedirectResponse(channel_url(channel), SEE_OTHER)


@router.post("/messages/{id}/deletion")
async def delete_message(request: Request, client: Asking, message_id: Id) -> Response:
    """Delete a message softly and show in its place how to undo."""
    await client.run({"operation": "delete", "query": {"id": message_id, "soft": True}, "source": SOURCE})
    return await _message(request, client, message_id)


@router.post("/messages/{id}/restoration")
async def restore_message(request: Request, client: Asking, message_id: Id) -> Response:
    """Restore a message and show it in its place."""
    await client.run({"operation": "restore", "query": {"id": message_id}, "source": SOURCE})
    return await _message(request, client, message_id)


async def _message(request: Request, client: Client, message_id: str) -> Response:
    """Return the message's part of the page; without a script, redirect to its page."""
    if "hx-request" not in request.headers:
        return RedirectResponse(f"/messages/{message_id}", SEE_OTHER)
    item = await client.view(views.show_message, message_id)
    return render(request, "message.html", messages=[shown(item)])


@router.get("/exports/{channel:path}")
async def export_channel(client: Asking, channel: Name, kind: ExportFormat = "markdown") -> Response:
    """Download a whole conversation."""
    session, messages = await client.view(views.transcript, channel)
    return await asyncio.to_thread(as_file, kind, session, messages)
