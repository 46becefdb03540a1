"""/channels/{channel}: a conversation, read a stretch at a time, searched, and handed on."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from backoffice.channels import Name
from backoffice.conversations import Id
from backoffice.dependencies import SOURCE, Asking, Client, Stored, without_parameters
from backoffice.errors import OperationFailed
from backoffice.pages.reader import as_local
from backoffice.pages.rendering import HEADERS, channel_url, render
from backoffice.pages.viewer.channels import given_query
from backoffice.pages.viewer.markdown import image_in
from backoffice.pages.viewer.messages import LONGEST_AT_ALL, shown
from backoffice.pages.viewer.snippets import snippet
from backoffice.queries import Start, Word
from orchestrator.answer.digests.suggestions import add_suggestions
from orchestrator.answer.finding.related import related_sessions
from registry.domain import format_time, preview_of
from registry.errors import ErrorCode, NotFound
from registry.registry import Registry
from registry.storage.conversations.aliases import links_of
from registry.storage.conversations.channels import (
    ChannelRow,
    channel_item,
    find_channel,
    get_channel,
    model_facts,
    tags_of,
)
from registry.storage.conversations.message_windows import (
    Window,
    numbers_containing,
    questions_of,
    read_window,
    window_around,
)
from registry.storage.conversations.messages import SaidMessage, by_ids, by_numbers, get_message
from registry.storage.conversations.pins_and_views import has_pin
from registry.storage.database import ReadTransaction
from registry.storage.exchange.change_feed import shown_place
from registry.storage.paging import Page, cursor_of, seal_of
from registry.storage.records.extract_results import deliveries_of
from sources.clients import CLIENTS
from sources.writers import WRITERS

router = APIRouter(default_response_class=HTMLResponse)

STRETCH = 40
"""Messages at a time: a few screens."""
AHEAD = 6
"""Messages shown before the one that was jumped to."""
MOST_HITS = 100
MOST_DELIVERIES = 20
MOST_QUESTIONS = 500
MOST_COMMITS = 100
LATEST = "latest"
CONTINUED = 50
"""How many messages the prompt for another AI asks for."""


class ConversationQuery(BaseModel):
    """Which stretch of a conversation, and what is searched for in it."""

    model_config = ConfigDict(extra="forbid")

    at: Word | None = Field(None, description="a message's id, or `latest`")
    after: str | None = Field(None, max_length=500)
    before: str | None = Field(None, max_length=500)
    time: Start | None = Field(None, description="the stretch from this instant on")
    q: Word | None = None
    deleted: bool = False


@router.get("/channels/{channel:path}")
async def conversation_page(request: Request, registry: Stored, client: Asking, channel: Name) -> HTMLResponse:
    """One stretch of a conversation, with what there is to do with it; `deleted` shows what was taken out."""
    query = given_query(request, ConversationQuery)

    def work(tx: ReadTransaction) -> dict[str, Any]:
        place = shown_place(tx)
        row = _channel(tx, channel, query)
        window = _window(tx, row, query)
        channel_shown = channel_item(row, tags_of(tx, [row.number])[row.number])
        add_suggestions(tx, [channel_shown])
        return {
            "place": place,
            "channel": channel_shown,
            "maybe_same_as": links_of(tx, row.number),
            "model": model_facts(row),
            "is_deleted": row.deleted,
            "is_pinned": has_pin(tx, row.number),
            "most_hits": MOST_HITS,
            "questions": [_question(one) for one in questions_of(tx, row.number, MOST_QUESTIONS)],
            "messages": [shown(message) for message in window.rows],
            "earlier": _other(channel, query, before=window.earlier),
            "later": _other(channel, query, after=window.later),
        }

    found = await registry.read(work)
    is_searched = query.q and not found["is_deleted"]
    found["hits"] = await _hits(registry, client, channel, query.q or "") if is_searched else None
    prompt = continue_prompt(found["channel"])
    time_at = format_time(query.time) if query.time else ""
    return await asyncio.to_thread(
        lambda: render(
            request,
            "conversation.html",
            section="registry",
            query=query,
            prompt=prompt,
            openers=[(each.name, each.prompt_link + quote(prompt, safe="")) for each in CLIENTS if each.prompt_link],
            resumes=resume_commands(found["channel"]),
            time_at=time_at,
            shown_time=as_local(request, time_at),
            **found,
        )
    )


def _question(row: Any) -> dict[str, str]:
    return {"id": row.id, "preview": preview_of(row.text), "timestamp": format_time(row.timestamp)}


def _channel(tx: ReadTransaction, name: str, query: ConversationQuery) -> ChannelRow:
    row = find_channel(tx, name)
    if row is None or (row.deleted and not query.deleted):
        raise NotFound("No such conversation", f"No channel {name!r} in the registry")
    return row


def _window(tx: ReadTransaction, row: ChannelRow, query: ConversationQuery) -> Window:
    if query.at and query.at != LATEST:
        message = get_message(tx, query.at, include_deleted=query.deleted)
        if message.channel_number != row.number:
            raise NotFound("No such message", f"Message {query.at!r} is not in this conversation")
        return window_around(tx, message, AHEAD, STRETCH)
    if query.time:
        return read_window(tx, row.number, Page(STRETCH, cursor_of(query.time, 0, seal_of(tx)), "asc"))._replace(
            earlier=cursor_of(query.time, 0, seal_of(tx))
        )
    goes_back = query.at == LATEST or query.before is not None
    page = Page(STRETCH, query.before if goes_back else query.after, "desc" if goes_back else "asc")
    return read_window(tx, row.number, page, deleted=query.deleted)


def _other(channel: str, query: ConversationQuery, **cursor: str | None) -> str | None:
    """The address of the stretch before or after, if there is one."""
    if not any(cursor.values()):
        return None
    return channel_url(channel, q=query.q, deleted="1" if query.deleted else None, **cursor)


async def _hits(registry: Registry, client: Client, channel: str, words: str) -> list[dict[str, Any]]:
    """The messages that have to do with the words, or contain these very characters; in order."""
    query = {"text": words, "limit": MOST_HITS, "order": "asc"}
    found = await client.run({"operation": "search", "channel": channel, "query": query, "source": SOURCE})
    ids = [message["id"] for message in found["messages"]]

    def work(tx: ReadTransaction) -> list[SaidMessage]:
        containing = numbers_containing(tx, get_channel(tx, channel).number, words, MOST_HITS)
        rows = {row.number: row for row in [*by_ids(tx, ids), *by_numbers(tx, containing)]}
        return sorted(rows.values(), key=lambda row: (row.timestamp, row.number))

    marked = [words, *found["understood"].get("words", [])]
    return [_hit(row, marked) for row in (await registry.read(work))[:MOST_HITS]]


def _hit(row: Any, words: Sequence[str]) -> dict[str, Any]:
    return {"id": row.id, "role": row.role, "timestamp": format_time(row.timestamp), "parts": snippet(row.text, words)}


def continue_prompt(channel: dict[str, Any]) -> str:
    """What to say to another AI so that it goes on from here; `extract` is its tool for that."""
    name = channel["title"] or channel["first_message_preview"] or channel["channel"]
    call = json.dumps({"channel": channel["channel"], "query": {"limit": CONTINUED}}, ensure_ascii=False)
    return (
        f"Continue our conversation “{name}”.\n"
        f"First call the tool `extract` of the MCP server `context-registry` with\n{call}\n"
        "then go on from where it ends."
    )


def resume_commands(channel: dict[str, Any]) -> list[tuple[str, str]]:
    """Each client in which it can go on as a session of its own, and the command that opens it there."""
    named = shlex.quote(channel["nickname"] or channel["session_id"])
    return [(writer.client.name, f"ctxr resume {named} --in {source} --run") for source, writer in WRITERS.items()]


@router.get("/related/{channel:path}", dependencies=[without_parameters])
async def related_page(request: Request, registry: Stored, channel: Name) -> HTMLResponse:
    """The conversations about the same: searched for when asked, and not whenever one is opened."""

    def work(tx: ReadTransaction) -> dict[str, Any]:
        row = get_channel(tx, channel)
        item = channel_item(row, tags_of(tx, [row.number])[row.number])
        return {"channel": item, "related": related_sessions(tx, row)}

    return render(request, "related.html", section="registry", **await registry.read(work))


@router.get("/commits/{channel:path}", dependencies=[without_parameters])
async def commits_page(request: Request, registry: Stored, client: Asking, channel: Name) -> HTMLResponse:
    """The commits that were made from a conversation, in the repository of its folder."""

    def work(tx: ReadTransaction) -> dict[str, Any]:
        row = get_channel(tx, channel)
        return channel_item(row, tags_of(tx, [row.number])[row.number])

    item = await registry.read(work)
    query = {"session_id": item["channel"], "limit": MOST_COMMITS}
    answer = await client.answer({"operation": "blame", "query": query, "source": SOURCE})
    if not answer["success"] and answer["error"]["code"] != ErrorCode.NOT_FOUND:
        raise OperationFailed(answer["error"])
    found, reason = answer.get("found", []), answer.get("error", {}).get("message", "")
    return await asyncio.to_thread(
        render, request, "commits.html", section="registry", channel=item, found=found, reason=reason
    )


@router.get("/messages/{id}")
async def message_page(registry: Stored, message_id: Id) -> RedirectResponse:
    """A message where it stands."""
    row = await registry.read(lambda tx: get_message(tx, message_id, include_deleted=True))
    deleted = "1" if row.deleted else None
    return RedirectResponse(f"{channel_url(row.channel, at=row.id, deleted=deleted)}#{row.id}")


@router.get("/messages/{id}/whole")
async def whole_message(request: Request, registry: Stored, message_id: Id, raw: bool = False) -> HTMLResponse:
    """All of a message that is shown shortened at first; `raw`: as it was written, and not as Markdown."""
    row = await registry.read(lambda tx: get_message(tx, message_id, include_deleted=True))
    return await asyncio.to_thread(
        lambda: render(
            request,
            "message.html",
            messages=[shown(row, whole=True, raw=raw)],
            opened=True,
            raw=raw,
            show_deleted=row.deleted,
        )
    )


@router.get("/messages/{id}/more")
async def more_of_message(
    request: Request, registry: Stored, message_id: Id, start: Annotated[int, Query(alias="from", ge=0)]
) -> HTMLResponse:
    """The next piece of a very long message, as it was written."""
    row = await registry.read(lambda tx: get_message(tx, message_id, include_deleted=True))
    end = start + LONGEST_AT_ALL
    context = {"id": row.id, "piece": row.text[start:end], "end": end, "missing": max(len(row.text) - end, 0)}
    return await asyncio.to_thread(render, request, "piece.html", **context)


@router.get("/messages/{id}/images/{number}", response_class=Response)
async def message_image(registry: Stored, message_id: Id, number: Annotated[int, Path(ge=0)]) -> Response:
    """A picture that a message holds itself; nothing is ever fetched from outside."""
    row = await registry.read(lambda tx: get_message(tx, message_id, include_deleted=True))
    found = image_in(row.text, number)
    if found is None:
        raise NotFound("No such picture", f"Message {message_id!r} holds no picture {number}")
    media_type, held = found
    return Response(held, media_type=media_type, headers=HEADERS)


@router.get("/messages/{id}/raw")
async def raw_message(registry: Stored, message_id: Id) -> Response:
    """A message as it was written, however long."""
    row = await registry.read(lambda tx: get_message(tx, message_id, include_deleted=True))
    return Response(row.text, media_type="text/plain; charset=utf-8", headers=HEADERS)


@router.get("/messages/{id}/facts")
async def message_facts(request: Request, registry: Stored, message_id: Id) -> HTMLResponse:
    """Where a message comes from, and which extractions delivered it to whom."""

    def work(tx: ReadTransaction) -> dict[str, Any]:
        row = get_message(tx, message_id, include_deleted=True)
        return {"message": shown(row), "deliveries": deliveries_of(tx, row.channel, row.id, MOST_DELIVERIES)}

    return render(request, "facts.html", most=MOST_DELIVERIES, **await registry.read(work))
