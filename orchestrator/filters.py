"""What `filter` keeps of what was read, for each operation that filters. The verdicts are `relevance`'s."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator.queries import Extraction, candidate_item, delivered, message_dict, nothing_found
from orchestrator.relevance import Judged, MessageDict, Turn, arrange, judge, last_within, outcome, turns_in
from orchestrator.requests import ExtractRequest, SearchRequest
from orchestrator.state import Run
from registry.domain import format_time, new_id, parse_time
from registry.search.retrieval import SearchResult
from registry.storage.messages import by_numbers, turns_of
from registry.storage.paging import cursor_of, decode_cursor, encode_cursor
from registry.text.matching import matched_words


async def filter_extraction(run: Run, request: ExtractRequest, data: Extraction) -> dict[str, Any]:
    """The messages that answer, whole turns, in order, within the limits; NotFound if none does."""
    if data.kept:
        turns, hits = data.kept.turns, data.kept.hits
        messages = await run.registry.read(lambda tx: [message_dict(row) for row in turns_of(tx, turns)])
    elif data.findings is None:
        return _last_messages(run, request, data)
    else:
        kept = _kept(run, request, data.findings)
        could_be_shown = turns_in(kept)[: request.query.limit]
        messages = await run.registry.read(lambda tx: [message_dict(row) for row in turns_of(tx, could_be_shown)])
        turns, hits = turns_in(kept), frozenset(judged.ranked.candidate.number for judged in kept)
    limits = {"limit": request.query.limit, "max_tokens": request.query.max_tokens}
    shown, taken = arrange(turns, messages, hits, **limits)  # type: ignore[arg-type]
    if not shown:
        raise nothing_found(request.query.text)
    run.recorder.explain(turns=len(turns), turns_within_limits=taken, messages=len(shown))
    result = _result(data, shown)
    if taken < len(turns):
        _keep_ranking(result, data, turns, hits, taken)
    return result


def _kept(run: Run, request: ExtractRequest, findings: SearchResult) -> list[Judged]:
    verdicts = judge(findings)
    kept = [judged for judged in verdicts if judged.reason is None]
    run.recorder.explain(**outcome(verdicts))
    if not kept:
        raise nothing_found(request.query.text)
    return kept


def _last_messages(run: Run, request: ExtractRequest, data: Extraction) -> dict[str, Any]:
    shown = last_within(data.messages, request.query.max_tokens)
    if not shown:
        raise nothing_found(None)
    run.recorder.explain(kept=len(shown), dropped=len(data.messages) - len(shown), reason="max_tokens")
    result = _result(data, shown)
    if data.has_older or len(shown) < len(data.messages):
        result["metadata"]["next_cursor"] = cursor_of(parse_time(shown[0]["timestamp"]), shown[0]["number"])
    return result


def _result(data: Extraction, shown: list[MessageDict]) -> dict[str, Any]:
    return {
        "extract_id": new_id("ext"),
        "channel": data.channel.name,
        "candidates": [candidate_item(row) for row in data.candidates],
        "messages": shown,
        "metadata": {
            "total_count": data.channel.message_count,
            "filtered_count": len(shown),
            "last_activity": format_time(data.channel.updated_at),
        },
    }


def _keep_ranking(
    result: dict[str, Any], data: Extraction, turns: Sequence[Turn], hits: frozenset[int], taken: int
) -> None:
    """The first page's record keeps the whole ranking; later pages go on where the one before ended."""
    if data.kept:
        place = {"x": data.kept.result_id, "o": data.kept.offset + taken}
    else:
        place = {"x": result["extract_id"], "o": taken}
        result["ranking"] = {"turns": [turn for _, turn in turns], "hits": sorted(hits)}
    result["metadata"]["next_cursor"] = encode_cursor(place)


async def filter_search(run: Run, request: SearchRequest, data: SearchResult) -> dict[str, Any]:
    """The relevant messages, best first, from where the cursor says."""
    verdicts = judge(data)
    kept = [judged for judged in verdicts if judged.reason is None]
    run.recorder.explain(**outcome(verdicts))
    start = max(decode_cursor(request.query.cursor, o=int)["o"], 0) if request.query.cursor else 0
    page = kept[start : start + request.query.limit]
    numbers = [judged.ranked.candidate.number for judged in page]
    rows = {row.number: row for row in await run.registry.read(lambda tx: by_numbers(tx, numbers))}
    messages = [
        {
            **delivered(message_dict(rows[judged.ranked.candidate.number])),
            "channel": rows[judged.ranked.candidate.number].channel,
            "source": rows[judged.ranked.candidate.number].source,
            "score": round(judged.score, 3),
            "words": list(matched_words(data.query, rows[judged.ranked.candidate.number].text)),
        }
        for judged in page
        if judged.ranked.candidate.number in rows
    ]
    end = start + len(page)
    metadata: dict[str, Any] = {"total_count": len(kept), "filtered_count": len(messages)}
    if end < len(kept):
        metadata["next_cursor"] = encode_cursor({"o": end})
    return {"messages": messages, "metadata": metadata}
