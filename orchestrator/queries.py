"""What `cr_query` reads from the registry, for each operation that reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from typing import Any

from orchestrator.finding import find
from orchestrator.relevance import MessageDict, Turn, best_channels, explanation, judge
from orchestrator.requests import BriefingRequest, ExtractQuery, ExtractRequest, SearchRequest
from orchestrator.state import Run
from registry.domain import format_time, now, storable
from registry.errors import InvalidRequest, NotFound
from registry.search.retrieval import SearchResult
from registry.search.scope import Scope, narrow
from registry.storage.channels import (
    ChannelFilter,
    ChannelRow,
    channels_by_number,
    get_channel,
    list_channels,
    recent_channels,
)
from registry.storage.database import ReadTransaction
from registry.storage.extract_results import get_result
from registry.storage.messages import MessageRow, messages_of
from registry.storage.paging import Page, decode_cursor, place_of
from registry.text.query import parse_query
from registry.text.syntax import read_search

OTHER_CHANNELS = 5
"""How many further channels `extract` offers when it had to choose one."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """What `extract` read: the channel, and either findings, a ranking kept from before, or its last messages."""

    channel: ChannelRow
    candidates: list[ChannelRow] = field(default_factory=list)
    findings: SearchResult | None = None
    kept: KeptRanking | None = None
    messages: list[MessageDict] = field(default_factory=list)
    has_older: bool = False


@dataclass(frozen=True, slots=True)
class KeptRanking:
    """The rest of an earlier extraction's ranking, so that its next page is what it would have been then."""

    result_id: str
    offset: int
    turns: list[Turn]
    hits: frozenset[int]


def extract(tx: ReadTransaction, run: Run, request: ExtractRequest) -> Extraction:
    """The channel asked for, or the one that fits the words best, and what may answer in it."""
    query = request.query
    ranking = _ranking_place(query.cursor)
    if ranking:
        return _continued(tx, run, ranking)
    has_words = bool(query.text and parse_query(query.text).words)
    channel, others = _channel_of(tx, run, request, has_words)
    run.recorder.channel = channel.name
    if has_words and query.text and not query.cursor:
        findings = find(tx, run, query.text, _within(channel.number, query))
        _explain(run, findings, channel)
        if request.channel or any(judged.reason is None for judged in judge(findings)):
            return Extraction(channel, others, findings=findings)
        run.recorder.explain(found_by="its title, nickname or project: its messages say nothing of the words")
    before = place_of(query.cursor) if query.cursor else None
    rows = messages_of(
        tx,
        channel.number,
        limit=query.limit + 1,
        roles=query.roles,
        from_=query.from_,
        to=query.to,
        before=before,
    )
    run.recorder.explain(channel=channel.name, by="the channel's last messages", candidates=len(rows))
    messages = [message_dict(row) for row in rows[-query.limit :]]
    return Extraction(channel, others, messages=messages, has_older=len(rows) > query.limit)


def _channel_of(
    tx: ReadTransaction, run: Run, request: ExtractRequest, has_words: bool
) -> tuple[ChannelRow, list[ChannelRow]]:
    """The channel to read, and the others it might have been."""
    if request.channel is not None:
        return get_channel(tx, request.channel), []
    if has_words and request.query.text:
        findings = find(tx, run, request.query.text, _within(None, request.query))
        scores = best_channels(findings)[: OTHER_CHANNELS + 1]
        known = channels_by_number(tx, [number for number, _ in scores])
        found = [known[number] for number, _ in scores if number in known]
        _explain(run, findings, None)
        run.recorder.explain(
            channels=[
                {"channel": known[number].name, "score": round(score, 3)} for number, score in scores if number in known
            ],
            registry_candidates=findings.candidates,
        )
    else:
        found = recent_channels(tx, OTHER_CHANNELS + 1)
    if not found:
        raise nothing_found(request.query.text)
    return found[0], found[1:]


