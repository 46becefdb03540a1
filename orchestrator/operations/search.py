"""Search: messages by what they say, and sessions by what was said in them. The one road from words to messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from orchestrator.delivery import delivered, message_dict
from orchestrator.relevance import Judged, explanation, judge, outcome, session_scores
from orchestrator.requests import SearchQuery, SearchRequest, SessionsQuery, SessionsRequest
from orchestrator.state import Run, Steps
from registry.domain import format_time, now, preview_of
from registry.errors import NotFound
from registry.search.retrieval import SearchResult, find_messages
from registry.search.scope import Scope, narrow
from registry.search.sessions import latest_sessions, surroundings
from registry.storage.channels import channel_item, channels_by_number, get_channel, tags_of
from registry.storage.database import ReadTransaction
from registry.storage.messages import MessageFilter, by_numbers, list_messages
from registry.storage.paging import Order, Page, decode_cursor, encode_cursor
from registry.storage.references import resolve_session
from registry.text.matching import matched_words
from registry.text.rank_fusion import SimilarMessages
from registry.text.snippets import snippet
from registry.text.syntax import Search, read_search

MATCHES = 3
"""How many matches of a session are shown."""


def find(tx: ReadTransaction, run: Run, wanted: str | Search, scope: Scope) -> SearchResult:
    """The messages in scope that have to do with the words, or are close to them in meaning.

    Words as they were typed may hold phrases, exclusions and fields; in a request to an AI time words narrow nothing.
    """
    if isinstance(wanted, str):
        wanted = read_search(wanted, now()).at_any_time()
        scope = narrow(scope, wanted)
    findings = find_messages(tx, wanted, scope, run.search_budget)
    if run.meant is None:
        return findings
    if run.meant.model is None:
        return replace(findings, similar=SimilarMessages(note=run.meant.note))
    from registry.search.meaning import with_meaning  # numpy, which is there only for who asked for meaning

    return with_meaning(tx, findings, wanted, scope, run.meant.model, run.meant.vector)


def read_in_zone(text: str, utc_offset_minutes: int) -> Search:
    """The search as its writer means it, whose days may not be ours."""
    return read_search(text, now().astimezone(timezone(timedelta(minutes=utc_offset_minutes))))


@dataclass(frozen=True, slots=True)
class Found:
    """What a search was read as, what it found, and the verdict on each message."""

    search: Search
    findings: SearchResult
    verdicts: Sequence[Judged]

    @property
    def kept(self) -> list[Judged]:
        """The messages that answer."""
        return [judged for judged in self.verdicts if judged.reason is None]


def find_in_registry(tx: ReadTransaction, run: Run, request: SearchRequest) -> Found:
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
    run.recorder.explain(channel=channel.name if channel else None, **explanation(findings))
    # A list by time shows weaker ones too: nobody there expects the best.
    return Found(wanted, findings, judge(findings, least_share=0.0) if query.order else judge(findings))


async def keep_messages(run: Run, request: SearchRequest, data: Found) -> dict[str, Any]:
    """A page of the relevant messages, best first or by time."""
    run.recorder.explain(**outcome(data.verdicts))
    order = request.query.order
    shown = await run.registry.read(
        lambda tx: _by_time(tx, request.query, data, order) if order else _best(tx, request.query, data)
    )
    return {**shown, "understood": understood(data.search, data.findings)}


def _best(tx: ReadTransaction, query: SearchQuery, data: Found) -> dict[str, Any]:
    start = max(decode_cursor(query.cursor, o=int)["o"], 0) if query.cursor else 0
    page = data.kept[start : start + query.limit]
    rows = {row.number: row for row in by_numbers(tx, [judged.ranked.candidate.number for judged in page])}
    messages = [
        {
            **delivered(message_dict(row)),
            "channel": row.channel,
            "source": row.source,
            "score": round(judged.score, 3),
            "words": list(matched_words(data.findings.query, row.text)),
        }
        for judged in page
        if (row := rows.get(judged.ranked.candidate.number))
    ]
    end = start + len(page)
    metadata: dict[str, Any] = {"total_count": len(data.kept), "filtered_count": len(messages)}
    if end < len(data.kept):
        metadata["next_cursor"] = encode_cursor({"o": end})
    return {"messages": messages, "metadata": metadata}


def _by_time(tx: ReadTransaction, query: SearchQuery, data: Found, order: Order) -> dict[str, Any]:
    numbers = [judged.ranked.candidate.number for judged in data.kept]
    page = list_messages(tx, MessageFilter(numbers=numbers), Page(query.limit, query.cursor, order))
    metadata = {"total_count": page["total"], "filtered_count": len(page["items"])}
    if page["next_cursor"]:
        metadata["next_cursor"] = page["next_cursor"]
    return {"messages": page["items"], "metadata": metadata}


@dataclass(frozen=True, slots=True)
class SessionsFound:
    """A search for sessions; without words, the latest ones in scope (number, messages) and how many there are."""

    found: Found
    ignored: str = ""
    """Words for a time in which nothing was found, so that it was searched at any time."""
    latest: Mapping[int, int] = field(default_factory=dict)
    latest_total: int = 0


def find_sessions(tx: ReadTransaction, run: Run, request: SessionsRequest) -> SessionsFound:
    """Read the search, look it up; where nothing is found in the time its words name, look at any time."""
    query = request.query
    search = read_in_zone(query.text, query.utc_offset_minutes)
    inside = resolve_session(tx, request.channel) if request.channel else None
    run.recorder.channel = inside.name if inside else None
    excluded = _name_of(tx, query.exclude_session)
    given = Scope(
        channel_number=inside.number if inside else None,
        source=query.source,
        project=query.project,
        tags=[query.tag] if query.tag else [],
        roles=query.roles,
        from_=query.from_,
        to=query.to,
        exclude_channel=excluded,
    )
    data = _look_up(tx, run, query, search, given)
    if search.when_words and not (data.latest or data.found.kept):
        data = replace(_look_up(tx, run, query, search.at_any_time(), given), ignored=search.when_words)
    run.recorder.explain(**explanation(data.found.findings), understood=_understood(data))
    return data


def _look_up(tx: ReadTransaction, run: Run, query: SessionsQuery, search: Search, given: Scope) -> SessionsFound:
    """Both the request's filters and those written into the search hold."""
    scope = narrow(given, search)
    findings = find(tx, run, search, scope)
    if findings.terms or findings.query.words or search.excluded:
        # A session search shows weaker messages too, below the best.
        return SessionsFound(Found(search, findings, judge(findings, least_share=0.0)))
    latest, total = latest_sessions(tx, scope, query.limit, query.offset)
    return SessionsFound(Found(search, findings, []), "", dict(latest), total)


