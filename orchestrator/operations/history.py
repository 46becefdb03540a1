"""Listing sessions, and reading one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.answer.delivery import (
    CONTEXT,
    MessageDict,
    complete,
    delivered,
    fits,
    length_of,
    message_dict,
    tokens_for,
    tokens_in,
)
from orchestrator.answer.digests.suggestions import add_suggestions
from orchestrator.answer.digests.summaries import LISTED, add_summaries
from orchestrator.answer.finding.looking_up import ask, find, understood
from orchestrator.answer.finding.moved_folders import moved_from
from orchestrator.answer.finding.related import related_sessions
from orchestrator.answer.finding.relevance import best_channels, explanation, judge
from orchestrator.answer.fitting import page_within, piece_of
from orchestrator.operations.search_sessions import pagination, within_client
from orchestrator.requests.queries import FetchQuery, ListQuery
from orchestrator.requests.shapes import FetchRequest, ListRequest
from orchestrator.state import Run, Steps
from registry.domain import format_time, parse_time, preview_of
from registry.errors import InvalidRequest, NotFound
from registry.search.retrieval import SearchResult
from registry.search.scope import Scope
from registry.storage.conversations.aliases import aliases_of, links_of
from registry.storage.conversations.channels import (
    ChannelFilter,
    ChannelRow,
    channel_item,
    list_channels,
    model_facts,
    numbers_of,
    places_among_recent,
    some_channels,
    tags_of,
)
from registry.storage.conversations.messages import (
    MessageRow,
    by_numbers,
    get_message,
    message_place,
    messages_of,
    messages_onward,
)
from registry.storage.conversations.references import resolve_session
from registry.storage.database import ReadTransaction
from registry.storage.paging import Page, cursor_of, decode_cursor, encode_cursor

EVERYTHING = 1_000_000
AT_ONCE = 200
"""Messages that are read for one page; most pages hold fewer."""
NUMBERED = 1000
"""Of a list of some sessions, those among so many of the latest have a number."""
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
        return _speaking_of(tx, run, query, query.text)
    items, total = some_channels(tx, _filter(query), limit=query.limit, offset=query.offset)
    add_summaries(tx, run, items, LISTED)
    add_suggestions(tx, items)
    _number(tx, query, items)
    run.recorder.explain(by="the channels' last activity", candidates=total)
    said = {"from": query.since, "to": query.until}
    span = {name: format_time(at) for name, at in said.items() if at}
    return Listed(items, total, found={"understood": span} if span else {})


def _number(tx: ReadTransaction, query: ListQuery, items: Iterable[dict[str, Any]]) -> None:
    """Say what number names a session: its place among all, also where the list is of some."""
    if not _is_filtered(query):
        for place, one in enumerate(items, query.offset + 1):
            one["index"] = place
        return
    places = places_among_recent(tx, NUMBERED)
    for one in items:
        if one["channel"] in places:
            one["index"] = places[one["channel"]]


def _is_filtered(query: ListQuery) -> bool:
    """Return whether `#3` names another one than the third of these; the latest ones all stand before the rest."""
    return bool(query.project or query.source or query.tag or query.tagged_only or query.until)


def _filter(query: ListQuery, **narrowed: Any) -> ChannelFilter:
    given = query.model_dump(include={"source", "project", "tag"}) | {"from_": query.since, "to": query.until}
    return ChannelFilter(**given | narrowed, is_named=query.tagged_only)


def _speaking_of(tx: ReadTransaction, run: Run, query: ListQuery, text: str) -> Listed:
    """The sessions that speak of something, or are called so."""
    given = Scope(
        sources=[query.source] if query.source else [], project=query.project, tags=[query.tag] if query.tag else []
    )
    read, scope = ask(tx, text, query.utc_offset_minutes, given)
    search = read.search
    is_about_something = search.words or search.phrases or search.prefixes or search.excluded
    found = find(tx, run, read, scope) if is_about_something else None
    wanted = _filter(
        query,
        source=search.source or query.source or next(iter(read.sources), None),
        project=search.project or query.project,
        tag=query.tag or next(iter(search.tags), None),
        q=search.words if found else None,
        numbers=[number for number, _ in best_channels(found, judge(found))] if found else [],
        from_=query.since or search.from_,
        to=query.until or search.to,
    )
    page = list_channels(tx, wanted, Page(query.limit, query.cursor, query.order))
    add_summaries(tx, run, page["items"], LISTED)
    run.recorder.explain(**explanation(found) if found else {"by": "the channels' last activity"})
    hits = {"hits": _hits(tx, found, page["items"])} if found else {}
    return Listed(page["items"], page["total"], page["next_cursor"], {"understood": understood(read, found), **hits})


def _hits(tx: ReadTransaction, findings: SearchResult, items: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """For each of these channels the best of its messages."""
    shown = set(numbers_of(tx, [item["channel"] for item in items]).values())
    best: dict[int, int] = {}
    for ranked in findings.ranked:
        if ranked.candidate.channel_id in shown:
            best.setdefault(ranked.candidate.channel_id, ranked.candidate.number)
    return {row.channel: {"id": row.id, "text": row.text} for row in by_numbers(tx, list(best.values()))}


async def keep_list(run: Run, request: ListRequest, data: Listed) -> dict[str, Any]:
    """The part as it was read, or as much of it as the client lets through, with what there is beside it."""
    limit, offset = request.query.limit, request.query.offset
    items = within_client(run, data.items) if request.query.is_sized else data.items
    reason = "limit and offset" if len(items) == len(data.items) else "what the client lets through"
    run.recorder.explain(kept=len(items), dropped=data.total - len(items), reason=reason)
    place = pagination(data.total, limit, offset, len(items))
    if request.query.text:
        place |= {"has_more": data.next_cursor is not None, "next_cursor": data.next_cursor}
    is_of_folder = request.query.project and not (request.query.text or offset)
    before = await moved_from(run, request.query.project or "") if is_of_folder else {}
    return {"sessions": items, "pagination": place, **data.found, **({"elsewhere": before} if before else {})}


@dataclass(frozen=True, slots=True)
class Fetched:
    """A session and the messages read from it. `has_more`: there are more after the last one."""

    session: dict[str, Any]
    messages: list[MessageDict]
    has_more: bool = False


def fetch_session(tx: ReadTransaction, run: Run, request: FetchRequest) -> Fetched:
    """Read a session's last messages, those after a cursor or from the beginning, or one message."""
    query = request.query
    row = resolve_session(tx, query.session_id)
    run.recorder.channel = row.name
    rows, how, has_more = _messages_wanted(tx, row, query)
    run.recorder.explain(channel=row.name, by=how, candidates=len(rows))
    session = {**channel_item(row, tags_of(tx, [row.number])[row.number]), **other_names(tx, row), **model_facts(row)}
    add_summaries(tx, run, [session])
    if query.is_first_look:
        add_suggestions(tx, [session])
        if near := related_sessions(tx, row):
            session["related"] = near
    return Fetched(session, [message_dict(message) for message in rows], has_more)