def candidate_item(row: ChannelRow) -> dict[str, Any]:
    """A channel the user may have meant instead."""
    return {
        "channel": row.name,
        "title": row.title or row.first_message_preview or row.name,
        "project": row.project_name or "General",
        "last_activity": format_time(row.updated_at),
    }


def nothing_found(text: str | None) -> NotFound:
    """The seed's answer when nothing is relevant (004 §1.1)."""
    about = f"for query: '{text}'" if text else "in the registry"
    return NotFound("No matching conversations found", f"No conversations found {about}")


def _within(channel_number: int | None, query: ExtractQuery) -> Scope:
    return Scope(channel_number=channel_number, roles=query.roles, from_=query.from_, to=query.to)


def _ranking_place(cursor: str | None) -> dict[str, Any] | None:
    """The place in a ranking that was kept, if that is what the cursor names."""
    try:
        return decode_cursor(cursor, x=str, o=int) if cursor else None
    except InvalidRequest:
        return None  # it names a place in time, or nothing: who reads that says so


def _continued(tx: ReadTransaction, run: Run, place: dict[str, Any]) -> Extraction:
    result = get_result(tx, storable(place["x"]))
    if "turns" not in result.metadata or place["o"] < 0:
        raise InvalidRequest("The cursor is not valid.", "cursor: allowed: the next_cursor of the last answer")
    channel = get_channel(tx, result.channel)
    run.recorder.channel = channel.name
    turns = [(channel.number, turn) for turn in result.metadata["turns"]]
    run.recorder.explain(channel=channel.name, by=f"the ranking kept with {result.id}", candidates=len(turns))
    kept = KeptRanking(result.id, place["o"], turns[place["o"] :], frozenset(result.metadata["hits"]))
    return Extraction(channel, kept=kept)


def _explain(run: Run, findings: SearchResult, channel: ChannelRow | None) -> None:
    run.recorder.explain(channel=channel.name if channel else None, **explanation(findings))


def search(tx: ReadTransaction, run: Run, request: SearchRequest) -> SearchResult:
    """What the whole registry, or one channel of it, holds about some words."""
    query = request.query
    channel = get_channel(tx, request.channel) if request.channel else None
    scope = Scope(
        channel_number=channel.number if channel else None,
        source=query.source,
        project=query.project,
        tags=[query.tag] if query.tag else [],
        roles=query.roles,
        from_=query.from_,
        to=query.to,
    )
    wanted = read_search(query.text, now())
    findings = find(tx, run, wanted, narrow(scope, wanted))
    _explain(run, findings, channel)
    return findings


def daily_briefing(tx: ReadTransaction, run: Run, request: BriefingRequest) -> list[MessageDict]:
    """The messages of the day's conversations, channel by channel."""
    start = datetime.combine(request.query.date, time(), UTC)
    end = start + timedelta(days=1, milliseconds=-1)
    active = list_channels(tx, ChannelFilter(from_=start), Page(limit=1000, order="asc"))["items"]
    rows: list[MessageRow] = []
    for item in active:
        channel = get_channel(tx, item["channel"])
        rows += messages_of(tx, channel.number, limit=1000, from_=start, to=end)
    run.recorder.explain(channels=len(active), messages=len(rows), day=str(request.query.date))
    if not rows:
        raise NotFound("No conversations on that day", f"date: given {request.query.date}")
    return [message_dict(row) for row in rows]


def message_dict(row: MessageRow) -> MessageDict:
    """A stored message as the nodes pass it on."""
    return {
        "id": row.id,
        "number": row.number,
        "channel": row.channel,
        "channel_number": row.channel_number,
        "source": row.source,
        "seq": row.seq,
        "turn": row.turn,
        "role": row.role,
        "text": row.text,
        "timestamp": format_time(row.timestamp),
        "context": row.payload.get("context"),
    }


def delivered(message: MessageDict) -> MessageDict:
    """The message as it leaves the orchestrator (contract 2.2)."""
    context = {"context": message["context"]} if message["context"] else {}
    return {key: message[key] for key in ("id", "role", "text", "timestamp")} | context
