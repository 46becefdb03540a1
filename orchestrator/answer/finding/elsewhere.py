"""Name what is nearest if nothing was found in the time or place of a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any, NamedTuple

from orchestrator.answer.finding.looking_up import Lookup, Query, local_time
from orchestrator.answer.finding.relevance import CLOSE, best_channels, judge
from orchestrator.recording.recorder import Recorder
from orchestrator.requests.queries import ListQuery, SessionsQuery
from orchestrator.requests.shapes import ListRequest, Request, SessionsRequest
from orchestrator.state import Run
from registry.domain import format_time, parse_time, preview_of
from registry.errors import NotFound
from registry.project import Project
from registry.search.scope import Scope, nearest_times
from registry.storage.conversations.channels import ChannelRow, channels_by_number
from registry.storage.conversations.facets import known_names, tags_like
from registry.storage.conversations.messages import MessageRow, by_numbers
from registry.storage.database import ReadTransaction

HELD = 0.3
"""Share of the request that a conversation of another time must hold to be named."""
TITLE = 60
"""Characters of a title in a sentence."""


class About(NamedTuple):
    """A conversation of another time that holds the words of a request: when it spoke of it, and the message that does,
    if not only its title does."""

    channel: ChannelRow
    at: datetime
    message: MessageRow | None = None

    def spoken(self, utc_offset_minutes: int | None) -> str:
        """As a sentence names it."""
        zone = local_time(utc_offset_minutes).tzinfo
        title = preview_of(self.channel.title or self.channel.first_message_preview or "", TITLE)
        named = f"“{title}” ({self.channel.name})" if title else self.channel.name
        return f"{self.at.astimezone(zone):%Y-%m-%d %H:%M}, {named}"


def nearest_about(asked: Lookup[Query]) -> About | None:
    """Return the conversation nearest in time among those that hold the words best."""
    anywhen = asked.at_any_time()
    if not anywhen.said.has_words:
        return None
    tx, found = asked.tx, anywhen.find()
    verdicts = [one for one in judge(found) if one.reason is None and one.coverage > 0]
    scores = best_channels(found)
    close = [number for number, score in scores if score >= CLOSE * scores[0][1] and found.covered(number) >= HELD]
    best = {one.ranked.candidate.channel_id: one.ranked.candidate.number for one in reversed(verdicts)}
    lines = {row.channel_number: row for row in by_numbers(tx, [best[number] for number in close if number in best])}
    abouts = [_about(row, lines.get(row.number)) for row in channels_by_number(tx, close).values()]
    return min(abouts, key=lambda one: (_apart(one.at, asked.scope), one.channel.number), default=None)


def _about(row: ChannelRow, message: MessageRow | None) -> About:
    if message is None:
        return About(row, row.updated_at)
    return About(row, message.timestamp, message)


def _apart(at: datetime, scope: Scope) -> timedelta:
    ends = [end for end in (scope.from_, scope.to) if end]
    return min((abs(at - end) for end in ends), default=timedelta())


def note_of(about: About | None, scope: Scope, utc_offset_minutes: int | None) -> str:
    """Return the note of an answer in which only the time was kept to."""
    nearest = f" Nearest: {about.spoken(utc_offset_minutes)}." if about else ""
    return f"Nothing about it from {spoken_span(scope, utc_offset_minutes)}: this is what was said then.{nearest}"


def spoken_span(scope: Scope, utc_offset_minutes: int | None) -> str:
    """A span as a sentence names it, in the user's zone."""
    zone = local_time(utc_offset_minutes).tzinfo
    return " to ".join(f"{at.astimezone(zone):%Y-%m-%d %H:%M}" for at in (scope.from_, scope.to) if at)


def nothing_found(text: str | None, nearest: Sequence[str] = ()) -> NotFound:
    """Return the error for a request that nothing answers; `nearest`: titles that may be meant."""
    about = f"for query: '{text}'" if text else "in the registry"
    titles = f"; nearest: {', '.join(f'“{title}”' for title in nearest)}" if nearest else ""
    return NotFound("No matching conversations found", f"No conversations found {about}{titles}")


