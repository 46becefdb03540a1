"""What an operator does to a conversation: name it, take it or a message out and back, carry it away."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from backoffice.channels import Name
from backoffice.conversations import Id
from backoffice.dependencies import SOURCE, Asking, Stored
from backoffice.pages.export import FORMATS, as_file
from backoffice.pages.messages import shown
from backoffice.pages.rendering import channel_url, render
from orchestrator.requests import ChannelName
from registry.errors import InvalidRequest
from registry.storage.channels import channel_item, get_channel, tags_of
from registry.storage.database import ReadTransaction
from registry.storage.message_windows import read_window
from registry.storage.messages import get_message, message_item
from registry.storage.paging import Page

router = APIRouter(default_response_class=HTMLResponse)

SEE_OTHER = 303
EVERYTHING = 1_000_000
"""More messages than a channel has."""


@router.post("/channels/{channel:path}")
async def name_channel(
    client: Asking,
    channel: Name,
    title: Annotated[str, Form()] = "",
    nickname: Annotated[str, Form()] = "",
    tags: Annotated[str, Form()] = "",
) -> Response:
    """Set title, nickname and tags as the form has them: what is empty is cleared."""
    names: dict[str, Any] = {"title": title.strip() or None, "nickname": nickname.strip() or None}
    names["tags"] = [tag for tag in map(str.strip, tags.split(",")) if tag]
    await client.run({"operation": "tag", "channel": channel, "query": names, "source": SOURCE})
    return RedirectResponse(channel_url(channel), SEE_OTHER)


@router.post("/deletions")
async def delete_channel(client: Asking, channel: Annotated[ChannelName, Form()]) -> Response:
    """Delete a conversation softly, and show how to take that back."""
    await client.run({"operation": "delete", "channel": channel, "query": {"soft": True}, "source": SOURCE})
    return RedirectResponse(channel_url(channel, deleted="1"), SEE_OTHER)


@router.post("/restorations")
async def restore_channel(client: Asking, channel: Annotated[ChannelName, Form()]) -> Response:
    """Take the deletion of a conversation, and of all its messages, back."""
    await client.run({"operation": "restore", "channel": channel, "query": {}, "source": SOURCE})
    return RedirectResponse(channel_url(channel), SEE_OTHER)


@router.post("/messages/{id}/deletion")
async def delete_message(request: Request, client: Asking, registry: Stored, message_id: Id) -> Response:
    """Delete a message softly; in its place stands how to take that back."""
    await client.run({"operation": "delete", "query": {"id": message_id, "soft": True}, "source": SOURCE})
    return await _message(request, registry, message_id)


@router.post("/messages/{id}/restoration")
async def restore_message(request: Request, client: Asking, registry: Stored, message_id: Id) -> Response:
    """Take the deletion of a message back; it stands in its place again."""
    await client.run({"operation": "restore", "query": {"id": message_id}, "source": SOURCE})
    return await _message(request, registry, message_id)


async def _message(request: Request, registry: Stored, message_id: str) -> Response:
    """The message for its place in the page; without a script, the page on which it stands now."""
    if "hx-request" not in request.headers:
        return RedirectResponse(f"/messages/{message_id}", SEE_OTHER)
    row = await registry.read(lambda tx: get_message(tx, message_id, include_deleted=True))
    return render(request, "message.html", messages=[shown(row)])


@router.get("/exports/{channel:path}")
async def export_channel(registry: Stored, channel: Name, kind: str = "markdown") -> Response:
    """A whole conversation as a file to keep."""
    if kind not in FORMATS:
        raise InvalidRequest("No such format.", f"kind: given {kind!r}; allowed: {', '.join(FORMATS)}")

    def work(tx: ReadTransaction) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        row = get_channel(tx, channel)
        rows = read_window(tx, row.number, Page(EVERYTHING, None, "asc")).rows
        return channel_item(row, tags_of(tx, [row.number])[row.number]), [message_item(one) for one in rows]

    session, messages = await registry.read(work)
    return await asyncio.to_thread(as_file, kind, session, messages)
