"""Extract: of one conversation, the part that answers a request, and a record of what was delivered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from orchestrator.answer.composing import composed
from orchestrator.answer.delivery import Turn, delivered, message_dict
from orchestrator.answer.extraction import Extraction, KeptRanking
from orchestrator.answer.in_turns import then_or_a_week_before, then_or_at_any_time, there_or_anywhere
from orchestrator.answer.looking_up import ask, find, understood, without_the_asking_chat
from orchestrator.answer.other_channels import beside, beside_in_time, most_likely_first
from orchestrator.answer.other_times import (
    nearest_about,
    note_of,
    nothing_found,
    nothing_then,
    with_nearest,
)
from orchestrator.answer.relevance import (
    Judged,
    best_channels,
    confidence_in,
    explanation,
    guessed,
    held_to,
    judge,
    outcome,
    turns_in,
)
from orchestrator.answer.reversals import second_thoughts
from orchestrator.answer.selection import MessageDict
from orchestrator.answer.size import room_for, tokens_in, within
from orchestrator.answer.summary import SHORT_TOKENS, WRITER, digest_of, read_for, summary_of
from orchestrator.outside.writing import SUMMARY, transcript
from orchestrator.queries import ExtractQuery
from orchestrator.requests import ExtractRequest
from orchestrator.state import Run, State, Steps
from registry.domain import now, storable
from registry.errors import InvalidRequest
from registry.search.candidates import CANDIDATES
from registry.search.retrieval import SearchResult
from registry.search.scope import Scope
from registry.search.sessions import latest_sessions
from registry.storage.conversations.channels import ChannelRow, channels_by_number, get_channel, recent_channels
from registry.storage.conversations.messages import MessageRow, messages_of, seqs_of, turns_of
from registry.storage.conversations.references import existing_channel
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.paging import decode_cursor, place_of
from registry.storage.records.extract_results import get_result, save_result
from registry.storage.safety.sealing import seal_of
from registry.text.ranking.confidence import Confidence
from registry.text.request.query import is_sentence
from registry.text.request.understanding import Understood

OTHER_CHANNELS = 5
"""How many further channels are offered where one had to be chosen."""
GUESSED = 5
"""Where nothing speaks for itself, so many of the best messages are given as a guess."""
END = 80
"""So many of a channel's last messages say where it stands."""
WHOLE = 400
"""A conversation of more messages is not tried whole."""
SOME = 0.45
"""What holds less of a request holds words that are said of anything."""
ENVELOPE = 400
"""Characters that the envelope and the record of the answer take."""


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
    scope = without_the_asking_chat(tx, run, request.source, query.text or "", scope)

    def look(said: Understood, scope: Scope) -> Extraction:
        return _read(tx, run, request, said, scope, row)

    if said.goes_on and said.search.when_words and (row or said.has_words):
        return then_or_at_any_time(tx, run, query, said, scope, look, is_named=row is not None)
    if said.in_passing and row is None and not query.cursor:
        return there_or_anywhere(look, query, said, scope, said.in_passing)
    if said.week_before:
        return then_or_a_week_before(look, query, said, scope, said.week_before)
    return _read(tx, run, request, said, scope, row)


class _Choice(NamedTuple):
    """What was found, and the conversation that is meant: the first of the `candidates` where none was named.

    `is_guess`: only parts of words, or meaning, speak for it.
    """

    found: SearchResult
    verdicts: Sequence[Judged]
    channel: ChannelRow
    candidates: Sequence[tuple[ChannelRow, float]] = ()
    is_guess: bool = False


