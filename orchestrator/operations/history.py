"""Listing sessions, and reading one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from orchestrator.delivery import MessageDict, delivered, message_dict
from orchestrator.operations.search import find, pagination, read_in_zone, understood
from orchestrator.relevance import best_channels, explanation
from orchestrator.requests import FetchRequest, ListQuery, ListRequest
from orchestrator.state import Run, Steps
from registry.domain import preview_of
from registry.search.retrieval import SearchResult
from registry.search.scope import Scope, narrow
from registry.storage.aliases import aliases_of, links_of
from registry.storage.channels import (
    ChannelFilter,
    ChannelRow,
    channel_item,
    list_channels,
    numbers_of,
    some_channels,
    tags_of,
)
from registry.storage.database import ReadTransaction
from registry.storage.messages import by_numbers, message_place, messages_of
from registry.storage.paging import Page
from registry.storage.references import resolve_session
from registry.text.syntax import Search

EVERYTHING = 1_000_000
FOLDED_ROLES = ("tool", "thinking")
FOLDED_WIDTH = 200


@dataclass(frozen=True, slots=True)
class Listed:
    """A part of the sessions there are. `found`: how the words were read, and the best message of each session."""

    items: list[dict[str, Any]]
    total: int
    next_cursor: str | None = None
    found: dict[str, Any] = field(default_factory=dict)


def list_sessions(tx: ReadTransaction, run: Run, request: ListRequest) -> Listed:
    """A part of the sessions there are, by last activity."""
    query = request.query
    if query.text:
        return _speaking_of(tx, run, query, read_in_zone(query.text, query.utc_offset_minutes))
    items, total = some_channels(tx, _filter(query), limit=query.limit, offset=query.offset)
    run.recorder.explain(by="the channels' last activity", candidates=total)
    return Listed(items, total)


def _filter(query: ListQuery, **narrowed: Any) -> ChannelFilter:
    given = query.model_dump(include={"source", "project", "tag"}) | {"from_": query.since, "to": query.until}
    return ChannelFilter(**given | narrowed, is_named=query.tagged_only)


def _speaking_of(tx: ReadTransaction, run: Run, query: ListQuery, search: Search) -> Listed:
    """The sessions that speak of something, or are called so."""
    scope = Scope(source=query.source, project=query.project, tags=[query.tag] if query.tag else [])
    is_about_something = search.words or search.phrases or search.prefixes or search.excluded
    findings = find(tx, run, search, narrow(scope, search)) if is_about_something else None
    wanted = _filter(
        query,
        source=search.source or query.source,
        project=search.project or query.project,
        tag=query.tag or next(iter(search.tags), None),
        q=query.text if findings else None,
        numbers=[number for number, _ in best_channels(findings)] if findings else [],
        from_=query.since or search.from_,
        to=query.until or search.to,
    )
    page = list_channels(tx, wanted, Page(query.limit, query.cursor, query.order))
    run.recorder.explain(**explanation(findings) if findings else {"by": "the channels' last activity"})
    found = {"understood": understood(search, findings), "hits": _hits(tx, findings, page["items"])} if findings else {}
    return Listed(page["items"], page["total"], page["next_cursor"], found)


def _hits(tx: ReadTransaction, findings: SearchResult, items: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """For each of these channels the best of its messages."""
    shown = set(numbers_of(tx, [item["channel"] for item in items]).values())
    best: dict[int, int] = {}
    for ranked in findings.ranked:
        if ranked.candidate.channel_id in shown:
            best.setdefault(ranked.candidate.channel_id, ranked.candidate.number)
    return {row.channel: {"id": row.id, "text": row.text} for row in by_numbers(tx, list(best.values()))}


async def keep_list(run: Run, request: ListRequest, data: Listed) -> dict[str, Any]:
    """The part as it was read, with what there is beside it."""
    limit, offset, shown = request.query.limit, request.query.offset, len(data.items)
    run.recorder.explain(kept=shown, dropped=data.total - shown, reason="limit and offset")
    place = pagination(data.total, limit, offset, shown)
    if request.query.text:
        place |= {"has_more": data.next_cursor is not None, "next_cursor": data.next_cursor}
    return {"sessions": data.items, "pagination": place, **data.found}


@dataclass(frozen=True, slots=True)
class Fetched:
    """One session, and the messages that were read of it."""

    session: dict[str, Any]
    messages: list[MessageDict]


def fetch_session(tx: ReadTransaction, run: Run, request: FetchRequest) -> Fetched:
    """One session, and its last messages."""
    query = request.query
    row = resolve_session(tx, query.session_id)
    run.recorder.channel = row.name
    before = message_place(tx, row.number, query.before - 1) if query.before else None
    rows = messages_of(tx, row.number, limit=query.message_limit or EVERYTHING, before=before)
    run.recorder.explain(channel=row.name, by="the session's last messages", candidates=len(rows))
    session = {**channel_item(row, tags_of(tx, [row.number])[row.number]), **related(tx, row)}
    return Fetched(session, [message_dict(message) for message in rows])


def related(tx: ReadTransaction, row: ChannelRow) -> dict[str, list[str]]:
    """What else the channel is called, and which may be the same conversation; left out where there is nothing."""
    known = {"also_known_as": aliases_of(tx, row.number), "maybe_same_as": links_of(tx, row.number)}
    return {name: names for name, names in known.items() if names}


async def keep_fetched(run: Run, request: FetchRequest, data: Fetched) -> dict[str, Any]:
    """The messages in order, each with its sequence number; the noise of tools shortened where that is wanted."""
    messages = [{**delivered(message), "sequence": message["seq"] + 1} for message in data.messages]
    if request.query.is_folded:
        for message in messages:
            if message["role"] in FOLDED_ROLES:
                message["text"] = preview_of(message["text"], FOLDED_WIDTH)
    run.recorder.explain(kept=len(messages))
    return {"session": data.session, "messages": messages}


def _subject(request: ListRequest) -> str:
    return request.query.text or ""


LIST = Steps[ListRequest, Listed](query=list_sessions, keep=keep_list, subject=_subject)
FETCH = Steps[FetchRequest, Fetched](query=fetch_session, keep=keep_fetched)
