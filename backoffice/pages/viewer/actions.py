"""Actions on conversations and messages: name, pin, delete, restore, export; saved views."""

import asyncio
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Annotated, Any, Literal
from urllib.parse import quote
from zipfile import ZIP_DEFLATED, ZipFile

from fastapi import APIRouter, Form, Path, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel

from backoffice.channels import Name, edit_channel
from backoffice.conversations import Id
from backoffice.dependencies import CurrentClient, HttpClient, for_everything
from backoffice.pages.rendering import address, channel_url, opened, render, see_other
from backoffice.pages.viewer.messages import shown_message
from backoffice.queries import Word
from orchestrator.export.texts import ENDINGS, ExportFormat, export
from orchestrator.operations.share import NOBODY
from orchestrator.requests.field_types import ChannelName
from orchestrator.requests.refusals import succeeded
from orchestrator.views import conversations as views
from registry.errors import InvalidRequest

router = APIRouter(default_response_class=HTMLResponse)


class NamingForm(BaseModel):
    """Names of a conversation, and those that the form was made with."""

    title: str = ""
    nickname: str = ""
    tags: str = ""
    was_title: str = ""
    was_nickname: str = ""
    was_tags: str = ""

    def changes(self) -> dict[str, Any]:
        """Return only what the reader changed: another window may have changed the rest meanwhile."""
        names = {"title": (self.title, self.was_title), "nickname": (self.nickname, self.was_nickname)}
        tags, were = _names(self.tags), _names(self.was_tags)
        added, removed = [tag for tag in tags if tag not in were], [tag for tag in were if tag not in tags]
        changed = {name: new.strip() or None for name, (new, was) in names.items() if new.strip() != was.strip()}
        return changed | {name: some for name, some in (("add_tags", added), ("remove_tags", removed)) if some}


@router.post("/channels/{channel:path}")
async def name_channel(
    request: Request, client: CurrentClient, channel: Name, form: Annotated[NamingForm, Form()]
) -> Response:
    """Set title, nickname and tags as the form has them: a name that was emptied is cleared."""
    if changes := form.changes():
        await edit_channel(client, "tag", changes, channel)
    return see_other(opened(request, channel_url(channel)))


def _names(given: str) -> list[str]:
    return [name for name in map(str.strip, given.split(",")) if name]


@router.post("/deletions")
async def delete_channel(request: Request, client: CurrentClient, channel: Annotated[ChannelName, Form()]) -> Response:
    """Delete a conversation softly and show its page, which offers to undo."""
    await client.run("delete", {"soft": True}, channel)
    return see_other(opened(request, channel_url(channel)))


@router.post("/removals")
async def remove_channels(client: CurrentClient, channel: Annotated[ChannelName | None, Form()] = None) -> Response:
    """Delete a deleted conversation forever, or all of them."""
    await client.run("delete", {"soft": False, "trash": True}, channel)
    return see_other("/settings/trash")


@router.post("/selections")
async def act_on_several(
    client: CurrentClient,
    do: Annotated[Literal["tag", "delete", "export"], Form()],
    channel: Annotated[list[ChannelName], Form()],
    tag: Annotated[str, Form()] = "",
) -> Response:
    if do == "export":
        transcripts = [await client.view(views.transcript, name) for name in channel]
        return await asyncio.to_thread(as_archive, transcripts)
    tags = _names(tag)
    query = {"soft": True} if do == "delete" else {"add_tags": tags}
    answers = [await client.ask(do, query, name) for name in channel]
    for answer in answers:
        succeeded(answer)  # after the others are done: one may have been deleted meanwhile
    return see_other("/settings/trash" if do == "delete" else address("/", tag=tags[0] if tags else None))


@router.post("/restorations")
async def restore_channel(request: Request, client: CurrentClient, channel: Annotated[ChannelName, Form()]) -> Response:
    await client.run("restore", {}, channel)
    return see_other(opened(request, channel_url(channel)))


@router.post("/messages/{id}/deletion")
async def delete_message(request: Request, client: CurrentClient, message_id: Id) -> Response:
    """Delete a message softly and show in its place how to undo."""
    await client.run("delete", {"id": message_id, "soft": True})
    return await _message(request, client, message_id)


@router.post("/messages/{id}/restoration")
async def restore_message(request: Request, client: CurrentClient, message_id: Id) -> Response:
    """Restore a message and show it in its place."""
    await client.run("restore", {"id": message_id})
    return await _message(request, client, message_id)


async def _message(request: Request, client: HttpClient, message_id: str) -> Response:
    """Return the message's part of the page; without a script, redirect to its page."""
    if "hx-request" not in request.headers:
        return see_other(f"/messages/{message_id}")
    item = await client.view(views.show_message_with_images, message_id)
    return render(request, "message.html", messages=[shown_message(item)])


@router.get("/exports/{channel:path}")
async def export_channel(client: CurrentClient, channel: Name, kind: ExportFormat = "markdown") -> Response:
    found = await client.view(views.transcript, channel)
    return await asyncio.to_thread(as_file, kind, found)


Transcript = Mapping[str, Any]

FORMATS: Mapping[ExportFormat, str] = {
    "markdown": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "pdf": "application/pdf",
}


def as_file(kind: ExportFormat, found: Transcript) -> Response:
    name = quote(f"{found['channel']}{ENDINGS[kind]}", safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}", "X-Content-Type-Options": "nosniff"}
    return Response(export(kind, found["session"], found["messages"]), media_type=FORMATS[kind], headers=headers)


def as_archive(conversations: Sequence[Transcript]) -> Response:
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for one in conversations:
            text = export("markdown", one["session"], one["messages"])
            archive.writestr(f"{quote(one['channel'], safe=' ')}.md", text)
    headers = {"Content-Disposition": 'attachment; filename="conversations.zip"'}
    return Response(file.getvalue(), media_type="application/zip", headers=headers)


LISTS = ("/?", "/flow?")  # addresses of lists: only these can be saved as views
ViewName = Annotated[str, Form(min_length=1, max_length=100)]


@router.post("/views", dependencies=[for_everything])
async def keep_view(client: CurrentClient, name: ViewName, address: Annotated[str, Form(max_length=4000)]) -> Response:
    """Save a list's filters under a name; the same name again replaces it."""
    if not address.startswith(LISTS):
        raise InvalidRequest("That is not a list with filters.", f"address: given {address!r}; allowed: /?… or /flow?…")
    await client.change(views.save_view, name.strip() or name, address)
    return see_other(address)


@router.post("/views/{view_id}/deletion", dependencies=[for_everything])
async def forget_view(client: CurrentClient, view_id: Annotated[Word, Path()]) -> Response:
    await client.change(views.drop_view, view_id)
    return see_other("/")


@router.post("/sharings")
async def share_channel(
    request: Request,
    client: CurrentClient,
    channel: Annotated[ChannelName, Form()],
    group: Annotated[str, Form(alias="with")],
    until: Annotated[str, Form()] = "",
) -> Response:
    """Share a conversation with a group, until the end of a day if one is given."""
    query = {"with": group, **({"until": until} if until and group != NOBODY else {})}
    await edit_channel(client, "share", query, channel)
    return see_other(opened(request, channel_url(channel)))


@router.post("/pins")
async def pin_channel(
    request: Request,
    client: CurrentClient,
    channel: Annotated[ChannelName, Form()],
    pinned: Annotated[bool, Form()] = True,
) -> Response:
    await edit_channel(client, "tag", {"pinned": pinned}, channel)
    return see_other(opened(request, channel_url(channel)))
