"""Listing sessions and reading one (contract 2.3): what `cr_query` reads for it, and what `filter` leaves of that."""

from __future__ import annotations

from typing import Any

from orchestrator.queries import delivered, message_dict
from orchestrator.requests import FetchRequest, ListRequest
from orchestrator.state import Run
from registry.domain import preview_of
from registry.storage.aliases import aliases_of, links_of
from registry.storage.channels import ChannelFilter, ChannelRow, channel_item, some_channels, tags_of
from registry.storage.database import ReadTransaction
from registry.storage.messages import message_place, messages_of
from registry.storage.references import resolve_session

EVERYTHING = 1_000_000
FOLDED_ROLES = ("tool", "thinking")
FOLDED_WIDTH = 200


def list_sessions(tx: ReadTransaction, run: Run, request: ListRequest) -> dict[str, Any]:
    """A part of the sessions there are."""
    query = request.query
    wanted = ChannelFilter(
        source=query.source, project=query.project, tag=query.tag, is_named=query.tagged_only, from_=query.since
    )
    items, total = some_channels(tx, wanted, limit=query.limit, offset=query.offset)
    run.recorder.explain(by="the channels' last activity", candidates=total)
    return {"items": items, "total": total}


async def filter_list(run: Run, request: ListRequest, data: dict[str, Any]) -> dict[str, Any]:
    """The part as it was read, with what there is beside it."""
    limit, offset, shown = request.query.limit, request.query.offset, len(data["items"])
    run.recorder.explain(kept=shown, dropped=data["total"] - shown, reason="limit and offset")
    return {"sessions": data["items"], "pagination": pagination(data["total"], limit, offset, shown)}


def pagination(total: int, limit: int, offset: int, shown: int) -> dict[str, Any]:
    """Where a part stands in the whole."""
    return {"total": total, "limit": limit, "offset": offset, "has_more": offset + shown < total}


def fetch_session(tx: ReadTransaction, run: Run, request: FetchRequest) -> dict[str, Any]:
    """One session, and its last messages."""
    query = request.query
    row = resolve_session(tx, query.session_id)
    run.recorder.channel = row.name
    before = message_place(tx, row.number, query.before - 1) if query.before else None
    rows = messages_of(tx, row.number, limit=query.message_limit or EVERYTHING, before=before)
    run.recorder.explain(channel=row.name, by="the session's last messages", candidates=len(rows))
    session = {**channel_item(row, tags_of(tx, [row.number])[row.number]), **related(tx, row)}
    return {"session": session, "messages": [message_dict(message) for message in rows]}


def related(tx: ReadTransaction, row: ChannelRow) -> dict[str, list[str]]:
    """What else the channel is called, and which may be the same conversation; left out where there is nothing."""
    known = {"also_known_as": aliases_of(tx, row.number), "maybe_same_as": links_of(tx, row.number)}
    return {name: names for name, names in known.items() if names}


async def filter_fetch(run: Run, request: FetchRequest, data: dict[str, Any]) -> dict[str, Any]:
    """The messages in order, each with its sequence number; the noise of tools shortened where that is wanted."""
    messages = [{**delivered(message), "sequence": message["seq"] + 1} for message in data["messages"]]
    if request.query.is_folded:
        for message in messages:
            if message["role"] in FOLDED_ROLES:
                message["text"] = preview_of(message["text"], FOLDED_WIDTH)
    run.recorder.explain(kept=len(messages))
    return {"session": data["session"], "messages": messages}
