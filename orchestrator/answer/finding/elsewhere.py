"""Name what is nearest if nothing was found in the time or place of a request."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from orchestrator.answer.finding.looking_up import Lookup, Query, local_time
from orchestrator.answer.finding.relevance import CLOSE, best_channels, judge
from orchestrator.recording.recorder import Recorder
from orchestrator.requests.shapes import ListQuery, ListRequest, Request, SessionsRequest
from orchestrator.state import Run
from registry.domain import preview_of
from registry.errors import NotFound
from registry.project import Project
from registry.search.scope import Scope, nearest_times
from registry.storage.conversations.channels import ChannelRow, channels_by_number
from registry.storage.conversations.messages import MessageRow, by_numbers

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
    close = [number for number, score in scores if score >= CLOSE * scores[0][1] and found.coverage(number) >= HELD]
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


async def elsewhere(run: Run, request: Request, result: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
    """Return how many such sessions are in all folders, and in one of the same name; empty if nowhere.

    Beside a guess, a folder in which it is a guess, too, counts as none.
    """
    query = request.query if isinstance(request, ListRequest | SessionsRequest) else None
    if query is None or query.project is None:
        return {}
    is_guess = result.get("confidence") == "low"
    recorder = Recorder(request.operation, request.source, None, None)
    aside = replace(run, recorder=recorder)

    async def sessions(project: str | None) -> tuple[int, str | None]:
        as_rows = {"as_lines": False} if isinstance(query, ListQuery) else {}
        wider = query.model_copy(update={"project": project, "limit": 1, "offset": 0, **as_rows})
        with recorder.step("elsewhere"):
            found = await answer(aside, request.model_copy(update={"query": wider}))
        total = 0 if is_guess and found.get("confidence") == "low" else found["pagination"]["total"]
        return total, found["sessions"][0].get("project_path") if found["sessions"] else None

    total, _ = await sessions(None)
    named, path = await sessions(Project.from_path(query.project).name) if total else (0, None)
    same_name = {"same_name": {"path": path, "count": named}} if named else {}
    return {"all": total, **same_name} if total else {}