def _read(
    tx: ReadTransaction, run: Run, request: ExtractRequest, said: Understood, scope: Scope, row: ChannelRow | None
) -> Extraction:
    query = request.query
    if query.cursor or not (said.has_words or (query.also and not said.is_narrowed)):
        return _without_words(tx, run, query, said, scope, row)
    found = find(tx, run, said, scope, query.also)
    run.recorder.explain(channel=row.name if row else None, **explanation(found), understood=understood(said, found))
    verdicts = held_to(found, judge(found), query.least_coverage)
    chosen = _Choice(found, verdicts, row) if row else _chosen(tx, run, request, said, scope, found, verdicts)
    if chosen is None:
        run.recorder.explain(**outcome(verdicts))
        return _without_words(tx, run, query, said, scope, None, relaxed="words")
    run.recorder.explain(channel=chosen.channel.name)
    run.recorder.channel = chosen.channel.name
    inside = [one for one in chosen.verdicts if one.ranked.candidate.channel_id == chosen.channel.number]
    chosen = chosen._replace(verdicts=inside)
    kept = [one for one in inside if one.reason is None]
    if not kept and _may_guess(query, said):
        kept = _plausible(chosen.found, inside)
    sure = _sure(chosen, said)
    if kept:
        return _told(tx, run, query, said, scope, chosen, kept, sure)
    run.recorder.explain(**outcome(inside))
    return _by_its_end(tx, run, query, said, scope, chosen, sure)


def _may_guess(query: ExtractQuery, said: Understood) -> bool:
    return not said.is_narrowed and query.least_coverage is None


def _chosen(
    tx: ReadTransaction,
    run: Run,
    request: ExtractRequest,
    said: Understood,
    scope: Scope,
    found: SearchResult,
    verdicts: Sequence[Judged],
) -> _Choice | None:
    """Of all conversations the one that is meant; None where nothing speaks for any."""
    query = request.query
    candidates = _best_channels(tx, run, found, verdicts, said, request.folder)
    is_guess = not candidates and (_may_guess(query, said) or bool(found.similar and not said.search.when_words))
    if is_guess:
        verdicts = guessed(found, verdicts)
        candidates = _best_channels(tx, run, found, verdicts, said, request.folder)
    if not candidates:
        return None
    if is_guess and said.is_narrowed:
        candidates += _further(candidates, _latest(tx, run, query, said, scope, relaxed="words"))
    row = candidates[0][0]
    if any(len(wording.candidates) >= CANDIDATES for wording in found.wordings):
        found = find(tx, run, said, replace(scope, channel_number=row.number), query.also)
        verdicts = held_to(found, judge(found), query.least_coverage)
    return _Choice(found, verdicts, row, candidates, is_guess)


def _sure(chosen: _Choice, said: Understood) -> Confidence:
    """How sure it is that the conversation that was chosen or named answers. That it is of the time or place that was
    named speaks for one that was chosen where it holds some of the rest, too."""
    number = chosen.channel.number
    holds_some = not chosen.candidates or any(one.covered >= SOME for one in chosen.found.evidence(number))
    return confidence_in(
        chosen.found,
        number,
        [score for _, score in chosen.candidates],
        is_narrowed=said.is_narrowed and not chosen.is_guess and holds_some,
        goes_on=said.goes_on,
    )


def _by_its_end(
    tx: ReadTransaction,
    run: Run,
    query: ExtractQuery,
    said: Understood,
    scope: Scope,
    chosen: _Choice,
    sure: Confidence,
) -> Extraction:
    """The end of a conversation of which no message says what was asked: as a guess it is more than nothing, for a
    question may say in other words what its channel says."""
    is_asked = is_sentence(query.text or "") and not chosen.found.is_strict
    is_meant = said.search.when_words or said.sources or chosen.candidates or said.goes_on or is_asked
    if not is_meant or query.least_coverage is not None:
        raise nothing_found(query.text)
    is_chosen = bool(chosen.candidates)
    ended = _without_words(tx, run, query, said, scope, chosen.channel, relaxed="words", is_chosen=is_chosen)
    return ended if said.is_narrowed else replace(ended, confidence=sure)


