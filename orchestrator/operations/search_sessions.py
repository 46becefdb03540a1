"""Search sessions by what was said in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, ClassVar

from pydantic import Field

from orchestrator.answer.delivery import fits, tokens_for, tokens_of
from orchestrator.answer.digests.summaries import FOUND, add_summaries
from orchestrator.answer.digests.summary import WRITER
from orchestrator.answer.finding.choosing import ordered_channels
from orchestrator.answer.finding.elsewhere import About, nearest_about
from orchestrator.answer.finding.looking_up import (
    Lookup,
    ask,
    subject_of,
    understood,
    without_the_asking_chat,
)
from orchestrator.answer.finding.relaxing import AT_ANY_TIME, lookup_for, relaxation_for
from orchestrator.answer.finding.relevance import (
    SPOKEN,
    Found,
    Judged,
    best_channels,
    confidence_in,
    explanation,
    is_about_something,
    judge,
    outcome,
)
from orchestrator.answer.fitting import Write, as_many_as_fit, fitted
from orchestrator.operation import Operation
from orchestrator.requests.calls import project_of, searched_project, utc_offset_minutes
from orchestrator.requests.field_types import Also, EndInstant, Instant, Limit, Offset
from orchestrator.requests.queries import SessionsQuery
from orchestrator.requests.shapes import SessionsRequest
from orchestrator.state import Run, Steps, Tried
from orchestrator.tool import WHEN, Caller, Effect, Outcome, ProjectName, Tool, ToolArguments, present
from registry.access import Level
from registry.domain import format_time, preview_of
from registry.errors import InvalidRequest, NotFound
from registry.search.retrieval import SearchResult
from registry.search.scope import Scope
from registry.search.sessions import latest_sessions, surroundings
from registry.storage.conversations.channels import channel_item, channels_by_number, tags_of
from registry.storage.conversations.references import resolve_session
from registry.storage.database import ReadTransaction
from registry.text.ranking.confidence import Confidence
from registry.text.ranking.snippets import passage, snippet
from registry.text.request.query import ParsedQuery

MATCHES = 3  # matches of a session that are shown
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

    @property
    def holds_any(self) -> bool:
        """Return True if there is a session to show."""
        return bool(self.best or self.latest_total)


def find_sessions(tx: ReadTransaction, run: Run, request: SessionsRequest) -> SessionsFound:
    """Parse the search and run it. A time that was named holds: words are given up before it is."""
    query = request.query
    inside = resolve_session(tx, request.channel) if request.channel else None
    run.recorder.channel = inside.name if inside else None
    given = Scope(
        channel_number=inside.number if inside else None,
        sources=[query.source] if query.source else [],
        project=query.project,
        tags=[query.tag] if query.tag else [],
        roles=query.roles or SPOKEN,
        from_=query.from_,
        to=query.to,
        exclude_channel=_name_of(tx, query.exclude_session),
    )
    read, scope = ask(tx, query.text, query.utc_offset_minutes, given)
    scope = without_the_asking_chat(tx, run, request.source, query.text, scope)
    asked = Lookup(tx, run, query, read, scope)
    data = _look(lookup_for(asked, run.attempt))
    relaxation = relaxation_for(read, has_channel=inside is not None)
    if run.attempt == AT_ANY_TIME:
        data = replace(data, relaxed="time")
    elif not run.attempt and not (_is_sure(data) if relaxation == AT_ANY_TIME else data.holds_any):
        data = replace(data, relaxation=relaxation)
    run.recorder.explain(**explanation(data.found.result), understood=_understood(data))
    return data


def better(run: Run, _request: SessionsRequest, earlier: Tried, relaxed: Tried) -> Tried:
    """Choose between the request as it was asked and the relaxed one."""
    first, second = earlier.data, relaxed.data
    is_better = _is_sure(second) or (not first.best and bool(second.best))
    if not is_better:
        run.recorder.explain(**explanation(first.found.result), understood=_understood(first))
    return relaxed if is_better else earlier


def _look(asked: Lookup[SessionsQuery]) -> SessionsFound:
    tx, read, scope, query = asked.tx, asked.said, asked.scope, asked.query
    result = asked.find()
    found = Found(read, result, judge(result))
    best = best_channels(result, is_narrowed=read.is_narrowed)
    if read.projects or read.dates or read.in_the_end or read.in_the_past:
        first = [(row.number, score) for row, score in ordered_channels(asked, result)]
        best = [*first, *best[len(first) :]]
    data = SessionsFound(found, best)
    has_named = bool(read.search.when_words or read.sources)
    names_words = is_about_something(read, result)
    if not names_words or (has_named and not data.best):
        latest, total = latest_sessions(tx, scope, query.limit, query.offset)
        relaxed = "words" if names_words else ""
        data = replace(data, relaxed=relaxed, latest=dict(latest), latest_total=total)
        if relaxed and read.search.when_words:
            data = replace(data, about=nearest_about(asked))
    return data


def _is_sure(data: SessionsFound) -> bool:
    """Return True if the confidence in the first session is not low, also without what narrows the search."""
    return bool(data.best) and _confidence(data) is not Confidence.LOW


def _name_of(tx: ReadTransaction, session_id: str | None) -> str | None:
    """Return the channel of a session to leave out; None if that was never stored."""
    try:
        return resolve_session(tx, session_id).name if session_id else None
    except NotFound:
        return None


async def keep_sessions(run: Run, request: SessionsRequest, data: SessionsFound) -> dict[str, Any]:
    """Return a page of sessions, best first, each with its best matches."""
    more: dict[str, Any] = {"understood": _understood(data), **_confidence_shown(run, data)}
    if data.about:
        more["elsewhere"] = {"about_it": _about(data.about)}
    wanted = request.query.max_tokens
    tokens = None if wanted is None and run.room is None else tokens_for(run.room, wanted or 1500) - tokens_of(more)
    shown, total = await run.registry.read(lambda tx: _shown(tx, run, request.query, data, tokens))
    shown = within_client(run, shown)
    place = pagination(total, request.query.limit, request.query.offset, len(shown))
    return {"sessions": shown, "pagination": place, **more}


def _about(about: About) -> dict[str, Any]:
    row = about.channel
    named = {"session_id": row.session_id or row.name, "title": row.title or row.first_message_preview}
    return {
        **named,
        "timestamp": format_time(about.at),
        "snippet": preview_of(about.message.text if about.message else "", 160),
    }


def _confidence_shown(run: Run, data: SessionsFound) -> dict[str, Any]:
    """Return the confidence in the first session; nothing if no words were looked for."""
    if data.latest or not data.best:
        return {}
    read = data.found.read
    sure = _confidence(data, is_narrowed=read.is_narrowed, goes_on=read.goes_on)
    run.recorder.explain(confidence=sure.value)
    similar = data.found.result.similar
    note = {"note": f"Found by words alone: {similar.note}."} if similar and similar.note else {}
    return {"confidence": sure.value} | (note if sure is Confidence.LOW else {})


def _confidence(data: SessionsFound, *, is_narrowed: bool = False, goes_on: bool = False) -> Confidence:
    scores = [score for _, score in data.best]
    return confidence_in(data.found.result, data.best[0][0], scores, is_narrowed=is_narrowed, goes_on=goes_on)


def _shown(
    tx: ReadTransaction, run: Run, query: SessionsQuery, data: SessionsFound, tokens: int | None
) -> tuple[list[dict[str, Any]], int]:
    """Return the sessions cut to so many tokens, or complete, and how many there are."""
    found, total, said = _latest(tx, run, data) if data.latest else _best_sessions(tx, run, query, data)
    written = _writer(data.found, said)
    if tokens is None:
        return [_complete(place, one, written) for place, one in enumerate(found)], total
    if lacking := [place for place, one in enumerate(found) if not one["summary"] and one["message_count"]]:
        # Making a summary takes long, so it is first checked which sessions have room for one.
        longest = {"summary": "." * FOUND, "summary_by": WRITER}
        with_room = fitted([one if one["summary"] else one | longest for one in found], tokens, written)
        add_summaries(tx, run, [found[place] for place in lacking if with_room[place].get("summary")], FOUND)
    return fitted(found, tokens, written), total


def _complete(place: int, session: Mapping[str, Any], written: Write) -> dict[str, Any]:
    matches = [
        {**written(place, "match", match), "context": [written(place, "line", line) for line in match["context"]]}
        for match in session["matches"]
    ]
    return {**session, "matches": matches}


# some sessions without the texts of their messages, how many there are in all, and each one's rows
Sessions = tuple[list[dict[str, Any]], int, Sequence["Rows"]]
Rows = Mapping[int, Any]  # messages by their `sequence`


def _latest(tx: ReadTransaction, run: Run, data: SessionsFound) -> Sessions:
    run.recorder.explain(by="the latest activity in scope", sessions=data.latest_total, **outcome(data.found.verdicts))
    items = _session_items(tx, list(data.latest))
    shown = [
        {**items[number], "score": None, "match_count": count, "matches": []}
        for number, count in data.latest.items()
        if number in items
    ]
    return shown, data.latest_total, ()


def _best_sessions(tx: ReadTransaction, run: Run, query: SessionsQuery, data: SessionsFound) -> Sessions:
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
    best = {number: [one.ranked.candidate.seq for one in some[:MATCHES]] for number, some in by_channel.items()}
    places = {number: best[number] for number, _ in page if best.get(number)}
    rows = surroundings(tx, places, query.context_window)
    shown = [
        {
            **items[number],
            "score": round(score, 3),
            "match_count": len(by_channel.get(number, ())),
            "matches": _matches(places[number], rows[number], query.context_window) if number in places else [],
        }
        for number, score in page
        if number in items
    ]
    said = [{row.seq + 1: row for row in rows.get(number, ())} for number, _ in page if number in items]
    return shown, len(scores), said


def _by_channel(verdicts: Iterable[Judged], most: int | None = None) -> dict[int, list[Judged]]:
    """Return the messages of each channel, best first, `most` of each."""
    groups: dict[int, list[Judged]] = defaultdict(list)
    for judged in verdicts:
        groups[judged.ranked.candidate.channel_id].append(judged)
    return {number: some[:most] for number, some in groups.items()}


def _session_items(tx: ReadTransaction, numbers: Sequence[int]) -> dict[int, dict[str, Any]]:
    rows, tags = channels_by_number(tx, numbers), tags_of(tx, numbers)
    items = {number: channel_item(row, tags[number]) for number, row in rows.items()}
    for one in items.values():
        one["summary"] = one["summary"] and preview_of(one["summary"], FOUND)
    return items


def _matches(places: Sequence[int], rows: Sequence[Any], window: int) -> list[dict[str, Any]]:
    """Return a channel's best messages, the first with those around it, all without their texts."""
    at = {row.seq: row for row in rows}
    best = [at[place] for place in places if place in at]
    around = [_line(row) for row in rows for one in best[:1] if 0 < abs(row.seq - one.seq) <= window]
    return [{**_line(row), "id": row.id, "context": [] if nth else around} for nth, row in enumerate(best)]


