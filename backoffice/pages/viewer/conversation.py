"""/channels/{channel}: read a conversation in stretches, search it, and continue it in another client."""

import asyncio
import json
import shlex
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import Field

from backoffice.channels import Name
from backoffice.conversations import Id
from backoffice.dependencies import CurrentClient, HttpClient, without_parameters
from backoffice.pages.reader import day_of, zone_state
from backoffice.pages.rendering import HEADERS, address, channel_url, list_beside, list_parameters, opened, render
from backoffice.pages.viewer.channels import FILTERS, ROWS, RegistryQuery, given_query, list_context, snippet
from backoffice.pages.viewer.markdown import image_in
from backoffice.pages.viewer.messages import blocks_of, shown_message, with_durations
from backoffice.queries import Word
from orchestrator.requests.shapes import QueryShape
from orchestrator.views import conversations as views
from registry.access import CURRENT_ACCESS
from registry.domain import image_type
from registry.errors import NotFound
from sources.clients import CLIENTS
from sources.writers import WRITERS

router = APIRouter(default_response_class=HTMLResponse)

STRETCH_MESSAGES = 40  # messages at a time: a few screens
MESSAGES_BEFORE_TARGET = 6  # messages shown before the one that was jumped to
MAX_HITS = 100
MAX_RELATED = 4  # related conversations shown


class ConversationQuery(QueryShape):
    """A stretch of a conversation, and the words to search for in it."""

    at: Word | None = Field(None, description="a message's id, or `latest`")
    after: str | None = Field(None, max_length=500)
    before: str | None = Field(None, max_length=500)
    q: Word | None = None
    typing: bool = Field(False, description="the user is still typing: the search is not recorded")
    deleted: bool = False
    list_: str | None = Field(None, alias="list", description="the parameters of the list next to the conversation")


@router.get("/channels/{channel:path}")
async def conversation_page(request: Request, client: CurrentClient, channel: Name) -> HTMLResponse:
    """Show a stretch of a conversation; `deleted` shows its deleted messages."""
    query = given_query(request, ConversationQuery)
    wanted = query.model_dump(include={"at", "after", "before", "deleted"})
    is_part = "hx-request" in request.headers  # a further stretch, hits, or the head: the page has the outline already
    stretch = views.MessageRange(STRETCH_MESSAGES, MESSAGES_BEFORE_TARGET, **wanted)
    found = await client.view(views.conversation, channel, stretch, has_outline=not is_part)
    found["blocks"] = blocks_of(with_durations(map(shown_message, found.pop("messages"))))
    found["earlier"] = _stretch_address(channel, query, before=found["earlier"])
    found["later"] = _stretch_address(channel, query, after=found["later"])
    is_searched = query.q and not found["is_deleted"]
    found["hits_here"] = (
        await _hits(client, channel, query.q or "", is_recorded=not query.typing) if is_searched else None
    )
    is_whole = not is_part and "pane" not in request.headers
    listing = await _list_next_to_it(request, client) if is_whole else {}
    prompt = continue_prompt(found["channel"])
    return await asyncio.to_thread(
        render,
        request,
        "conversation.html",
        query=query,
        prompt=prompt,
        is_one_day=_is_one_day(request, found["channel"]),
        openers=[(each.name, each.prompt_link + quote(prompt, safe="")) for each in CLIENTS if each.prompt_link],
        resumes=resume_commands(found["channel"]),
        whose=other_owner(found["channel"]),
        most_hits=MAX_HITS,
        back=address("/", **list_parameters(request)),
        channel_url=partial(channel_url, list=query.list_),
        **{**listing, **found},
    )


def _is_one_day(request: Request, channel: dict[str, Any]) -> bool:
    """Return whether a conversation ends on the day it began, where the reader's zone is known."""
    first, last = (day_of(request, channel[edge]) for edge in ("created_at", "updated_at"))
    return first == last and zone_state(request) == "sent"


async def _list_next_to_it(request: Request, client: HttpClient) -> dict[str, Any]:
    parameters = list_parameters(request)
    query = given_query(request, RegistryQuery, parameters, limit=ROWS, typing=True)  # it was recorded as it was made
    return await list_context(request, client, query, {name: parameters.get(name, "") for name in FILTERS})


def other_owner(channel: dict[str, Any]) -> str | None:
    access, owner = CURRENT_ACCESS.get(), channel.get("owner")
    return owner if access is None or access.owner != owner else None


def _stretch_address(channel: str, query: ConversationQuery, **cursor: str | None) -> str | None:
    """Return the address of the stretch before or after, if there is one."""
    if not any(cursor.values()):
        return None
    deleted = "1" if query.deleted else None
    return channel_url(channel, q=query.q, deleted=deleted, list=query.list_, **cursor)