def _told(
    tx: ReadTransaction,
    run: Run,
    query: ExtractQuery,
    said: Understood,
    scope: Scope,
    chosen: _Choice,
    kept: Sequence[Judged],
    sure: Confidence,
) -> Extraction:
    """The turns that answer, what takes them back, the end, and what may be meant instead."""
    run.recorder.explain(confidence=sure.value)
    found, row, candidates = chosen.found, chosen.channel, chosen.candidates
    later = second_thoughts(tx, found, kept, {row.number})
    meanwhile = second_thoughts(tx, found, kept, {other.number for other, _ in candidates[1:]})
    turns = _with_later(turns_in(kept), later)
    around = beside(tx, candidates, found, sure, meanwhile.values(), is_narrowed=said.is_narrowed)
    is_doubtful = sure is Confidence.LOW and bool(candidates) and bool(said.search.when_words)
    about = nearest_about(tx, run, query, said, scope) if is_doubtful else None
    return Extraction(
        channel=row,
        read=said,
        ranked=_turns(tx, turns[: 2 * query.limit], query),
        turns=turns,
        hits=frozenset(one.ranked.candidate.number for one in kept),
        **_end_of(tx, row, query, said),
        result=found,
        verdicts=list(chosen.verdicts),
        confidence=sure,
        taken_back={earlier: one.id for earlier, one in _latest_of(meanwhile, later).items()},
        note=f"Nearest of another time: {about.spoken(query.utc_offset_minutes)}." if about else "",
        **(with_nearest(around, about, row) if about else around),
    )


def _further(
    candidates: Sequence[tuple[ChannelRow, float]], latest: Sequence[ChannelRow]
) -> list[tuple[ChannelRow, float]]:
    """Any of a place that was named may be meant where only meaning speaks for one."""
    known = {row.number for row, _ in candidates}
    return [(row, 0.0) for row in latest if row.number not in known][: OTHER_CHANNELS + 1 - len(candidates)]


def _with_later(turns: Sequence[Turn], later: Mapping[str, MessageRow]) -> list[Turn]:
    """The turns, and right behind the best one those that take something of the best back."""
    newer = [(row.channel_number, row.turn) for row in later.values()]
    return list(dict.fromkeys([*turns[:1], *newer, *turns[1:]]))


def _latest_of(some: Mapping[str, MessageRow], others: Mapping[str, MessageRow]) -> dict[str, MessageRow]:
    """Of what takes the same message back the latest."""
    given = sorted([*some.items(), *others.items()], key=lambda one: (one[1].timestamp, one[1].number))
    return dict(given)


def _plausible(found: SearchResult, verdicts: Sequence[Judged]) -> list[Judged]:
    """Of messages none of which speaks for itself, the best that hold parts of words or are near in meaning."""
    near = found.similar.plausible if found.similar else frozenset()
    return [one for one in verdicts if one.coverage > 0 or one.ranked.candidate.number in near][:GUESSED]


def _best_channels(
    tx: ReadTransaction,
    run: Run,
    found: SearchResult,
    verdicts: Sequence[Judged],
    said: Understood,
    folder: str | None,
) -> list[tuple[ChannelRow, float]]:
    """The channels that fit the request, best first, with their scores."""
    scores = best_channels(found, verdicts)[: OTHER_CHANNELS + 1]
    scores = most_likely_first(tx, scores, found, said, None if said.in_other_project else folder)
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
    relaxed: str = "",
    is_chosen: bool = False,
) -> Extraction:
    """A channel's last messages in the time and place that are meant: nothing, or nothing there, is asked by words."""
    others: list[ChannelRow] = []
    if row is None:
        row, *others = _latest(tx, run, query, said, scope, relaxed=relaxed)
    elif is_chosen and said.search.when_words:  # all that was said then may be meant
        others = [one for one in _latest(tx, run, query, said, scope, relaxed=relaxed) if one.number != row.number]
    run.recorder.channel = row.name
    seal = seal_of(tx)
    before = place_of(query.cursor, seal) if query.cursor else None
    rows = messages_of(
        tx, row.number, limit=query.limit + 1, roles=query.roles, from_=scope.from_, to=scope.to, before=before
    )
    inside = replace(scope, channel_number=row.number)
    if not rows:
        raise nothing_then(tx, run, query, said, inside)
    about = nearest_about(tx, run, query, said, scope) if relaxed and said.search.when_words else None
    run.recorder.explain(channel=row.name, by="the channel's last messages", candidates=len(rows))
    shown = [message_dict(one) for one in rows[-query.limit :]]
    recent = [message_dict(one) for one in messages_of(tx, row.number, limit=END)]
    return Extraction(
        channel=row,
        read=said,
        end=_in_turns(shown),
        recent=recent,
        seqs=seqs_of(tx, row.number, query.roles),
        relaxed=relaxed,
        note=note_of(about, scope, query.utc_offset_minutes) if relaxed and said.search.when_words else "",
        has_older=len(rows) > query.limit,
        seal=seal,
        **with_nearest(beside_in_time(tx, others, scope, query.roles), about, row),
    )


