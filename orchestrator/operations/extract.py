"""Extract: of one conversation, the part that answers a request, and a record of what was delivered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.delivery import (
    FirstSentences,
    MessageDict,
    Turn,
    arrange,
    cut_text,
    delivered,
    digest,
    last_within,
    message_dict,
    tokens_in,
)
from orchestrator.operations.search import find
from orchestrator.relevance import Judged, best_channels, explanation, judge, outcome, turns_in
from orchestrator.requests import ExtractQuery, ExtractRequest
from orchestrator.state import Run, State, Steps
from registry.domain import format_time, new_id, now, parse_time, storable
from registry.errors import InvalidRequest, NotFound
from registry.search.scope import Scope
from registry.storage.channels import ChannelRow, channels_by_number, get_channel, recent_channels
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.extract_results import get_result, save_result
from registry.storage.messages import messages_of, turns_of
from registry.storage.paging import cursor_of, decode_cursor, encode_cursor, place_of
from registry.text.query import parse_query

OTHER_CHANNELS = 5
"""How many further channels are offered where one had to be chosen."""

_summarizer = FirstSentences()


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was read: the channel, and either judged messages, a ranking kept from before, or its last messages."""

    channel: ChannelRow
    candidates: list[ChannelRow] = field(default_factory=list)
    verdicts: list[Judged] | None = None
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


def read(tx: ReadTransaction, run: Run, request: ExtractRequest) -> Extraction:
    """The channel asked for, or the one that fits the words best, and what may answer in it."""
    query = request.query
    ranking = _ranking_place(query.cursor)
    if ranking:
        return _continued(tx, run, ranking)
    words = query.text if query.text and parse_query(query.text).words else None
    channel, others = _channel_of(tx, run, request, words)
    run.recorder.channel = channel.name
    if words and not query.cursor:
        findings = find(tx, run, words, _within(channel.number, query))
        run.recorder.explain(channel=channel.name, **explanation(findings))
        verdicts = judge(findings)
        if request.channel or any(judged.reason is None for judged in verdicts):
            return Extraction(channel, others, verdicts)
        run.recorder.explain(found_by="its title, nickname or project: its messages say nothing of the words")
    return _last_of(tx, run, query, channel, others)


def _channel_of(
    tx: ReadTransaction, run: Run, request: ExtractRequest, words: str | None
) -> tuple[ChannelRow, list[ChannelRow]]:
    """The channel to read, and the others it might have been."""
    if request.channel is not None:
        return get_channel(tx, request.channel), []
    found = _best_channels(tx, run, request.query, words) if words else recent_channels(tx, OTHER_CHANNELS + 1)
    if not found:
        raise _nothing_found(request.query.text)
    return found[0], found[1:]


def _best_channels(tx: ReadTransaction, run: Run, query: ExtractQuery, words: str) -> list[ChannelRow]:
    """Those of the whole registry that fit the words, best first."""
    findings = find(tx, run, words, _within(None, query))
    scores = best_channels(findings)[: OTHER_CHANNELS + 1]
    known = channels_by_number(tx, [number for number, _ in scores])
    run.recorder.explain(
        channel=None,
        **explanation(findings),
        channels=[
            {"channel": known[number].name, "score": round(score, 3)} for number, score in scores if number in known
        ],
        registry_candidates=findings.candidates,
    )
    return [known[number] for number, _ in scores if number in known]


def _last_of(
    tx: ReadTransaction, run: Run, query: ExtractQuery, channel: ChannelRow, others: list[ChannelRow]
) -> Extraction:
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


def _nothing_found(text: str | None) -> NotFound:
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


