"""Extract: of one conversation, the part that answers a request, and a record of what was delivered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.answer.reversals import Said, taken_back
from orchestrator.answer.selection import Budget, MessageDict, Selection, select, whole, with_gaps
from orchestrator.answer.size import DEFAULT_TOKENS, length_for, room_for, tokens_in
from orchestrator.answer.summary import SHORT_TOKENS, WRITER, digest_of, read_for, summary_of
from orchestrator.answer.where_it_stands import where_it_stands
from orchestrator.delivery import Turn, cut_text, delivered, message_dict
from orchestrator.operations.search import ask, find, understood, without_the_asking_chat
from orchestrator.relevance import Judged, best_channels, explanation, judge, outcome, turns_in
from orchestrator.requests import ExtractQuery, ExtractRequest
from orchestrator.state import Run, State, Steps
from orchestrator.writing import SUMMARY, transcript
from registry.domain import format_time, new_id, now, parse_time, preview_of, storable
from registry.errors import InvalidRequest, NotFound
from registry.search.candidates import CANDIDATES
from registry.search.retrieval import SearchResult
from registry.search.scope import Scope
from registry.search.sessions import latest_sessions, nearest_times
from registry.storage.channels import ChannelRow, channels_by_number, get_channel, recent_channels
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.extract_results import get_result, save_result
from registry.storage.messages import by_numbers, messages_of, seqs_of, turns_of
from registry.storage.paging import cursor_of, decode_cursor, encode_cursor, place_of
from registry.storage.references import existing_channel
from registry.text.confidence import Confidence, confidence_of
from registry.text.matching import matching_tokens
from registry.text.snippets import snippet
from registry.text.understanding import Understood

OTHER_CHANNELS = 5
"""How many further channels are offered where one had to be chosen."""
CLOSE = 0.85
"""A channel that scores so much of the best one may as well be meant: its best passages are given, too."""
PASSAGES_OF, LINES_OF, OTHER_TOKENS = 2, 2, 150
"""So many other channels give passages, so many each, of so many tokens."""
EVIDENCE = 160
"""Characters of the line that speaks for a candidate."""
LEAST_GUESS = 0.15
"""Where no word of the request stands in a channel, parts of words that cover so much of it are a guess."""
GUESS_TOKENS = 800
"""A guess is short."""
END = 80
"""So many of a channel's last messages say where it stands."""
WHOLE = 400
"""A conversation of more messages is not tried whole."""
ENVELOPE = 400
"""Characters that the envelope and the record of the answer take."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was read of one channel: `ranked` turns best first, and its last turns in order.

    `seqs` are the places of all its messages of the roles asked for. Where nothing was asked by words, `ranked` is
    empty and `has_older` says whether there is more before `end`.
    """

    channel: ChannelRow
    read: Understood
    ranked: list[list[MessageDict]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    hits: frozenset[int] = frozenset()
    end: list[list[MessageDict]] = field(default_factory=list)
    recent: list[MessageDict] = field(default_factory=list)
    seqs: Sequence[int] = ()
    result: SearchResult | None = None
    verdicts: list[Judged] = field(default_factory=list)
    confidence: Confidence | None = None
    candidates: list[dict[str, Any]] = field(default_factory=list)
    others: list[dict[str, Any]] = field(default_factory=list)
    relaxed: bool = False
    has_older: bool = False
    kept: KeptRanking | None = None


@dataclass(frozen=True, slots=True)
class KeptRanking:
    """Where an earlier extraction's ranking goes on, so that its next page is what it would have been then."""

    result_id: str
    offset: int


def read(tx: ReadTransaction, run: Run, request: ExtractRequest) -> Extraction:
    """The channel asked for, or the one that fits best, and what may answer in it."""
    request = read_for(request)
    query = request.query
    ranking = _ranking_place(query.cursor)
    if ranking:
        return _continued(tx, run, request, ranking)
    row = existing_channel(tx, request.channel) if request.channel else None
    given = Scope(channel_number=row.number if row else None, roles=query.roles, from_=query.from_, to=query.to)
    said, scope = ask(tx, query.text or "", query.utc_offset_minutes, given)
    scope = without_the_asking_chat(tx, run, request.source, scope)
    is_narrowed = bool(said.search.when_words or said.sources or said.search.project)
    if query.cursor or not (said.has_words or (query.also and not is_narrowed)):
        return _without_words(tx, run, query, said, scope, row)
    found = find(tx, run, said, scope, query.also)
    run.recorder.explain(channel=row.name if row else None, **explanation(found), understood=understood(said, found))
    candidates: list[tuple[ChannelRow, float]] = []
    if row is None:
        candidates = _best_channels(tx, run, found)
        if not candidates:
            return _without_words(tx, run, query, said, scope, None, relaxed=True)
        row = candidates[0][0]
        if any(len(wording.candidates) >= CANDIDATES for wording in found.wordings):
            found = find(tx, run, said, replace(scope, channel_number=row.number), query.also)
    run.recorder.channel = row.name
    verdicts = [one for one in judge(found) if one.ranked.candidate.channel_id == row.number]
    run.recorder.explain(channel=row.name)
    kept = [one for one in verdicts if one.reason is None] or [one for one in verdicts if one.coverage >= LEAST_GUESS]
    if not kept and (said.search.when_words or said.sources or candidates):
        return _without_words(tx, run, query, said, scope, row, relaxed=True)
    if not kept:
        raise _nothing_found(query.text)
    sure = confidence_of(found.evidence(row.number), is_chosen=bool(candidates), is_narrowed=is_narrowed)
    run.recorder.explain(confidence=sure.value)
    turns = turns_in(kept)
    return Extraction(
        channel=row,
        read=said,
        ranked=_turns(tx, turns[: 2 * query.limit], query),
        turns=turns,
        hits=frozenset(one.ranked.candidate.number for one in kept),
        **_end_of(tx, row, query, said),
        result=found,
        verdicts=verdicts,
        confidence=sure,
        **_beside(tx, candidates, found, sure),
    )


def _best_channels(tx: ReadTransaction, run: Run, found: SearchResult) -> list[tuple[ChannelRow, float]]:
    """The channels that fit the request, best first, with their scores."""
    scores = best_channels(found)[: OTHER_CHANNELS + 1]
    known = channels_by_number(tx, [number for number, _ in scores])
    best = [(known[number], score) for number, score in scores if number in known]
    run.recorder.explain(channels=[{"channel": row.name, "score": round(score, 3)} for row, score in best])
    return best


def _without_words(
    tx: ReadTransaction,
    run: Run,
    query: ExtractQuery,
    said: Understood,
    scope: Scope,
    row: ChannelRow | None,
    *,
    relaxed: bool = False,
) -> Extraction:
    """A channel's last messages in the time and place that are meant: nothing, or nothing there, is asked by words."""
    others: list[ChannelRow] = []
    if row is None:
        row, others = _latest(tx, query, said, scope, relaxed=relaxed)
    run.recorder.channel = row.name
    before = place_of(query.cursor) if query.cursor else None
    rows = messages_of(
        tx, row.number, limit=query.limit + 1, roles=query.roles, from_=scope.from_, to=scope.to, before=before
    )
    if not rows:
        raise _nothing_then(tx, replace(scope, channel_number=row.number), query.text)
    run.recorder.explain(channel=row.name, by="the channel's last messages", candidates=len(rows))
    shown = [message_dict(one) for one in rows[-query.limit :]]
    recent = [message_dict(one) for one in messages_of(tx, row.number, limit=END)]
    return Extraction(
        channel=row,
        read=said,
        end=_in_turns(shown),
        recent=recent,
        seqs=seqs_of(tx, row.number, query.roles),
        candidates=[_candidate(one) for one in others],
        relaxed=relaxed,
        has_older=len(rows) > query.limit,
    )


def _latest(
    tx: ReadTransaction, query: ExtractQuery, said: Understood, scope: Scope, *, relaxed: bool
) -> tuple[ChannelRow, list[ChannelRow]]:
    """The channels of the time and place that are meant, the latest first."""
    is_narrowed = said.search.when_words or said.sources or said.search.project or scope.from_ or scope.to
    if not is_narrowed:
        if relaxed:
            raise _nothing_found(query.text)
        rows = recent_channels(tx, OTHER_CHANNELS + 1)
    else:
        latest, _ = latest_sessions(tx, scope, OTHER_CHANNELS + 1, 0)
        known = channels_by_number(tx, [number for number, _ in latest])
        rows = [known[number] for number, _ in latest if number in known]
        if not rows:
            raise _nothing_then(tx, scope, query.text)
    if not rows:
        raise _nothing_found(query.text)
    return rows[0], rows[1:]


def _end_of(tx: ReadTransaction, row: ChannelRow, query: ExtractQuery, said: Understood) -> dict[str, Any]:
    """The channel's last turns; all of it where somebody wants to go on with it and it is not too long."""
    recent = [message_dict(one) for one in messages_of(tx, row.number, limit=END)]
    spoken = messages_of(tx, row.number, limit=WHOLE if said.goes_on else END, roles=query.roles)
    return {
        "end": _in_turns([message_dict(one) for one in spoken if not one.payload.get("injected")]),
        "recent": recent,
        "seqs": seqs_of(tx, row.number, query.roles),
    }


def _turns(tx: ReadTransaction, turns: Sequence[Turn], query: ExtractQuery) -> list[list[MessageDict]]:
    """The messages of some turns, of the roles asked for, in the order of the turns."""
    rows = (one for one in turns_of(tx, turns) if one.role in query.roles and not one.payload.get("injected"))
    by_turn: dict[Turn, list[MessageDict]] = {turn: [] for turn in turns}
    for one in rows:
        by_turn[(one.channel_number, one.turn)].append(message_dict(one))
    return [messages for messages in by_turn.values() if messages]


def _in_turns(messages: Sequence[MessageDict]) -> list[list[MessageDict]]:
    turns: dict[int, list[MessageDict]] = {}
    for message in messages:
        turns.setdefault(message["turn"], []).append(message)
    return list(turns.values())


def _beside(
    tx: ReadTransaction, candidates: Sequence[tuple[ChannelRow, float]], found: SearchResult, sure: Confidence
) -> dict[str, Any]:
    """The channels the user may have meant instead, and the best passages of those that may as well be meant."""
    if not candidates:
        return {}
    further = candidates[1:]
    lines = _best_lines(tx, [row.number for row, _ in further], found)
    least = CLOSE * candidates[0][1]
    close = [row for row, score in further if score >= least and sure is not Confidence.LOW][:PASSAGES_OF]
    return {
        "candidates": [_candidate(row, score, lines[row.number]) for row, score in further],
        "others": [
            {**_about(row), "last_activity": format_time(row.updated_at), "messages": lines[row.number]}
            for row in close
        ],
    }


def _candidate(row: ChannelRow, score: float | None = None, lines: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """A channel the user may have meant instead, with the line that speaks for it."""
    evidence = {"evidence": preview_of(lines[0]["text"], EVIDENCE)} if lines else {}
    scored = {} if score is None else {"score": round(score, 3)}
    return {**_about(row), "last_activity": format_time(row.updated_at), **evidence, **scored}


def _about(row: ChannelRow) -> dict[str, Any]:
    return {
        "channel": row.name,
        "title": row.title or row.first_message_preview or row.name,
        "project": row.project_name or "General",
        "source": row.source,
    }


def _best_lines(tx: ReadTransaction, channels: Sequence[int], found: SearchResult) -> dict[int, list[dict[str, Any]]]:
    """Of each channel its best messages, by their best passages."""
    best: dict[int, list[int]] = {number: [] for number in channels}
    for one in found.ranked:
        of_channel = best.get(one.candidate.channel_id)
        if of_channel is not None and len(of_channel) < LINES_OF:
            of_channel.append(one.candidate.number)
    rows = {row.number: row for row in by_numbers(tx, [number for numbers in best.values() for number in numbers])}
    return {
        channel: [
            {
                "id": rows[number].id,
                "role": rows[number].role,
                "text": cut_text(snippet(rows[number].text, found.query), OTHER_TOKENS),
                "timestamp": format_time(rows[number].timestamp),
            }
            for number in numbers
            if number in rows
        ]
        for channel, numbers in best.items()
    }


def _nothing_found(text: str | None) -> NotFound:
    about = f"for query: '{text}'" if text else "in the registry"
    return NotFound("No matching conversations found", f"No conversations found {about}")


def _nothing_then(tx: ReadTransaction, scope: Scope, text: str | None) -> NotFound:
    """Nothing in the time or place that was named: what is nearest in time."""
    near = ", ".join(f"{moment.astimezone():%Y-%m-%d %H:%M}" for moment in nearest_times(tx, scope))
    when = " to ".join(f"{at.astimezone():%Y-%m-%d %H:%M}" for at in (scope.from_, scope.to) if at)
    about = f"No conversations found for query: '{text}'" if text else "No conversations found"
    spoken = [f"nothing from {when}" if when else "", f"nearest: {near}" if near else ""]
    return NotFound("No matching conversations found", "; ".join(filter(None, [about, *spoken])))


def _ranking_place(cursor: str | None) -> dict[str, Any] | None:
    """The place in a ranking that was kept, if that is what the cursor names."""
    try:
        return decode_cursor(cursor, x=str, o=int) if cursor else None
    except InvalidRequest:
        return None  # it names a place in time, or nothing: who reads that says so


def _continued(tx: ReadTransaction, run: Run, request: ExtractRequest, place: dict[str, Any]) -> Extraction:
    kept = get_result(tx, storable(place["x"]))
    if "turns" not in kept.metadata or place["o"] < 0:
        raise InvalidRequest("The cursor is not valid.", "cursor: allowed: the next_cursor of the last answer")
    row = get_channel(tx, kept.channel)
    run.recorder.channel = row.name
    turns = [(row.number, turn) for turn in kept.metadata["turns"]][place["o"] :]
    run.recorder.explain(channel=row.name, by=f"the ranking kept with {kept.id}", candidates=len(turns))
    said, _ = ask(tx, request.query.text or "", request.query.utc_offset_minutes, Scope())
    return Extraction(
        channel=row,
        read=said,
        ranked=_turns(tx, turns[: 2 * request.query.limit], request.query),
        turns=turns,
        hits=frozenset(kept.metadata["hits"]),
        seqs=seqs_of(tx, row.number, request.query.roles),
        kept=KeptRanking(kept.id, place["o"]),
    )


async def keep(run: Run, request: ExtractRequest, data: Extraction) -> dict[str, Any]:
    """The answer, as large as is asked for and as the asking client lets through; NotFound if nothing is left."""
    request = read_for(request)
    tokens = request.query.max_tokens or DEFAULT_TOKENS
    if data.confidence is Confidence.LOW:
        tokens = min(tokens, GUESS_TOKENS)
    most = room_for(run.recorder.client, run.answer_characters) - ENVELOPE
    client = run.recorder.client
    result = _answer(request, data, tokens)
    while (
        not request.is_shortened
        and length_for(client, json.dumps(_as_shown(result), ensure_ascii=False)) > most
        and tokens > 1
    ):
        tokens = tokens * 3 // 4
        result = _answer(request, data, tokens)
    if not result["messages"]:
        raise _nothing_found(request.query.text)
    if data.verdicts:
        run.recorder.explain(**outcome(data.verdicts))
    run.recorder.explain(turns=len(data.turns), messages=len(result["messages"]), max_tokens=tokens)
    return result


def _as_shown(result: dict[str, Any]) -> dict[str, Any]:
    return {**result, "messages": [delivered(message) for message in result["messages"]]}


def _answer(request: ExtractRequest, data: Extraction, tokens: int) -> dict[str, Any]:
    query = request.query
    budget = Budget(query.limit, tokens)
    goes_on = data.read.goes_on or (not data.ranked and not data.kept)
    everything = whole(data.end, budget) if goes_on and len(data.seqs) <= sum(map(len, data.end)) else None
    if everything is not None:
        selection = Selection(everything, len(data.turns))
    else:
        selection = select(data.ranked, data.end, data.hits, budget, _weigher(data), goes_on=goes_on)
    shown = _marked(data, with_gaps(selection.messages, data.seqs))
    result = _result(data, shown)
    _say_what_is_left(result, data, selection, shown, goes_on=goes_on)
    return result


def _weigher(data: Extraction) -> Any:
    """How much of the request a passage holds: each word by how rare it is."""
    wordings = data.result.wordings if data.result else ()

    def weigh(text: str) -> float:
        return sum(
            sum(term.weight for term in wording.terms if term.token in found)
            for wording in wordings
            if (found := matching_tokens(wording.query, text))
        )

    return weigh


def _marked(data: Extraction, messages: list[MessageDict]) -> list[MessageDict]:
    """Messages that a later one takes back say so."""
    if data.result is None:
        return messages
    said = [
        Said(
            message["id"],
            (message["timestamp"], message["number"]),
            message["text"],
            frozenset().union(*(matching_tokens(one.query, message["text"]) for one in data.result.wordings)),
        )
        for message in messages
    ]
    later = taken_back(said)
    return [
        {**message, "superseded_by": later[message["id"]]} if message["id"] in later else message
        for message in messages
    ]


def _result(data: Extraction, shown: list[MessageDict]) -> dict[str, Any]:
    row = data.channel
    about = {
        "extract_id": new_id("ext"),
        **_about(row),
        "first": format_time(row.created_at),
        "last": format_time(row.updated_at),
        "confidence": data.confidence.value if data.confidence else None,
        "note": GUESS if data.confidence is Confidence.LOW else None,
        "messages": shown,
        "stands_at": where_it_stands(data.recent) if data.recent else None,
        "others": data.others or None,
        "candidates": data.candidates,
        "metadata": {
            "total_count": row.message_count,
            "filtered_count": len(shown),
            "last_activity": format_time(row.updated_at),
            "understood": understood(data.read, data.result, relaxed=data.relaxed),
        },
    }
    return {name: value for name, value in about.items() if value is not None}


GUESS = "A guess: little of what was asked stands in this conversation. Say so, or ask which one is meant (candidates)."


def _say_what_is_left(
    result: dict[str, Any], data: Extraction, selection: Selection, shown: list[MessageDict], *, goes_on: bool
) -> None:
    """What is not shown, and how to get at it."""
    metadata = result["metadata"]
    if not shown:
        return
    newer = sum(seq > shown[-1]["seq"] for seq in data.seqs)
    left = len(data.seqs) - len(shown)
    if newer:
        metadata["newer_messages"] = newer
    if left > 0:
        share = left / max(data.channel.message_count, 1)
        metadata["left_out"] = {"messages": left, "tokens": round(share * data.channel.token_count * TOKENS_PER_WORD)}
    if data.turns and selection.taken < len(data.turns):
        _keep_ranking(result, data, selection.taken)
    elif not data.turns and (data.has_older or left > 0) and shown[0]["seq"] != (data.seqs[0] if data.seqs else 0):
        metadata["next_cursor"] = cursor_of(parse_time(shown[0]["timestamp"]), shown[0]["number"])


TOKENS_PER_WORD = 1.5
"""A model's tokens for each of the analyzer's, about."""


def _keep_ranking(result: dict[str, Any], data: Extraction, taken: int) -> None:
    """The first page's record keeps the whole ranking; later pages go on where the one before ended."""
    if data.kept:
        place = {"x": data.kept.result_id, "o": data.kept.offset + taken}
    else:
        place = {"x": result["extract_id"], "o": taken}
        result["ranking"] = {"turns": [turn for _, turn in data.turns], "hits": sorted(data.hits)}
    result["metadata"]["next_cursor"] = encode_cursor(place)


async def shorten(run: Run, request: ExtractRequest, state: State) -> State:
    """The part that was asked for as a digest of its messages, or as a summary, within what was asked for."""
    result, data = state["result"], state["data"]
    room = room_for(run.recorder.client, run.answer_characters) - ENVELOPE
    tokens = min(request.query.max_tokens or SHORT_TOKENS, room // 4)
    run.recorder.explain(messages=len(result["messages"]), max_tokens=tokens)
    if request.query.mode == "digest":
        return {"result": {**result, "messages": digest_of(result["messages"], tokens)}}
    summary, by = "", WRITER
    if run.writer:
        summary = await run.writer.write(run.recorder, SUMMARY, transcript(result["messages"]), tokens)
        by = run.writer.model.name if summary else WRITER
    if not summary:
        tools = [message for message in data.recent if message.get("tool")]
        summary = summary_of([*result["messages"], *tools], tokens)
    run.recorder.explain(by=by)
    return {"result": {**result, "summary": summary, "summary_by": by}}


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