def _latest(
    tx: ReadTransaction, run: Run, query: ExtractQuery, said: Understood, scope: Scope, *, relaxed: str
) -> list[ChannelRow]:
    """The channels of the time and place that are meant, the latest first; there is one at least."""
    is_narrowed = said.search.when_words or said.sources or said.search.project or scope.from_ or scope.to
    if not is_narrowed:
        if relaxed:
            raise nothing_found(query.text)
        rows = recent_channels(tx, OTHER_CHANNELS + 1)
    else:
        latest, _ = latest_sessions(tx, scope, OTHER_CHANNELS + 1, 0)
        known = channels_by_number(tx, [number for number, _ in latest])
        rows = [known[number] for number, _ in latest if number in known]
        if not rows:
            raise nothing_then(tx, run, query, said, scope)
    if not rows:
        raise nothing_found(query.text)
    return rows


def _end_of(tx: ReadTransaction, row: ChannelRow, query: ExtractQuery, said: Understood) -> dict[str, Any]:
    """The channel's last turns; all of it where somebody wants to go on with it and it is not too long."""
    spoken = recent = messages_of(tx, row.number, limit=END)
    if said.goes_on or any(one.role not in query.roles for one in recent):
        spoken = messages_of(tx, row.number, limit=WHOLE if said.goes_on else END, roles=query.roles)
    return {
        "end": _in_turns([message_dict(one) for one in spoken if not one.payload.get("injected")]),
        "recent": [message_dict(one) for one in recent],
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
        ranked=_not_given(_turns(tx, turns[: 2 * request.query.limit], request.query), kept.items),
        turns=turns,
        hits=frozenset(kept.metadata["hits"]),
        seqs=seqs_of(tx, row.number, request.query.roles),
        kept=KeptRanking(kept.id, place["o"]),
    )


def _not_given(turns: Sequence[Sequence[MessageDict]], ids: Sequence[str]) -> list[list[MessageDict]]:
    """The turns without the messages that the first page held."""
    rest = [[message for message in turn if message["id"] not in ids] for turn in turns]
    return [turn for turn in rest if turn]


async def keep(run: Run, request: ExtractRequest, data: Extraction) -> dict[str, Any]:
    """The answer, as large as is asked for and as the asking client lets through; NotFound if nothing is left."""
    request = read_for(request)
    result, tokens = composed(request, data, run.recorder.client, run.answer_characters)
    if data.verdicts:
        run.recorder.explain(**outcome(data.verdicts))
    if not result["messages"]:
        raise nothing_found(request.query.text)
    run.recorder.explain(turns=len(data.turns), messages=len(result["messages"]), max_tokens=tokens)
    return result


async def shorten(run: Run, request: ExtractRequest, state: State) -> State:
    """The part that was asked for as a digest of its messages, or as a summary, within what was asked for."""
    result, data = state["result"], state["data"]
    room = room_for(run.recorder.client, run.answer_characters) - ENVELOPE
    tokens = min(request.query.max_tokens or SHORT_TOKENS, room // 4)
    run.recorder.explain(messages=len(result["messages"]), max_tokens=tokens)
    if request.query.mode == "digest":
        return {"result": {**result, "messages": digest_of(result["messages"], tokens)}}
    summary, by = request.query.written or ("", WRITER)
    summary = within(summary, tokens)
    if run.writer and not summary:
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
    if not run.registry.is_read_only:
        save_result(
            tx,
            result_id,
            record_type="extract_result",
            channel=found["channel"],
            result_type=request.query.mode,
            items=ids,
            metadata=about,
            timestamp=now(),
            token=run.recorder.token,
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