def _messages_wanted(tx: ReadTransaction, row: ChannelRow, query: FetchQuery) -> tuple[Sequence[MessageRow], str, bool]:
    if wanted := query.message_id or _piece_place(query.cursor).get("m"):
        return [_message_of(tx, row, wanted)], "the message's id", False
    if query.cursor is not None:
        rows, has_more = messages_onward(tx, row.number, limit=AT_ONCE, cursor=query.cursor or None)
        return rows, "the session from its beginning, page by page", has_more
    before = message_place(tx, row.number, query.before - 1) if query.before else None
    last = messages_of(tx, row.number, limit=query.message_limit or EVERYTHING, before=before)
    return last, "the session's last messages", False


def _piece_place(cursor: str | None) -> dict[str, Any]:
    try:
        return decode_cursor(cursor, m=str, o=int) if cursor else {}
    except InvalidRequest:
        return {}  # it names a place in the session, or nothing: who reads that says so


def _message_of(tx: ReadTransaction, row: ChannelRow, message_id: str) -> MessageRow:
    message = get_message(tx, message_id)
    if message.channel_number != row.number:
        raise NotFound("No such message in this session", f"{message_id!r} is in channel {message.channel!r}")
    return message


def other_names(tx: ReadTransaction, row: ChannelRow) -> dict[str, list[str]]:
    """Return the channel's other names and possible duplicates; empty ones are left out."""
    known = {"also_known_as": aliases_of(tx, row.number), "maybe_same_as": links_of(tx, row.number)}
    return {name: names for name, names in known.items() if names}


