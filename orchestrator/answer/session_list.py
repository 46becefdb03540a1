"""List the sessions that a search found with their best matches, cut to the tokens of an answer."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.answer.delivery import fits
from orchestrator.answer.finding.elsewhere import About
from orchestrator.answer.finding.relevance import Found, Judged, outcome
from orchestrator.answer.fitting import as_many_as_fit, fitted
from orchestrator.requests.shapes import MATCHES, SessionsQuery
from orchestrator.state import Run
from registry.domain import format_time
from registry.search.retrieval import SearchResult
from registry.search.sessions import read_messages_around
from registry.storage.conversations.channels import channel_item, channels_by_number, tags_of
from registry.storage.database import ReadTransaction
from registry.text.ranking.snippets import passage, snippet
from registry.text.request.query import ParsedQuery

AROUND = 160  # characters of a message beside a match


@dataclass(frozen=True, slots=True)
class SessionsFound:
    """The result of a search for sessions.

    `best`: channels with their scores, best first, the first of them in the order of `extract`. `relaxed`: the part of
    the request that was given up ("words", "time"). `about`: the session of another time that has to do with the words,
    where a time was named. `latest`: without words, the latest channels in scope with their message counts, and
    `latest_total` how many there are. `relaxation`: what to give up next, because this is not sure enough.
    """

    found: Found
    best: Sequence[tuple[int, float]] = ()
    relaxed: str = ""
    about: About | None = None
    latest: Mapping[int, int] = field(default_factory=dict)
    latest_total: int = 0
    relaxation: str = ""


def sessions_shown(
    tx: ReadTransaction, run: Run, query: SessionsQuery, data: SessionsFound, tokens: int | None
) -> tuple[list[dict[str, Any]], int]:
    """Return the sessions cut to so many tokens, or complete, and how many there are."""
    found, total = _latest(tx, run, data) if data.latest else _best_sessions(tx, run, query, data)
    return (found if tokens is None else fitted(found, tokens)), total


def _latest(tx: ReadTransaction, run: Run, data: SessionsFound) -> tuple[list[dict[str, Any]], int]:
    run.recorder.explain(by="the latest activity in scope", sessions=data.latest_total, **outcome(data.found.verdicts))
    items = _session_items(tx, list(data.latest))
    shown = [
        {**items[number], "score": None, "match_count": count, "matches": []}
        for number, count in data.latest.items()
        if number in items
    ]
    return shown, data.latest_total


def _best_sessions(
    tx: ReadTransaction, run: Run, query: SessionsQuery, data: SessionsFound
) -> tuple[list[dict[str, Any]], int]:
    found, scores = data.found, data.best
    page = scores[query.offset : query.offset + query.limit]
    items = _session_items(tx, [number for number, _ in page])
    run.recorder.explain(
        sessions=len(scores),
        channels=[{"channel": items[n]["channel"], "score": round(score, 3)} for n, score in page if n in items],
        **outcome(found.verdicts),
    )
    # The first sessions show their best message even if that is no hit by itself.
    first = [number for number, _ in page[:MATCHES]]
    near = (one for one in found.verdicts if one.ranked.candidate.channel_id in first)
    by_channel = _by_channel(near, 1) | _by_channel(found.kept)
    best = {number: [one.ranked.candidate.seq for one in some[: query.matches]] for number, some in by_channel.items()}
    places = {number: best[number] for number, _ in page if best.get(number)}
    rows = read_messages_around(tx, places, query.context_window)
    shown = [
        {
            **items[number],
            "score": round(score, 3),
            "match_count": len(by_channel.get(number, ())),
            "matches": _matches(found, places[number], rows[number], query.context_window) if number in places else [],
        }
        for number, score in page
        if number in items
    ]
    return shown, len(scores)


def _by_channel(verdicts: Iterable[Judged], most: int | None = None) -> dict[int, list[Judged]]:
    """Return the messages of each channel, best first, `most` of each."""
    groups: dict[int, list[Judged]] = defaultdict(list)
    for judged in verdicts:
        groups[judged.ranked.candidate.channel_id].append(judged)
    return {number: some[:most] for number, some in groups.items()}


def _session_items(tx: ReadTransaction, numbers: Sequence[int]) -> dict[int, dict[str, Any]]:
    rows, tags = channels_by_number(tx, numbers), tags_of(tx, numbers)
    return {number: channel_item(row, tags[number]) for number, row in rows.items()}


def _matches(found: Found, places: Sequence[int], rows: Sequence[Any], window: int) -> list[dict[str, Any]]:
    """Return a channel's best messages, the first with those around it."""
    at = {row.seq: row for row in rows}
    best = [at[place] for place in places if place in at]
    around = [
        {**_line(row), "text": passage(row.text, _best_wording(found.result, row.number), AROUND)}
        for row in rows
        for one in best[:1]
        if 0 < abs(row.seq - one.seq) <= window
    ]
    return [
        {
            **_line(row),
            "id": row.id,
            "snippet": snippet(row.text, _best_wording(found.result, row.number)),
            "context": [] if nth else around,
        }
        for nth, row in enumerate(best)
    ]


def _line(row: Any) -> dict[str, Any]:
    line = {"role": row.role, "sequence": row.seq + 1, "timestamp": format_time(row.timestamp)}
    return line | ({"time": row.time} if row.time else {})


def pagination(total: int, limit: int, offset: int, shown: int) -> dict[str, Any]:
    """Return the position of a page; `next_offset` if fewer fit than the limit allows."""
    place = {"total": total, "limit": limit, "offset": offset, "has_more": offset + shown < total}
    return place | ({"next_offset": offset + shown} if place["has_more"] and shown < limit else {})


def within_client(run: Run, sessions: Sequence[Any]) -> list[Any]:
    """Return as many of the sessions as the client lets through."""
    return as_many_as_fit(sessions, lambda some: fits(run.room, {"sessions": some}))


def _best_wording(result: SearchResult, number: int) -> ParsedQuery:
    """Return the wording that a message holds most of."""
    found = result.candidates.get(number)
    held = found.term_bits if found else 0
    return max(result.wordings, key=lambda wording: result.wording_share(held, wording)).query