async def keep(run: Run, request: ExtractRequest, data: Extraction) -> dict[str, Any]:
    """The messages that answer, whole turns, in order, within the limits; NotFound if none does."""
    if data.kept:
        turns, hits, wanted = data.kept.turns, data.kept.hits, data.kept.turns
    elif data.verdicts is None:
        return _last_messages(run, request, data)
    else:
        kept = _kept(run, request, data.verdicts)
        turns, hits = turns_in(kept), frozenset(judged.ranked.candidate.number for judged in kept)
        wanted = turns[: request.query.limit]
    messages = await run.registry.read(lambda tx: [message_dict(row) for row in turns_of(tx, wanted)])
    shown, taken = arrange(turns, messages, hits, limit=request.query.limit, max_tokens=request.query.max_tokens)
    if not shown:
        raise _nothing_found(request.query.text)
    run.recorder.explain(turns=len(turns), turns_within_limits=taken, messages=len(shown))
    result = _result(data, shown)
    if taken < len(turns):
        _keep_ranking(result, data, turns, hits, taken)
    return result


def _kept(run: Run, request: ExtractRequest, verdicts: list[Judged]) -> list[Judged]:
    kept = [judged for judged in verdicts if judged.reason is None]
    run.recorder.explain(**outcome(verdicts))
    if not kept:
        raise _nothing_found(request.query.text)
    return kept


def _last_messages(run: Run, request: ExtractRequest, data: Extraction) -> dict[str, Any]:
    shown = last_within(data.messages, request.query.max_tokens)
    if not shown:
        raise _nothing_found(None)
    run.recorder.explain(kept=len(shown), dropped=len(data.messages) - len(shown), reason="max_tokens")
    result = _result(data, shown)
    if data.has_older or len(shown) < len(data.messages):
        result["metadata"]["next_cursor"] = cursor_of(parse_time(shown[0]["timestamp"]), shown[0]["number"])
    return result


def _result(data: Extraction, shown: list[MessageDict]) -> dict[str, Any]:
    return {
        "extract_id": new_id("ext"),
        "channel": data.channel.name,
        "candidates": [_candidate_item(row) for row in data.candidates],
        "messages": shown,
        "metadata": {
            "total_count": data.channel.message_count,
            "filtered_count": len(shown),
            "last_activity": format_time(data.channel.updated_at),
        },
    }


def _candidate_item(row: ChannelRow) -> dict[str, Any]:
    """A channel the user may have meant instead."""
    return {
        "channel": row.name,
        "title": row.title or row.first_message_preview or row.name,
        "project": row.project_name or "General",
        "last_activity": format_time(row.updated_at),
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


def shorten(run: Run, request: ExtractRequest, state: State) -> State:
    """Each message cut to its beginning, and for a summary the first sentences of all."""
    result = {**state["result"], "messages": digest(state["result"]["messages"])}
    if request.query.mode == "summary":
        result["summary"] = cut_text(_summarizer.summarize(result["messages"]), request.query.max_tokens)
    run.recorder.explain(by=_summarizer.name, messages=len(result["messages"]))
    return {"result": result}


def write(tx: WriteTransaction, run: Run, request: ExtractRequest, state: State) -> dict[str, Any]:
    """Keep what was delivered, to whom: ids, never texts."""
    found: dict[str, Any] = state["result"]
    ids = [message["id"] for message in found["messages"]]
    about = {
        "execution_id": run.recorder.id,
        "source": request.source,
        "client": run.recorder.client,
        "query": request.query.model_dump(mode="json", by_alias=True, exclude_none=True),
        **found.pop("ranking", {}),
    }
    result_id = found.pop("extract_id")
    save_result(
        tx,
        result_id,
        record_type="extract_result",
        channel=found["channel"],
        result_type=request.query.mode,
        items=ids,
        metadata=about,
        timestamp=now(),
    )
    # A summary stands for its messages; their ids are kept with the result.
    shown = [] if "summary" in found else [delivered(message) for message in found["messages"]]
    texts = [str(found["summary"])] if "summary" in found else [message["text"] for message in shown]
    run.recorder.explain(extract_result=result_id, delivered=ids, tokens=sum(map(tokens_in, texts)))
    return {**found, "messages": shown}


def _subject(request: ExtractRequest) -> str:
    """None where it goes on with an earlier answer."""
    return "" if request.query.cursor else request.query.text or ""


EXTRACT = Steps[ExtractRequest, Extraction](query=read, keep=keep, shorten=shorten, write=write, subject=_subject)