def _writer(found: Found, said: Sequence[Rows]) -> Write:
    """Return the function that adds the text to each match and line of these sessions."""

    @cache  # `fitted` may run twice
    def text_of(place: int, kind: str, sequence: int) -> str:
        row = said[place][sequence]
        query = _best_wording(found.result, row.number)
        return snippet(row.text, query) if kind == "match" else passage(row.text, query, AROUND)

    def written(place: int, kind: str, held: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**held, "snippet" if kind == "match" else "text": text_of(place, kind, held["sequence"])}

    return written


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
    held = found.held if found else 0
    return max(result.wordings, key=lambda wording: result.share(held, wording)).query


def _understood(data: SessionsFound) -> dict[str, Any]:
    return understood(data.found.read, data.found.result, relaxed=data.relaxed)


class SearchArguments(ToolArguments):
    other_names: ClassVar = {"q": "query", "text": "query"}
    query: Annotated[str, Field(min_length=1, max_length=4000)]
    also: Also | None = None
    limit: Limit = 10
    offset: Offset = 0
    project: ProjectName = "current"
    source: str | None = None
    tag: str | None = None
    context_window: Annotated[int, Field(ge=0, le=50)] = 2
    after_date: Annotated[Instant | None, Field(description=WHEN)] = None
    before_date: EndInstant | None = None
    current_session_id: Annotated[str | None, Field(min_length=1, description="only in it")] = None
    exclude_current: Annotated[bool, Field(description="all but current_session_id")] = False
    max_tokens: Annotated[int, Field(ge=1)] = 1500

    @classmethod
    def reshape(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Take a `query` apart that is an object, as `extract` has it."""
        query = given.get("query")
        if not isinstance(query, dict) or "text" not in query:
            return given
        return {**given, **{name: value for name, value in query.items() if name != "text"}, "query": query["text"]}

    def request(self, caller: Caller) -> SessionsRequest:
        if self.exclude_current and self.current_session_id is None:
            raise InvalidRequest(
                "Which session to exclude is not known.",
                "current_session_id: missing; allowed: the id or channel of this chat, with exclude_current",
            )
        query = SessionsQuery(
            **self.model_dump(include={"limit", "offset", "source", "tag", "context_window", "max_tokens"}),
            text=self.query,
            also=self.also or [],
            project=project_of(self.project, caller.project),
            from_=self.after_date,
            to=self.before_date,
            exclude_session=self.current_session_id if self.exclude_current else None,
            utc_offset_minutes=utc_offset_minutes(),
        )
        only = None if self.exclude_current else self.current_session_id
        return SessionsRequest(channel=only, query=query, source=caller.source)

    async def result(self, outcome: Outcome, caller: Caller) -> dict[str, Any]:
        return search_result({**outcome, **searched_project(self.project, caller.project)})


def search_result(outcome: Outcome) -> dict[str, Any]:
    """Return the sessions found with where was looked; `understood` says how the query was read."""
    names = ("sessions", "confidence", "pagination", "project", "note", "understood", "elsewhere")
    return present(outcome, *names, "syncing", "local_copy")


SEARCH_TOOL = Tool(
    name="search_sessions",
    title="Search past sessions",
    description="Search PAST conversations with any AI client: the user's own words as query and always 3-4 other "
    'wordings as also. Use it for "how did I implement…", "we discussed…", "지난번에 얘기한…". query may hold '
    "-word, tag:api, source:codex, after:2026-01 and times in words (yesterday, 지난주). "
    "Then read one with fetch_session_by_id.",
    effect=Effect.READS,
    arguments=SearchArguments,
    returns=["quoted", "sessions", "confidence", "pagination", "project", "understood"],
    example={"query": "login tag:api", "also": ["sign-in", "로그인"], "project": "all"},
    quotes=True,
)
OPERATION = Operation(
    request=SessionsRequest,
    level=Level.READ,
    syncs_first=True,
    steps=Steps[SessionsRequest, SessionsFound](
        query=find_sessions,
        keep=keep_sessions,
        relax=lambda data: data.relaxation,
        better=better,
        subject=lambda request: subject_of(request.query.text),
    ),
    tools=[SEARCH_TOOL],
    labels={
        "context_window": ("messages around each match", "앞뒤 메시지 수"),
        "exclude_session": ("without the conversation", "뺀 대화"),
    },
)
