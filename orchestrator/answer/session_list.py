"""List the sessions that a search found with their best matches, within a number of tokens."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.answer.delivery import fits
from orchestrator.answer.finding.elsewhere import OtherTimeMatch
from orchestrator.answer.finding.relevance import JudgedMessage, JudgedSearch, describe_verdicts
from orchestrator.answer.fitting import as_many_as_fit, fit_sessions
from orchestrator.requests.shapes import MAX_MATCHES, SessionsQuery
from orchestrator.state import Run
from registry.domain import format_time
from registry.search.retrieval import SearchResult
from registry.search.sessions import read_messages_around
from registry.storage.conversations.channels import channel_item, channels_by_number, tags_of
from registry.storage.conversations.messages import superseded_among
from registry.storage.database import ReadTransaction
from registry.text.ranking.snippets import passage, snippet
from registry.text.request.query import ParsedQuery

NEIGHBOUR_WIDTH = 160  # characters of a message next to a match


@dataclass(frozen=True, slots=True)
class SessionsFound:
    """The result of a search for sessions.

    `best`: (channel, score), best first, the first one as `extract` would choose. `relaxed`: the dropped part of the
    request ("words", "time"). `other_time`: if the request names a time, a matching session of another time. Without
    words: `latest` channels in scope with their message counts, and the total. `relaxation`: the part to drop next if
    the result is not sure enough.
    """

    found: JudgedSearch
    best: Sequence[tuple[int, float]] = ()
    relaxed: str = ""
    other_time: OtherTimeMatch | None = None
    latest: Mapping[int, int] = field(default_factory=dict)
    latest_total: int = 0
    relaxation: str = ""


def list_found_sessions(
    tx: ReadTransaction, run: Run, query: SessionsQuery, data: SessionsFound, tokens: int | None
) -> tuple[list[dict[str, Any]], int]:
    """Return the sessions, within `tokens` if given, and the total."""
    found, total = _latest_sessions(tx, run, data) if data.latest else _best_sessions(tx, run, query, data)
    return (found if tokens is None else fit_sessions(found, tokens)), total


def _latest_sessions(tx: ReadTransaction, run: Run, data: SessionsFound) -> tuple[list[dict[str, Any]], int]:
    run.recorder.explain(
        by="the latest activity in scope", sessions=data.latest_total, **describe_verdicts(data.found.verdicts)
    )
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
        **describe_verdicts(found.verdicts),
    )
    # The first sessions show their best message even if it is not a hit.
    first = [number for number, _ in page[:MAX_MATCHES]]
    of_first = (one for one in found.verdicts if one.ranked.candidate.channel_id in first)
    on_page = {number for number, _ in page}
    hits = [one for one in found.hits if one.ranked.candidate.channel_id in on_page]
    by_channel = _by_channel(of_first, 1) | _by_channel(_valid_first(tx, hits))
    best = {number: [one.ranked.candidate.seq for one in some[: query.matches]] for number, some in by_channel.items()}
    seqs = {number: best[number] for number, _ in page if best.get(number)}
    rows = read_messages_around(tx, seqs, query.context_window, query.context_window)
    shown = [
        {
            **items[number],
            "score": round(score, 3),
            "match_count": len(by_channel.get(number, ())),
            "matches": _matches(found, seqs[number], rows[number], query.context_window) if number in seqs else [],
        }
        for number, score in page
        if number in items
    ]
    return shown, len(scores)


def _valid_first(tx: ReadTransaction, hits: Sequence[JudgedMessage]) -> list[JudgedMessage]:
    """Put messages that were undone or replaced in their client behind the others."""
    superseded = superseded_among(tx, [one.ranked.candidate.number for one in hits])
    return sorted(hits, key=lambda one: one.ranked.candidate.number in superseded)


def _by_channel(verdicts: Iterable[JudgedMessage], most: int | None = None) -> dict[int, list[JudgedMessage]]:
    """Return up to `most` verdicts of each channel, best first."""
    groups: dict[int, list[JudgedMessage]] = defaultdict(list)
    for judged in verdicts:
        groups[judged.ranked.candidate.channel_id].append(judged)
    return {number: some[:most] for number, some in groups.items()}


def _session_items(tx: ReadTransaction, numbers: Sequence[int]) -> dict[int, dict[str, Any]]:
    rows, tags = channels_by_number(tx, numbers), tags_of(tx, numbers)
    return {number: channel_item(row, tags[number]) for number, row in rows.items()}


def _matches(found: JudgedSearch, seqs: Sequence[int], rows: Sequence[Any], window: int) -> list[dict[str, Any]]:
    """Return a channel's best messages; the first one with its neighbours."""
    at = {row.seq: row for row in rows}
    best = [at[seq] for seq in seqs if seq in at]
    around = [
        {**_line(row), "text": passage(row.text, _best_wording(found.result, row.number), NEIGHBOUR_WIDTH)}
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
    return line | {name: value for name in ("time", "superseded") if (value := getattr(row, name))}


def pagination(total: int, limit: int, offset: int, shown: int) -> dict[str, Any]:
    """Return the pagination; with `next_offset` if fewer sessions than the limit fit."""
    page = {"total": total, "limit": limit, "offset": offset, "has_more": offset + shown < total}
    return page | ({"next_offset": offset + shown} if page["has_more"] and shown < limit else {})


def fit_client(run: Run, sessions: Sequence[Any]) -> list[Any]:
    """Return as many sessions as fit the client's limit."""
    return as_many_as_fit(sessions, lambda some: fits(run.limit, {"sessions": some}))


def _best_wording(result: SearchResult, number: int) -> ParsedQuery:
    """Return the wording of which a message contains the largest share."""
    found = result.candidates.get(number)
    term_bits = found.term_bits if found else 0
    return max(result.wordings, key=lambda wording: result.wording_share(term_bits, wording)).query