async def keep_fetched(run: Run, request: FetchRequest, data: Fetched) -> dict[str, Any]:
    """The messages in order, each with its sequence number; the noise of tools shortened where that is wanted."""
    query = request.query
    messages = [{**_as_told(query, message), "sequence": message["seq"] + 1} for message in data.messages]
    if query.message_id is not None or _piece_place(query.cursor):
        return {"session": data.session, **_in_pieces(run, query, data.session, messages[0])}
    if query.is_folded:
        for message in messages:
            if message["role"] in FOLDED_ROLES:
                message["text"] = preview_of(message["text"], FOLDED_WIDTH)
    shown = _within(run, query, data.session, messages)
    tokens = sum(tokens_in(message["text"]) for message in shown)
    run.recorder.explain(kept=len(shown), dropped=len(messages) - len(shown), reason="max_tokens", tokens=tokens)
    more: dict[str, Any] = {}
    if query.cursor is not None and (data.has_more or len(shown) < len(messages)):
        last = data.messages[len(shown) - 1]
        more["next_cursor"] = cursor_of(parse_time(last["timestamp"]), last["number"])
    return {"session": data.session, "messages": shown, **more}


def _as_told(query: FetchQuery, message: MessageDict) -> MessageDict:
    """With a tool's call whole where there is room for it: where no size is given, or where one message is wanted."""
    if query.is_complete:
        return complete(message)
    is_small = query.message_id is not None and length_of(message["tool"]) <= CONTEXT
    return delivered(message, whole_tool=is_small or not (query.max_tokens or query.is_folded))


def _in_pieces(run: Run, query: FetchQuery, session: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    """The message whole, or as much of it as the asking client lets through, and where it goes on."""
    if query.max_tokens is None:
        return {"messages": [message]}
    offset = min(max(_piece_place(query.cursor).get("o", 0), 0), len(message["text"]))
    tokens = tokens_for(run.room, query.max_tokens)

    def answer(text: str) -> dict[str, Any]:
        end = offset + len(text)
        is_whole = (offset, end) == (0, len(message["text"]))
        marks = {} if is_whole else {"full_length": len(message["text"]), "offset": offset}
        onward = {} if end == len(message["text"]) else {"next_cursor": encode_cursor({"m": message["id"], "o": end})}
        return {"messages": [{**message, "text": text, **marks}], **onward}

    def is_small(text: str) -> bool:
        sized = {"session": session, **answer(text)}
        return tokens_in(text) <= tokens and fits(run.room, sized)

    piece = piece_of(message["text"], offset, is_small)
    run.recorder.explain(kept=1, characters=len(piece), of=len(message["text"]), offset=offset)
    return answer(piece)


def _within(
    run: Run, query: FetchQuery, session: dict[str, Any], messages: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    if query.max_tokens is None:
        return messages
    tokens = tokens_for(run.room, query.max_tokens)
    shown = _page(query, messages, tokens)
    while tokens > 1 and not fits(run.room, {"session": session, "messages": shown}):
        tokens = tokens * 3 // 4
        shown = _page(query, messages, tokens)
    return shown


def _page(query: FetchQuery, messages: list[dict[str, Any]], tokens: int) -> list[dict[str, Any]]:
    return page_within(messages, tokens) if query.cursor is not None else page_within(reversed(messages), tokens)[::-1]


def _subject(request: ListRequest) -> str:
    return request.query.text or ""


LIST = Steps[ListRequest, Listed](query=list_sessions, keep=keep_list, subject=_subject)
FETCH = Steps[FetchRequest, Fetched](query=fetch_session, keep=keep_fetched)
