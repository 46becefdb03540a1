"""Where nothing of a request was said in the time that it names: what is told of it, and when it was said instead."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from orchestrator.answer.finding.looking_up import Lookup, Query, local_time
from orchestrator.answer.finding.other_channels import CLOSE, candidate
from orchestrator.answer.finding.relevance import best_channels, judge
from registry.domain import preview_of
from registry.errors import NotFound
from registry.search.retrieval import SearchResult
from registry.search.scope import Scope
from registry.search.sessions import nearest_times
from registry.storage.conversations.channels import ChannelRow, channels_by_number
from registry.storage.conversations.messages import MessageRow, by_numbers
from registry.text.ranking.snippets import snippet

HELD = 0.3
"""So much of the request must a conversation hold to be named as the one of another time."""
TITLE = 60
"""Characters of a title in a sentence."""


class About(NamedTuple):
    """A conversation of another time that holds the words of a request: when it spoke of it, and the line that does,
    which is empty where only its title does."""

    channel: ChannelRow
    at: datetime
    evidence: str

    def spoken(self, utc_offset_minutes: int | None) -> str:
        """As a sentence names it."""
        zone = local_time(utc_offset_minutes).tzinfo
        title = preview_of(self.channel.title or self.channel.first_message_preview or "", TITLE)
        named = f"“{title}” ({self.channel.name})" if title else self.channel.name
        return f"{self.at.astimezone(zone):%Y-%m-%d %H:%M}, {named}"


def nearest_about(asked: Lookup[Query]) -> About | None:
    """Of the conversations of other times that hold the words of a request best, the one nearest to its time."""
    anywhen = asked.at_any_time()
    if not anywhen.said.has_words:
        return None
    tx, found = asked.tx, anywhen.find()
    verdicts = [one for one in judge(found) if one.reason is None and one.coverage > 0]
    scores = best_channels(found, verdicts)
    close = [
        number
        for number, score in scores
        if score >= CLOSE * scores[0][1] and max(one.covered for one in found.evidence(number)) >= HELD
    ]
    best = {one.ranked.candidate.channel_id: one.ranked.candidate.number for one in reversed(verdicts)}
    lines = {row.channel_number: row for row in by_numbers(tx, [best[number] for number in close if number in best])}
    abouts = [_about(row, lines.get(row.number), found) for row in channels_by_number(tx, close).values()]
    return min(abouts, key=lambda one: (_apart(one.at, asked.scope), one.channel.number), default=None)


def _about(row: ChannelRow, message: MessageRow | None, found: SearchResult) -> About:
    if message is None:
        return About(row, row.updated_at, "")
    return About(row, message.timestamp, snippet(message.text, found.query))


def _apart(at: datetime, scope: Scope) -> timedelta:
    ends = [end for end in (scope.from_, scope.to) if end]
    return min((abs(at - end) for end in ends), default=timedelta())


def with_nearest(beside: Mapping[str, Any], about: About | None, row: ChannelRow) -> dict[str, Any]:
    """The candidates, first of them the conversation of another time that holds the words."""
    if about is None or about.channel.number == row.number:
        return dict(beside)
    others = [one for one in beside["candidates"] if one["channel"] != about.channel.name]
    lines = [{"text": about.evidence}] if about.evidence else []
    return {**beside, "candidates": [candidate(about.channel, lines=lines), *others]}


def note_of(about: About | None, scope: Scope, utc_offset_minutes: int | None) -> str:
    """What is said where only the time was kept to."""
    nearest = f" Nearest: {about.spoken(utc_offset_minutes)}." if about else ""
    return f"Nothing about it from {spoken_span(scope, utc_offset_minutes)}: this is what was said then.{nearest}"


def spoken_span(scope: Scope, utc_offset_minutes: int | None) -> str:
    """A span as a sentence names it, in the user's zone."""
    zone = local_time(utc_offset_minutes).tzinfo
    return " to ".join(f"{at.astimezone(zone):%Y-%m-%d %H:%M}" for at in (scope.from_, scope.to) if at)


def nothing_found(text: str | None) -> NotFound:
    """Nothing anywhere."""
    about = f"for query: '{text}'" if text else "in the registry"
    return NotFound("No matching conversations found", f"No conversations found {about}")


def nothing_then(asked: Lookup[Query]) -> NotFound:
    """Nothing in the time or place that was named: what is nearest, and when it was spoken of."""
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