def _name_of(tx: ReadTransaction, session_id: str | None) -> str | None:
    """The channel of a session to leave out; one that was never stored leaves nothing out."""
    try:
        return resolve_session(tx, session_id).name if session_id else None
    except NotFound:
        return None


async def keep_sessions(run: Run, request: SessionsRequest, data: SessionsFound) -> dict[str, Any]:
    """A page of sessions, best first, each with its best matches."""
    shown, total = await run.registry.read(
        lambda tx: _latest(tx, run, data) if data.latest else _best_sessions(tx, run, request.query, data.found)
    )
    place = pagination(total, request.query.limit, request.query.offset, len(shown))
    return {"sessions": shown, "pagination": place, "understood": _understood(data)}


def _latest(tx: ReadTransaction, run: Run, data: SessionsFound) -> tuple[list[dict[str, Any]], int]:
    run.recorder.explain(by="the latest activity in scope", sessions=data.latest_total)
    items = _session_items(tx, list(data.latest))
    return [
        {**items[number], "score": None, "match_count": count, "matches": []}
        for number, count in data.latest.items()
        if number in items
    ], data.latest_total


def _best_sessions(
    tx: ReadTransaction, run: Run, query: SessionsQuery, found: Found
) -> tuple[list[dict[str, Any]], int]:
    scores = session_scores(found.kept, found.findings)
    page = scores[query.offset : query.offset + query.limit]
    items = _session_items(tx, [number for number, _ in page])
    run.recorder.explain(
        sessions=len(scores),
        channels=[{"channel": items[n]["channel"], "score": round(score, 3)} for n, score in page if n in items],
        **outcome(found.verdicts),
    )
    by_channel = _by_channel(found.kept)
    matches = _matches(tx, {number: by_channel[number][:MATCHES] for number, _ in page}, query, found)
    return [
        {
            **items[number],
            "score": round(score, 3),
            "match_count": len(by_channel[number]),
            "matches": matches.get(number, []),
        }
        for number, score in page
        if number in items
    ], len(scores)


