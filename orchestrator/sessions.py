"""Session search: sessions ranked by what was said in them, with the passages that show it (contract 2.3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta, timezone
from typing import Any

from orchestrator.finding import find
from orchestrator.relevance import Judged, explanation, judge, outcome, session_scores
from orchestrator.requests import SessionsQuery, SessionsRequest
from orchestrator.state import Run
from registry.domain import format_time, now, preview_of
from registry.errors import NotFound
from registry.search.retrieval import SearchResult
from registry.search.scope import Scope, narrow
from registry.search.sessions import latest_sessions, surroundings
from registry.storage.channels import channel_item, channels_by_number, tags_of
from registry.storage.database import ReadTransaction
from registry.storage.references import resolve_session
from registry.text.snippets import snippet
from registry.text.syntax import Search, read_search

MATCHES = 3
"""How many matches of a session are shown."""


@dataclass(frozen=True, slots=True)
class SessionFindings:
    """What was asked and found; without words, the latest sessions in scope (number, messages) and their total."""

    search: Search
    findings: SearchResult
    ignored: str = ""
    latest: Sequence[tuple[int, int]] = ()
    latest_total: int = 0


def find_sessions(tx: ReadTransaction, run: Run, request: SessionsRequest) -> SessionFindings:
    """Read the search, look it up; where nothing is found in the time its words name, look at any time."""
    query = request.query
    search = read_search(query.text, now().astimezone(timezone(timedelta(minutes=query.utc_offset_minutes))))
    within = resolve_session(tx, request.channel) if request.channel else None
    run.recorder.channel = within.name if within else None
    number = within.number if within else None
    found = _find(tx, run, query, search, number)
    if search.when_words and not (found.latest or _relevant(found.findings)):
        found = replace(_find(tx, run, query, search.at_any_time(), number), ignored=search.when_words)
    run.recorder.explain(**explanation(found.findings), understood=understood(found))
    return found


def _find(
    tx: ReadTransaction, run: Run, query: SessionsQuery, search: Search, channel_number: int | None
) -> SessionFindings:
    scope = replace(_scope(query, search, _name_of(tx, query.exclude_session)), channel_number=channel_number)
    findings = find(tx, run, search, scope)
    if findings.terms or findings.query.words or search.excluded:
        return SessionFindings(search, findings)
    return SessionFindings(search, findings, "", *latest_sessions(tx, scope, query.limit, query.offset))


def _name_of(tx: ReadTransaction, session_id: str | None) -> str | None:
    """The channel of a session to leave out; one that was never stored leaves nothing out."""
    try:
        return resolve_session(tx, session_id).name if session_id else None
    except NotFound:
        return None


def _scope(query: SessionsQuery, search: Search, excluded: str | None) -> Scope:
    """Both the request's filters and those written into the search hold."""
    given = Scope(
        source=query.source,
        project=query.project,
        tags=[query.tag] if query.tag else [],
        roles=query.roles,
        from_=query.from_,
        to=query.to,
        exclude_channel=excluded,
    )
    return narrow(given, search)


def _relevant(findings: SearchResult) -> list[Judged]:
    """Every message that answers; a session search shows weaker ones too, below the best."""
    return [judged for judged in judge(findings, least_share=0.0) if judged.reason is None]


async def filter_sessions(run: Run, request: SessionsRequest, data: SessionFindings) -> dict[str, Any]:
    """A page of sessions, best first, each with its best matches."""
    return await run.registry.read(lambda tx: _page(tx, run, request.query, data))


def _page(tx: ReadTransaction, run: Run, query: SessionsQuery, data: SessionFindings) -> dict[str, Any]:
    if data.latest:
        run.recorder.explain(by="the latest activity in scope", sessions=data.latest_total)
        counts = dict(data.latest)
        items = _session_items(tx, list(counts))
        shown = [{**items[n], "score": None, "match_count": counts[n], "matches": []} for n in counts if n in items]
        return _answer(query, data, shown, data.latest_total)
    verdicts = judge(data.findings, least_share=0.0)
    kept = [judged for judged in verdicts if judged.reason is None]
    scores = session_scores(kept, data.findings)
    page = scores[query.offset : query.offset + query.limit]
    items = _session_items(tx, [number for number, _ in page])
    run.recorder.explain(
        sessions=len(scores),
        channels=[{"channel": items[n]["channel"], "score": round(score, 3)} for n, score in page if n in items],
        **outcome(verdicts),
    )
    by_channel = _by_channel(kept)
    shown = [
        {
            **items[number],
            "score": round(score, 3),
            "match_count": len(by_channel[number]),
            "matches": _matches(tx, number, by_channel[number][:MATCHES], query, data),
        }
        for number, score in page
        if number in items
    ]
    return _answer(query, data, shown, len(scores))


def _answer(query: SessionsQuery, data: SessionFindings, sessions: list[dict[str, Any]], total: int) -> dict[str, Any]:
    end = query.offset + len(sessions)
    pagination = {"total": total, "limit": query.limit, "offset": query.offset, "has_more": end < total}
    return {"sessions": sessions, "pagination": pagination, "understood": understood(data)}


def understood(data: SessionFindings) -> dict[str, Any]:
    """How the search was read, for a reader who wonders; what is empty is left out."""
    search = data.search
    read = {
        "words": [word.text for word in data.findings.query.words],
        "phrases": list(search.phrases),
        "prefixes": list(search.prefixes),
        "excluded": list(search.excluded),
        "from": format_time(search.from_) if search.from_ else None,
        "to": format_time(search.to) if search.to else None,
        "typos": dict(data.findings.typos),
        "ignored_time": data.ignored,
    }
    return {name: value for name, value in read.items() if value}


def _by_channel(kept: Iterable[Judged]) -> dict[int, list[Judged]]:
    groups: dict[int, list[Judged]] = defaultdict(list)
    for judged in kept:
        groups[judged.ranked.candidate.channel_id].append(judged)
    return groups


def _session_items(tx: ReadTransaction, numbers: Sequence[int]) -> dict[int, dict[str, Any]]:
    rows, tags = channels_by_number(tx, numbers), tags_of(tx, numbers)
    return {number: channel_item(row, tags[number]) for number, row in rows.items()}


def _matches(
    tx: ReadTransaction, number: int, best: Sequence[Judged], query: SessionsQuery, data: SessionFindings
) -> list[dict[str, Any]]:
    places = [one.ranked.candidate.seq for one in best]
    rows = surroundings(tx, number, places, query.context_window) if places else []
    at = {row.seq: row for row in rows}
    phrases = [*data.search.phrases, *data.search.prefixes]
    return [
        {
            **_line(at[place]),
            "id": at[place].id,
            "snippet": snippet(at[place].text, data.findings.query, phrases),
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