def nothing_then(asked: Lookup[Query]) -> NotFound:
    """Return the error for a time or place without messages; it names what is nearest."""
    text, offset = asked.query.text, asked.query.utc_offset_minutes
    zone = local_time(offset).tzinfo
    near = ", ".join(f"{moment.astimezone(zone):%Y-%m-%d %H:%M}" for moment in nearest_times(asked.tx, asked.scope))
    when = spoken_span(asked.scope, offset)
    about = nearest_about(asked) if asked.said.search.when_words else None
    spoken = [
        f"No conversations found for query: '{text}'" if text else "No conversations found",
        f"nothing from {when}" if when else "",
        f"nearest: {near}" if near else "",
        f"about it: {about.spoken(offset)}" if about else "",
    ]
    return NotFound("No matching conversations found", "; ".join(filter(None, spoken)))


Answer = Callable[[Run, Request], Awaitable[dict[str, Any]]]
"""Carries out an operation that only reads, once more."""
TAGS = 20
NEAR = 3
"""Number of folders with similar names that are named."""


async def elsewhere(run: Run, request: Request, result: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
    """Return where such sessions are, in other folders and at other times, if nothing was found; empty if nowhere.

    For a guess: the other folders in which it is none.
    """
    query = request.query if isinstance(request, ListRequest | SessionsRequest) else None
    if query is None:
        return {}
    if result.get("confidence") == "low":
        return await _in_other_folders(run, request, query, answer, but_guesses=True)
    read = result.get("understood", {})
    nearest = await run.registry.read(lambda tx: {**_nearest(tx, query, read), **_known_tags(tx, query, read)})
    return {**nearest, **await _in_other_folders(run, request, query, answer)}


def _nearest(tx: ReadTransaction, query: ListQuery | SessionsQuery, read: Mapping[str, Any]) -> dict[str, Any]:
    given = (query.since, query.until) if isinstance(query, ListQuery) else (query.from_, query.to)
    from_, to = (parse_time(read[name]) if name in read else at for name, at in zip(("from", "to"), given, strict=True))
    place = Scope(sources=[query.source] if query.source else read.get("sources", ()), project=query.project)
    times = nearest_times(tx, replace(place, from_=from_, to=to)) if from_ or to else []
    return {"nearest": [format_time(moment) for moment in times]} if times else {}


def _known_tags(tx: ReadTransaction, query: ListQuery | SessionsQuery, read: Mapping[str, Any]) -> dict[str, Any]:
    """The tags there are, where one was named that no session carries."""
    wanted = {query.tag, *read.get("tags", ())} - {None}
    known = tags_like(tx, "", TAGS) if wanted else []
    return {"tags": known} if known and not wanted & set(known) else {}


async def _in_other_folders(
    run: Run, request: Request, query: ListQuery | SessionsQuery, answer: Answer, *, but_guesses: bool = False
) -> dict[str, Any]:
    """Return the number in all, in a folder of the same name, and folders with similar names."""
    if query.project is None:
        return {}
    recorder = Recorder(request.operation, request.source, None, None)
    aside = replace(run, recorder=recorder)

    async def sessions(project: str | None) -> tuple[int, str | None]:
        as_rows = {"as_lines": False} if isinstance(query, ListQuery) else {}
        wider = query.model_copy(update={"project": project, "limit": 1, "offset": 0, **as_rows})
        with recorder.step("elsewhere"):
            found = await answer(aside, request.model_copy(update={"query": wider}))
        total = 0 if but_guesses and found.get("confidence") == "low" else found["pagination"]["total"]
        return total, found["sessions"][0].get("project_path") if found["sessions"] else None

    total, _ = await sessions(None)
    wanted = Project.from_path(query.project).name
    named, path = await sessions(wanted) if total else (0, None)
    same_name = {"same_name": {"path": path, "count": named}} if named else {}
    near = [] if named else await run.registry.read(lambda tx: _called_nearly(tx, wanted))
    return {"all": total, **same_name, **({"projects": near} if near else {})} if total else {}


def _called_nearly(tx: ReadTransaction, wanted: str) -> list[str]:
    names = sorted({name for name, _ in known_names(tx).projects})
    written = {name.casefold(): name for name in names}
    return [written[name] for name in get_close_matches(wanted.casefold(), written, NEAR)]