def _by_channel(kept: Iterable[Judged]) -> dict[int, list[Judged]]:
    groups: dict[int, list[Judged]] = defaultdict(list)
    for judged in kept:
        groups[judged.ranked.candidate.channel_id].append(judged)
    return groups


def _session_items(tx: ReadTransaction, numbers: Sequence[int]) -> dict[int, dict[str, Any]]:
    rows, tags = channels_by_number(tx, numbers), tags_of(tx, numbers)
    return {number: channel_item(row, tags[number]) for number, row in rows.items()}


def _matches(
    tx: ReadTransaction, best: Mapping[int, Sequence[Judged]], query: SessionsQuery, found: Found
) -> dict[int, list[dict[str, Any]]]:
    """Of each channel its best messages, each with the messages around it."""
    places = {number: [one.ranked.candidate.seq for one in judged] for number, judged in best.items() if judged}
    rows = surroundings(tx, places, query.context_window)
    return {number: _matches_at(places[number], rows[number], query, found) for number in places}


def _matches_at(places: Sequence[int], rows: Sequence[Any], query: SessionsQuery, found: Found) -> list[dict[str, Any]]:
    at = {row.seq: row for row in rows}
    phrases = [*found.search.phrases, *found.search.prefixes]
    return [
        {
            **_line(at[place]),
            "id": at[place].id,
            "snippet": snippet(at[place].text, found.findings.query, phrases),
            "context": [
                {**_line(row), "text": preview_of(row.text)}
                for row in rows
                if row.seq != place and abs(row.seq - place) <= query.context_window
            ],
        }
        for place in places
        if place in at
    ]


def _line(row: Any) -> dict[str, Any]:
    return {"role": row.role, "sequence": row.seq + 1, "timestamp": format_time(row.timestamp)}


def pagination(total: int, limit: int, offset: int, shown: int) -> dict[str, Any]:
    """Where a part stands in the whole."""
    return {"total": total, "limit": limit, "offset": offset, "has_more": offset + shown < total}


def understood(search: Search, findings: SearchResult, ignored: str = "") -> dict[str, Any]:
    """How a search was read, for a reader who wonders; what is empty is left out."""
    read = {
        "words": [word.text for word in findings.query.words],
        "phrases": list(search.phrases),
        "prefixes": list(search.prefixes),
        "excluded": list(search.excluded),
        "from": _time(search.from_),
        "to": _time(search.to),
        "typos": dict(findings.typos),
        "ignored_time": ignored,
    }
    return {name: value for name, value in read.items() if value}


def _time(given: datetime | None) -> str | None:
    return format_time(given) if given else None


def _understood(data: SessionsFound) -> dict[str, Any]:
    return understood(data.found.search, data.found.findings, data.ignored)


def _subject(request: SearchRequest) -> str:
    return request.query.text


def _subject_of_sessions(request: SessionsRequest) -> str:
    search = read_search(request.query.text, now())
    return " ".join([search.words, *search.phrases])


SEARCH = Steps[SearchRequest, Found](query=find_in_registry, keep=keep_messages, subject=_subject)
SESSIONS = Steps[SessionsRequest, SessionsFound](query=find_sessions, keep=keep_sessions, subject=_subject_of_sessions)