async def _hits(client: HttpClient, channel: str, words: str, *, is_recorded: bool) -> list[dict[str, Any]]:
    """Return the messages that match the words, or contain them literally, in order."""
    query = {"text": words, "limit": MAX_HITS, "order": "asc"}
    found = await client.run("search", query, channel, is_recorded=is_recorded)
    ids = [message["id"] for message in found["messages"]]
    marked_words = [words, *found["understood"].get("words", [])]
    hits = await client.view(views.hits_in, channel, ids, words, MAX_HITS)
    return [{**hit, "parts": snippet(hit["text"], marked_words)} for hit in hits]


def continue_prompt(channel: dict[str, Any]) -> str:
    name = channel["title"] or channel["first_message_preview"] or channel["channel"]
    call = json.dumps({"channel": channel["channel"], "query": {"limit": 50}}, ensure_ascii=False)
    return (
        f"Continue our conversation “{name}”.\n"
        f"First call the tool `extract` of the MCP server `context-registry` with\n{call}\n"
        "then go on from where it ends."
    )


def resume_commands(channel: dict[str, Any]) -> list[tuple[str, str]]:
    name = shlex.quote(channel["nickname"] or channel["session_id"])
    return [(writer.client.name, f"ctxr resume {name} --in {source} --run") for source, writer in WRITERS.items()]


@router.get("/margin/{channel:path}", dependencies=[without_parameters])
async def margin(request: Request, client: CurrentClient, channel: Name) -> HTMLResponse:
    """Return the slow parts of a conversation's page: files, commits, related conversations, deliveries."""
    found = await client.view(views.margin, channel)
    title = found["channel"]["title"] or found["channel"]["first_message_preview"]
    like = {"text": title, "limit": MAX_RELATED + 1, "context_window": 0}
    similar = (await client.ask("search_sessions", like, is_recorded=False)).get("sessions", []) if title else []
    others = [one for one in similar if one["channel"] != found["channel"]["channel"] and one["match_count"]]
    query = {"session_id": found["channel"]["channel"], "limit": 100}
    answer = await client.ask("blame", query, is_recorded=False) if found["channel"]["project_path"] else {}
    return await asyncio.to_thread(
        render,
        request,
        "margin.html",
        commits=answer.get("found", []),
        related=others[:MAX_RELATED],
        channel_url=partial(channel_url, list=list_beside(request, "channels")),
        **found,
    )


@router.get("/messages/{id}")
async def message_page(request: Request, client: CurrentClient, message_id: Id) -> RedirectResponse:
    item = await client.view(views.show_message, message_id)
    deleted = "1" if item["deleted"] else None
    url = opened(request, channel_url(item["channel"]), at=item["id"], deleted=deleted)
    return RedirectResponse(f"{url}#{item['id']}")


@router.get("/messages/{id}/whole")
async def whole_message(request: Request, client: CurrentClient, message_id: Id) -> HTMLResponse:
    """Show a shortened message in full, or its first 200 000 characters."""
    item = await client.view(views.show_message_with_images, message_id)
    message = await asyncio.to_thread(shown_message, item, whole=True)
    return render(request, "message.html", messages=[message], opened=True, show_deleted=item["deleted"])


@router.get("/messages/{id}/images/{number}", response_class=Response)
async def message_image(client: CurrentClient, message_id: Id, number: Annotated[int, Path(ge=0)]) -> Response:
    """Return a picture embedded in a message; nothing is fetched from outside."""
    item = await client.view(views.show_message, message_id)
    found = image_in(item["text"], number)
    if found is None:
        raise NotFound("No such picture", f"Message {message_id!r} has no picture {number}")
    media_type, content = found
    return Response(content, media_type=media_type, headers=HEADERS)


@router.get("/messages/{id}/attachments/{number}", response_class=Response)
async def attached_image(client: CurrentClient, message_id: Id, number: Annotated[int, Path(ge=0)]) -> Response:
    """Return an image attached to a message; its type follows from its content."""
    content = await client.view(views.attached_image, message_id, number)
    return Response(content, media_type=image_type(content), headers=HEADERS)


@router.get("/messages/{id}/raw")
async def raw_message(client: CurrentClient, message_id: Id) -> Response:
    item = await client.view(views.show_message, message_id)
    return Response(item["text"], media_type="text/plain; charset=utf-8", headers=HEADERS)


@router.get("/messages/{id}/facts")
async def message_facts(request: Request, client: CurrentClient, message_id: Id) -> HTMLResponse:
    item = await client.view(views.show_message, message_id)
    return render(request, "facts.html", message=shown_message(item))
