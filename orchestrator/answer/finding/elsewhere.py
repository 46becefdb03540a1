"""Find the nearest matches outside the time or place of a request in which nothing was found."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from orchestrator.answer.finding.lookup import Lookup, Query, local_time
from orchestrator.answer.finding.relevance import CLOSE_SCORE, best_channels, judge_messages
from orchestrator.recording.recorder import Recorder
from orchestrator.requests.shapes import ListQuery, ListRequest, Request, SessionsRequest
from orchestrator.state import Run
from registry.domain import preview_of
from registry.errors import NotFound
from registry.project import Project
from registry.search.scope import Scope, nearest_times
from registry.storage.conversations.channels import ChannelRow, channels_by_number
from registry.storage.conversations.messages import MessageRow, by_numbers

MIN_COVERAGE = 0.3  # smallest share of the request of a conversation of another time that is mentioned
TITLE_WIDTH = 60  # characters of a title in a sentence


class OtherTimeMatch(NamedTuple):
    """A matching conversation of another time, and its best message; no message if only the title matches."""

    channel: ChannelRow
    message: MessageRow | None = None

    @property
    def at(self) -> datetime:
        at: datetime = self.message.timestamp if self.message else self.channel.updated_at
        return at

    def format(self, utc_offset_minutes: int | None) -> str:
        """Format it for a sentence."""
        zone = local_time(utc_offset_minutes).tzinfo
        title = preview_of(self.channel.title or self.channel.first_message_preview or "", TITLE_WIDTH)
        named = f"“{title}” ({self.channel.name})" if title else self.channel.name
        return f"{self.at.astimezone(zone):%Y-%m-%d %H:%M}, {named}"


def nearest_other_time(lookup: Lookup[Query]) -> OtherTimeMatch | None:
    """Return the conversation nearest in time among the best matches of the words at any time."""
    anywhen = lookup.at_any_time()
    if not anywhen.parsed.has_words:
        return None
    tx, found = lookup.tx, anywhen.find()
    verdicts = [one for one in judge_messages(found) if one.reason is None and one.coverage > 0]
    scores = best_channels(found)
    close = [
        number
        for number, score in scores
        if score >= CLOSE_SCORE * scores[0][1] and found.coverage(number) >= MIN_COVERAGE
    ]
    best = {one.ranked.candidate.channel_id: one.ranked.candidate.number for one in reversed(verdicts)}
    lines = {row.channel_number: row for row in by_numbers(tx, [best[number] for number in close if number in best])}
    matches = [OtherTimeMatch(row, lines.get(row.number)) for row in channels_by_number(tx, close).values()]
    return min(matches, key=lambda one: (_distance_to_scope(one.at, lookup.scope), one.channel.number), default=None)


def _distance_to_scope(at: datetime, scope: Scope) -> timedelta:
    ends = [end for end in (scope.from_, scope.to) if end]
    return min((abs(at - end) for end in ends), default=timedelta())


def other_time_note(other_time: OtherTimeMatch | None, scope: Scope, utc_offset_minutes: int | None) -> str:
    """Return the note of an answer that matches the time but not the words."""
    nearest = f" Nearest: {other_time.format(utc_offset_minutes)}." if other_time else ""
    return f"Nothing about it from {format_span(scope, utc_offset_minutes)}: this is what was said then.{nearest}"


def format_span(scope: Scope, utc_offset_minutes: int | None) -> str:
    """Format a time span for a sentence ("from …"), in the user's zone; empty without limits."""
    zone = local_time(utc_offset_minutes).tzinfo
    start, end = (at and f"{at.astimezone(zone):%Y-%m-%d %H:%M}" for at in (scope.from_, scope.to))
    if start and end:
        return f"{start} to {end}"
    return f"{start} on" if start else f"before {end}" if end else ""


def no_match_error(text: str | None, nearest: Sequence[str] = ()) -> NotFound:
    """Return the error for a request without an answer; `nearest`: titles of similar conversations."""
    about = f"for query: '{text}'" if text else "in the registry"
    titles = f"; nearest: {', '.join(f'“{title}”' for title in nearest)}" if nearest else ""
    return NotFound("No matching conversations found", f"No conversations found {about}{titles}")


def empty_scope_error(lookup: Lookup[Query]) -> NotFound:
    """Return the error for a scope without messages; it names the nearest times."""
    text, offset = lookup.query.text, lookup.query.utc_offset_minutes
    zone = local_time(offset).tzinfo
    times = nearest_times(lookup.tx, lookup.scope)
    nearest = ", ".join(f"{at.astimezone(zone):%Y-%m-%d %H:%M}" for at in times)
    when = format_span(lookup.scope, offset)
    other_time = nearest_other_time(lookup) if lookup.parsed.search.when_words else None
    details = [
        f"No conversations found for query: '{text}'" if text else "No conversations found",
        f"nothing from {when}" if when else "",
        f"nearest: {nearest}" if nearest else "",
        f"about it: {other_time.format(offset)}" if other_time else "",
    ]
    return NotFound("No matching conversations found", "; ".join(filter(None, details)))


Answer = Callable[[Run, Request], Awaitable[dict[str, Any]]]  # runs a read-only operation again


async def count_elsewhere(run: Run, request: Request, result: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
    """Count matching sessions in all folders, and in one with the same name; return nothing if there are none.

    If the answer is a guess, guesses in other folders do not count.
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
