"""Extract: of one conversation, the part that answers a request, and a record of what was delivered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from orchestrator.answer.composing import composed
from orchestrator.answer.delivery import MessageDict, delivered, tokens_for, tokens_in
from orchestrator.answer.digests.summary import SHORT_TOKENS, WRITER, digest_of, summary_of
from orchestrator.answer.finding.choosing import Choice, chosen, kept_of, sure_of
from orchestrator.answer.finding.elsewhere import nothing_found, nothing_then, spoken_span
from orchestrator.answer.finding.looking_up import Lookup, ask, there_or_anywhere, understood, without_the_asking_chat
from orchestrator.answer.finding.reading import (
    Extraction,
    KeptRanking,
    its_answer,
    its_end,
    last_messages,
    messages_in,
)
from orchestrator.answer.finding.relevance import confidence_in, explanation, held_to, judge, outcome
from orchestrator.outside.writing import SUMMARY, transcript
from orchestrator.requests.queries import ExtractQuery
from orchestrator.requests.shapes import ExtractRequest
from orchestrator.state import Run, State, Steps
from registry.domain import now, storable
from registry.errors import InvalidRequest, NotFound
from registry.search.scope import Scope
from registry.storage.conversations.channels import ChannelRow, get_channel
from registry.storage.conversations.messages import seqs_of
from registry.storage.conversations.references import existing_channel
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.paging import decode_cursor
from registry.storage.records.extract_results import get_result, save_result
from registry.text.ranking.confidence import Confidence
from registry.text.request.syntax import Search
from registry.text.times.spans import Span


def read(tx: ReadTransaction, run: Run, request: ExtractRequest) -> Extraction:
    """The channel asked for, or the one that fits best, and what may answer in it."""
    request = request.as_read()
    query = request.query
    ranking = _ranking_place(query.cursor)
    if ranking:
        return _continued(tx, run, request, ranking)
    row = existing_channel(tx, request.channel) if request.channel else None
    given = Scope(channel_number=row.number if row else None, roles=query.roles, from_=query.from_, to=query.to)
    said, scope = ask(tx, query.text or "", query.utc_offset_minutes, given)
    scope = without_the_asking_chat(tx, run, request.source, query.text or "", scope)
    asked = Lookup(tx, run, query, said, scope)

    def look(asked: Lookup[ExtractQuery]) -> Extraction:
        return _look(asked, row, request.folder)

    if said.goes_on and said.search.when_words and (row or said.has_words):
        return _then_or_at_any_time(look, asked, is_named=row is not None)
    if said.in_passing and row is None and not query.cursor:
        return _in_passing_or_not(look, asked, said.in_passing)
    if said.week_before:
        return _then_or_a_week_before(look, asked, said.week_before)
    return look(asked)


def _look(asked: Lookup[ExtractQuery], row: ChannelRow | None, folder: str | None) -> Extraction:
    """What answers in the channel that is named, or else in the one that is meant."""
    query, said, recorder = asked.query, asked.said, asked.run.recorder
    if query.cursor or not (said.has_words or (query.also and not said.is_narrowed)):
        return last_messages(asked, row)
    found = asked.find()
    recorder.explain(channel=row.name if row else None, **explanation(found), understood=understood(said, found))
    verdicts = held_to(found, judge(found), query.least_coverage)
    choice = Choice(found, verdicts, row) if row else chosen(asked, found, verdicts, folder)
    if choice is None:
        recorder.explain(**outcome(verdicts))
        return last_messages(asked, None, relaxed="words")
    recorder.explain(channel=choice.channel.name)
    recorder.channel = choice.channel.name
    kept, sure = kept_of(asked, choice), sure_of(asked, choice)
    if kept:
        return its_answer(asked, choice, kept, sure)
    recorder.explain(**outcome(choice.inside))
    return its_end(asked, choice, sure)


Look = Callable[[Lookup[ExtractQuery]], Extraction]
"""Reads one channel for what is asked; NotFound where nothing is there."""


def _then_or_a_week_before(look: Look, asked: Lookup[ExtractQuery], before: Span) -> Extraction:
    """Who says "last Tuesday" on a Thursday may mean the one of last week: where nothing was said on the latest."""
    try:
        return look(asked)
    except NotFound:
        found = _found(look, asked.a_week_before(before))
        if found is None:
            raise
        return found


def _in_passing_or_not(look: Look, asked: Lookup[ExtractQuery], passing: Search) -> Extraction:
    """What answers where the request names a project or a client in passing, there or anywhere."""
    inside = _found(look, asked.there(passing))
    inside = replace(inside, read=asked.said) if inside else None
    found = there_or_anywhere(inside, _is_sure, partial(_found, look, asked))
    if found is None:
        raise nothing_found(asked.query.text)
    return _recorded(asked, found) if found is inside else found


def _then_or_at_any_time(look: Look, asked: Lookup[ExtractQuery], *, is_named: bool) -> Extraction:
    """Who wants to go on may name a time in passing: it is given up where nothing of it was said then, and it is sure
    what is meant without it. `is_named`: the channel was."""
    then = _found(look, asked)
    if then and not then.relaxed and (is_named or _is_sure(then)):
        return then
    anywhen = _found(look, asked.at_any_time())
    if anywhen and (is_named or not then or then.relaxed or _is_sure(anywhen)):
        span = spoken_span(asked.scope, asked.query.utc_offset_minutes)
        note = f"Nothing of it is from {span}, so that time was given up."
        return replace(anywhen, relaxed=" and ".join(filter(None, ["time", anywhen.relaxed])), note=note)
    if not then:
        raise nothing_then(asked)
    return _recorded(asked, then)


def _recorded(asked: Lookup[ExtractQuery], data: Extraction) -> Extraction:
    """The same; the record tells of it, and not of what was looked up after it."""
    recorder = asked.run.recorder
    recorder.channel = data.channel.name
    recorder.explain(channel=data.channel.name, confidence=data.confidence.value if data.confidence else None)
    if data.result:
        recorder.explain(**explanation(data.result), understood=understood(data.read, data.result))
    return data


def _found(look: Look, asked: Lookup[ExtractQuery]) -> Extraction | None:
    try:
        return look(asked)
    except NotFound:
        return None


def _is_sure(data: Extraction) -> bool:
    """Whether it is no guess, also without what narrowed it."""
    if data.result is None:
        return False
    scores = [one.score for one in data.result.channels]
    return confidence_in(data.result, data.channel.number, scores) is not Confidence.LOW


def _ranking_place(cursor: str | None) -> dict[str, Any] | None:
    """The place in a ranking that was kept, if that is what the cursor names."""
    for shape in ({"x": str, "o": int}, {"x": str, "o": int, "h": int}):
        with suppress(InvalidRequest):  # it names a place in time, or nothing: who reads that says so
            return decode_cursor(cursor, **shape) if cursor else None
    return None


def _continued(tx: ReadTransaction, run: Run, request: ExtractRequest, place: dict[str, Any]) -> Extraction:
    kept = get_result(tx, storable(place["x"]))
    if "turns" not in kept.metadata or place["o"] < 0:
        raise InvalidRequest("The cursor is not valid.", "cursor: allowed: the next_cursor of the last answer")
    row = get_channel(tx, kept.channel)
    run.recorder.channel = row.name
    turns = [(row.number, turn) for turn in kept.metadata["turns"]][place["o"] :]
    run.recorder.explain(channel=row.name, by=f"the ranking kept with {kept.id}", candidates=len(turns))
    said, _ = ask(tx, request.query.text or "", request.query.utc_offset_minutes, Scope())
    hits = {number: at for at, number in enumerate(kept.metadata["hits"])}
    ranked = messages_in(tx, turns[: 2 * request.query.limit], request.query)
    given = {number for number, at in hits.items() if at < place.get("h", 0)}
    ranked[:1] = [[message for message in turn if message["number"] not in given] for turn in ranked[:1]]
    return Extraction(
        channel=row,
        read=said,
        ranked=_not_given(ranked, kept.items),
        turns=turns,
        hits=hits,
        seqs=seqs_of(tx, row.number, request.query.roles),
        kept=KeptRanking(kept.id, place["o"]),
    )


def _not_given(turns: Sequence[Sequence[MessageDict]], ids: Sequence[str]) -> list[list[MessageDict]]:
    """The turns without the messages that the first page held."""
    rest = [[message for message in turn if message["id"] not in ids] for turn in turns]
    return [turn for turn in rest if turn]


async def keep(run: Run, request: ExtractRequest, data: Extraction) -> dict[str, Any]:
    """The answer, as large as is asked for and as the asking client lets through; NotFound if nothing is left."""
    request = request.as_read()
    result, tokens = composed(request, data, run.room)
    if data.verdicts:
        run.recorder.explain(**outcome(data.verdicts))
    if not result["messages"]:
        raise nothing_found(request.query.text)
    run.recorder.explain(turns=len(data.turns), messages=len(result["messages"]), max_tokens=tokens)
    return result


async def shorten(run: Run, request: ExtractRequest, state: State) -> State:
    """The part that was asked for as a digest of its messages, or as a summary, within what was asked for."""
    result, data = state["result"], state["data"]
    tokens = tokens_for(run.room, request.query.max_tokens or SHORT_TOKENS)
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
        **found.get("ranking", {}),
    }
    result_id = found["extract_id"]
    if run.is_kept:
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
    told = {name: part for name, part in found.items() if name not in _NOTED}
    if not run.is_kept and "ranking" in found:  # further pages are read from it
        told["metadata"] = {name: part for name, part in told["metadata"].items() if name != "next_cursor"}
    return {**told, "messages": shown}


_NOTED = ("ranking", "extract_id")
"""What is kept of the answer and not told."""


def _subject(request: ExtractRequest) -> str:
    """None where it goes on with an earlier answer."""
    return "" if request.query.cursor else request.query.text or ""


EXTRACT = Steps[ExtractRequest, Extraction](query=read, keep=keep, shorten=shorten, write=write, subject=_subject)
