"""Search: messages by what they say, and sessions by what was said in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from orchestrator.answer.delivery import delivered, fits, message_dict
from orchestrator.answer.digests.summaries import FOUND, add_summaries
from orchestrator.answer.finding.looking_up import Lookup, ask, find, local_time, understood, without_the_asking_chat
from orchestrator.answer.finding.other_channels import most_likely_first
from orchestrator.answer.finding.other_times import About, nearest_about
from orchestrator.answer.finding.relevance import (
    Judged,
    best_channels,
    confidence_in,
    explanation,
    guess,
    judge,
    outcome,
)
from orchestrator.answer.fitting import as_many_as_fit, fitted, tokens_for
from orchestrator.queries import SearchQuery, SessionsQuery
from orchestrator.requests import SearchRequest, SessionsRequest
from orchestrator.state import Run, Steps
from registry.domain import format_time, preview_of
from registry.errors import NotFound
from registry.search.retrieval import SearchResult, Wording
from registry.search.scope import Scope
from registry.search.sessions import latest_sessions, messages_in, surroundings
from registry.storage.conversations.channels import channel_item, channels_by_number, get_channel, tags_of
from registry.storage.conversations.messages import MessageFilter, MessageRow, by_numbers, list_messages
from registry.storage.conversations.references import resolve_session
from registry.storage.database import ReadTransaction
from registry.storage.paging import Order, Page, decode_cursor, encode_cursor
from registry.text.ranking.confidence import Confidence
from registry.text.ranking.matching import matched_words
from registry.text.ranking.snippets import snippet
from registry.text.ranking.term_weights import coverage
from registry.text.request.query import ParsedQuery
from registry.text.request.syntax import Search
from registry.text.request.understanding import Understood, understand

MATCHES = 3
"""How many matches of a session are shown."""
HEAD = 6
"""So many of the best sessions are looked at for what else speaks for them than their scores."""


LEAST_COVERAGE = 0.2
"""A message that holds less than this share of every wording is no hit in a list of hits."""


@dataclass(frozen=True)
class Found:
    """What a request was read as, what it found, and the verdict on each message."""

    read: Understood
    result: SearchResult
    verdicts: Sequence[Judged]
    least: float = LEAST_COVERAGE
    listed: Scope | None = None
    """Where all that was said is meant, because a time or place is named and no words are."""

    @cached_property
    def best(self) -> list[tuple[int, float]]:
        """The channels with their scores, best first."""
        return best_channels(self.result, self.verdicts)

    @property
    def kept(self) -> list[Judged]:
        """The messages that have to do with it themselves; those that only stand beside one are no hits."""
        matched = self.result.matched
        similar = self.result.similar.standing_out if self.result.similar else frozenset()
        return [
            one
            for one in self.verdicts
            if (one.ranked.candidate.number in matched and one.coverage >= self.least)
            or one.ranked.candidate.number in similar
        ]


def find_in_registry(tx: ReadTransaction, run: Run, request: SearchRequest) -> Found:
    """What the whole registry, or one channel of it, holds about some words."""
    query = request.query
    channel = get_channel(tx, request.channel) if request.channel else None
    given = Scope(
        channel_number=channel.number if channel else None,
        sources=[query.source] if query.source else [],
        project=query.project,
        tags=[query.tag] if query.tag else [],
        roles=query.roles,
        from_=query.from_,
        to=query.to,
    )
    read, scope = ask(tx, query.text, None, given)
    result = find(tx, run, read, scope)
    run.recorder.explain(channel=channel.name if channel else None, **explanation(result))
    is_span = read.is_narrowed and not _is_about_something(read, result)
    least = _least(run, query)
    return Found(read, result, judge(result), least, replace(scope, roles=scope.roles or SPOKEN) if is_span else None)


def _least(run: Run, query: SearchQuery | SessionsQuery) -> float:
    """The share of the request that makes a hit; noted where another than the usual one is tried."""
    if query.least_coverage is None:
        return LEAST_COVERAGE
    run.recorder.explain(least_coverage=query.least_coverage)
    return query.least_coverage


def _is_about_something(read: Understood, result: SearchResult) -> bool:
    return bool(any(wording.terms for wording in result.wordings) or read.has_words or read.search.excluded)


async def keep_messages(run: Run, request: SearchRequest, data: Found) -> dict[str, Any]:
    """A page of the relevant messages, best first or by time."""
    run.recorder.explain(**outcome(data.verdicts))
    shown = await run.registry.read(lambda tx: _page(tx, request.query, data))
    return {**shown, "understood": understood(data.read, data.result)}


def _page(tx: ReadTransaction, query: SearchQuery, data: Found) -> dict[str, Any]:
    if data.listed:
        paged = messages_in(tx, data.listed, Page(query.limit, query.cursor, query.order or "desc"))
        return _listed(paged.answer([{**_shown(row), "score": None, "words": []} for row in paged.rows]))
    return _by_time(tx, query, data, query.order) if query.order else _best(tx, query, data)


def _best(tx: ReadTransaction, query: SearchQuery, data: Found) -> dict[str, Any]:
    start = max(decode_cursor(query.cursor, o=int)["o"], 0) if query.cursor else 0
    page = data.kept[start : start + query.limit]
    rows = {row.number: row for row in by_numbers(tx, [judged.ranked.candidate.number for judged in page])}
    messages = [
        {
            **_shown(row),
            "score": round(judged.score, 3),
            "words": list(matched_words(data.result.query, row.text)),
        }
        for judged in page
        if (row := rows.get(judged.ranked.candidate.number))
    ]
    end = start + len(page)
    metadata: dict[str, Any] = {"total_count": len(data.kept), "filtered_count": len(messages)}
    if end < len(data.kept):
        metadata["next_cursor"] = encode_cursor({"o": end})
    return {"messages": messages, "metadata": metadata}


def _shown(row: MessageRow) -> dict[str, Any]:
    return {**delivered(message_dict(row)), "channel": row.channel, "source": row.source}


def _by_time(tx: ReadTransaction, query: SearchQuery, data: Found, order: Order) -> dict[str, Any]:
    numbers = [judged.ranked.candidate.number for judged in data.kept]
    return _listed(list_messages(tx, MessageFilter(numbers=numbers), Page(query.limit, query.cursor, order)))


def _listed(page: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"total_count": page["total"], "filtered_count": len(page["items"])}
    if page["next_cursor"]:
        metadata["next_cursor"] = page["next_cursor"]
    return {"messages": page["items"], "metadata": metadata}


@dataclass(frozen=True, slots=True)
class SessionsFound:
    """A search for sessions; without words, the latest ones in scope (number, messages) and how many there are."""

    found: Found
    relaxed: str = ""
    """`words` where these were given up, because nothing in the time or place that was named has to do with them;
    `time` where that was, because somebody wants to go on with what was said at another."""
    about: About | None = None
    """The session of another time that has to do with them, where a time was named."""
    latest: Mapping[int, int] = field(default_factory=dict)
    latest_total: int = 0

    @property
    def holds_any(self) -> bool:
        """Whether there is a session to show."""
        return bool(self.found.kept or self.latest_total)


def find_sessions(tx: ReadTransaction, run: Run, request: SessionsRequest) -> SessionsFound:
    """Read the search, look it up. A time that was named holds: words are given up before it is."""
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
    if read.in_passing and inside is None:
        data = _there_or_anywhere(asked, read.in_passing)
    else:
        data = _look(asked)
        if read.week_before and not data.holds_any:
            before = _look(asked.a_week_before(read.week_before))
            data = before if before.holds_any else data
    run.recorder.explain(**explanation(data.found.result), understood=_understood(data))
    return data


def _there_or_anywhere(asked: Lookup[SessionsQuery], passing: Search) -> SessionsFound:
    """A project's or a client's name among the words may say where, or be a word like others: as `extract` decides."""
    inside = _look(asked.there(passing))
    inside = replace(inside, found=replace(inside.found, read=asked.said))
    if _is_sure(inside.found):
        return inside
    anywhere = _look(asked)
    return inside if inside.found.kept and not _is_sure(anywhere.found) else anywhere


def _look(asked: Lookup[SessionsQuery]) -> SessionsFound:
    """What is asked, looked up; what of it was given up, where that had to be."""
    tx, read, scope, query = asked.tx, asked.said, asked.scope, asked.query
    data = _found(asked)
    if read.goes_on and read.search.when_words and read.has_words and not _is_sure(data.found):
        anywhen = _found(asked.at_any_time(), relaxed="time")
        if _is_sure(anywhen.found) or (anywhen.found.kept and not data.found.kept):
            return anywhen
    has_named = bool(read.search.when_words or read.sources)
    is_about_something = _is_about_something(read, data.found.result)
    if not is_about_something or (has_named and not data.found.kept):
        latest, total = latest_sessions(tx, scope, query.limit, query.offset)
        relaxed = "words" if is_about_something else ""
        data = replace(data, relaxed=relaxed, latest=dict(latest), latest_total=total)
        if relaxed and read.search.when_words:
            data = replace(data, about=nearest_about(asked))
    return data


def _found(asked: Lookup[SessionsQuery], relaxed: str = "") -> SessionsFound:
    """What is asked for, looked up; `relaxed`: what of it was given up before."""
    result = asked.find()
    return SessionsFound(Found(asked.said, result, judge(result), _least(asked.run, asked.query)), relaxed)


def _is_sure(found: Found) -> bool:
    """Whether its best session is no guess, also without what narrows it."""
    best = found.best if found.kept else []
    scores = [score for _, score in best]
    return bool(best) and confidence_in(found.result, best[0][0], scores) is not Confidence.LOW


SPOKEN = ["user", "assistant"]
"""Who speaks in a conversation: what tools said, and what a client put in, is not why one is found."""


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
    tokens = tokens_for(run.recorder.client, request.query.max_tokens, run.answer_characters)
    shown = within_client(run, fitted(shown, tokens))
    place = pagination(total, request.query.limit, request.query.offset, len(shown))
    told = {"sessions": shown, "pagination": place, "understood": _understood(data), **_trust(run, data)}
    return told | ({"elsewhere": {"about_it": _told(data.about)}} if data.about else {})


def _told(about: About) -> dict[str, Any]:
    """When it was spoken of instead, and where."""
    row = about.channel
    named = {"session_id": row.session_id or row.name, "title": row.title or row.first_message_preview}
    return {**named, "timestamp": format_time(about.at), "snippet": about.evidence}


def _trust(run: Run, data: SessionsFound) -> dict[str, Any]:
    """How sure it is that the best session answers; nothing where no words were looked for."""
    best = [] if data.latest else data.found.best
    if not best:
        return {}
    scores = [score for _, score in best]
    read = data.found.read
    sure = confidence_in(data.found.result, best[0][0], scores, is_narrowed=read.is_narrowed, goes_on=read.goes_on)
    run.recorder.explain(confidence=sure.value)
    return {"confidence": sure.value} | ({"guess": guess(GUESS, data.found.result)} if sure is Confidence.LOW else {})


GUESS = "These are guesses: little of what was asked stands in any session. Say so, or ask with other wordings (also)."


def _latest(tx: ReadTransaction, run: Run, data: SessionsFound) -> tuple[list[dict[str, Any]], int]:
    run.recorder.explain(by="the latest activity in scope", sessions=data.latest_total, **outcome(data.found.verdicts))
    items = _session_items(tx, run, list(data.latest))
    return [
        {**items[number], "score": None, "match_count": count, "matches": []}
        for number, count in data.latest.items()
        if number in items
    ], data.latest_total


def _best_sessions(
    tx: ReadTransaction, run: Run, query: SessionsQuery, found: Found
) -> tuple[list[dict[str, Any]], int]:
    scores = _most_likely_first(tx, found.best, found)
    page = scores[query.offset : query.offset + query.limit]
    items = _session_items(tx, run, [number for number, _ in page])
    run.recorder.explain(
        sessions=len(scores),
        channels=[{"channel": items[n]["channel"], "score": round(score, 3)} for n, score in page if n in items],
        **outcome(found.verdicts),
    )
    # One of the first that is named for what it is near to shows its best passage, too; of all there is no room.
    first = [number for number, _ in page[:MATCHES]]
    near = (one for one in found.verdicts if one.ranked.candidate.channel_id in first)
    by_channel = _by_channel(near, 1) | _by_channel(found.kept)
    matches = _matches(tx, {number: by_channel.get(number, [])[:MATCHES] for number, _ in page}, query, found)
    return [
        {
            **items[number],
            "score": round(score, 3),
            "match_count": len(by_channel.get(number, ())),
            "matches": matches.get(number, []),
        }
        for number, score in page
        if number in items
    ], len(scores)


def _most_likely_first(
    tx: ReadTransaction, scores: Sequence[tuple[int, float]], found: Found
) -> list[tuple[int, float]]:
    """The same, the first of them in the order of `extract`."""
    return [*most_likely_first(tx, scores[:HEAD], found.result, found.read), *scores[HEAD:]]


def _by_channel(verdicts: Iterable[Judged], most: int | None = None) -> dict[int, list[Judged]]:
    """The messages of each channel, best first; `most`: of each no more."""
    groups: dict[int, list[Judged]] = defaultdict(list)
    for judged in verdicts:
        groups[judged.ranked.candidate.channel_id].append(judged)
    return {number: some[:most] for number, some in groups.items()}


def _session_items(tx: ReadTransaction, run: Run, numbers: Sequence[int]) -> dict[int, dict[str, Any]]:
    rows, tags = channels_by_number(tx, numbers), tags_of(tx, numbers)
    items = {number: channel_item(row, tags[number]) for number, row in rows.items()}
    add_summaries(tx, run, list(items.values()), FOUND, rows.values())
    return items


def _matches(
    tx: ReadTransaction, best: Mapping[int, Sequence[Judged]], query: SessionsQuery, found: Found
) -> dict[int, list[dict[str, Any]]]:
    """Of each channel its best messages, each with the messages around it."""
    places = {number: [one.ranked.candidate.seq for one in judged] for number, judged in best.items() if judged}
    rows = surroundings(tx, places, query.context_window)
    return {number: _matches_at(places[number], rows[number], query, found) for number in places}


def _matches_at(places: Sequence[int], rows: Sequence[Any], query: SessionsQuery, found: Found) -> list[dict[str, Any]]:
    at = {row.seq: row for row in rows}
    phrases = [*found.read.search.phrases, *found.read.search.prefixes]
    return [
        {
            **_line(at[place]),
            "id": at[place].id,
            "snippet": snippet(at[place].text, _best_wording(found.result, at[place].number), phrases),
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
    line = {"role": row.role, "sequence": row.seq + 1, "timestamp": format_time(row.timestamp)}
    return line | ({"time": row.time} if row.time else {})


def pagination(total: int, limit: int, offset: int, shown: int) -> dict[str, Any]:
    """Where a part stands in the whole; `next_offset` where fewer were shown than there was room for."""
    place = {"total": total, "limit": limit, "offset": offset, "has_more": offset + shown < total}
    return place | ({"next_offset": offset + shown} if place["has_more"] and shown < limit else {})


def within_client(run: Run, sessions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many of the sessions as reach the model behind the asking client."""
    client, setting = run.recorder.client, run.answer_characters
    return as_many_as_fit(sessions, lambda some: fits(client, setting, {"sessions": some}))


def _best_wording(result: SearchResult, number: int) -> ParsedQuery:
    """The wording of which a message holds most: its passages are shown."""
    return max(result.wordings, key=lambda wording: _share(wording, number)).query


def _share(wording: Wording, number: int) -> float:
    held = wording.candidates.get(number)
    return coverage(held.weight, wording.full) if held else 0.0


def _understood(data: SessionsFound) -> dict[str, Any]:
    return understood(data.found.read, data.found.result, relaxed=data.relaxed)


def _subject(request: SearchRequest | SessionsRequest) -> str:
    search = understand(request.query.text, local_time(None)).search
    return " ".join([search.words, *search.phrases])


SEARCH = Steps[SearchRequest, Found](query=find_in_registry, keep=keep_messages, subject=_subject)
SESSIONS = Steps[SessionsRequest, SessionsFound](query=find_sessions, keep=keep_sessions, subject=_subject)
