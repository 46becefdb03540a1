"""Choose the conversation that answers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from orchestrator.answer.finding.elsewhere import empty_scope_error, format_span, no_match_error
from orchestrator.answer.finding.lookup import Lookup
from orchestrator.answer.finding.relevance import JudgedMessage, best_channels, judge_messages
from orchestrator.requests.shapes import ExtractQuery
from registry.domain import is_within, now, preview_of
from registry.errors import NotFound
from registry.search.candidates import CANDIDATES
from registry.search.retrieval import SearchResult
from registry.search.sessions import list_latest_sessions
from registry.storage.conversations.channels import ChannelRow, channels_by_number, recent_channels
from registry.text.request.understanding import ParsedRequest

MAX_CHOICES = 5  # conversations that an unsure answer offers

Scored = tuple[ChannelRow, float]


@dataclass(frozen=True)
class Choice:
    """A search result and the chosen conversation: the first of `candidates`, or the one that the user named."""

    found: SearchResult
    verdicts: list[JudgedMessage]  # on the chosen conversation's messages
    channel: ChannelRow
    everywhere: SearchResult  # of all conversations in scope; `found` may be from a second search in the channel only
    candidates: Sequence[Scored] = ()

    @property
    def hits(self) -> list[JudgedMessage]:
        """Return the relevant messages, best first; the best five if none contains a whole query word."""
        return [one for one in self.verdicts if one.reason is None] or self.verdicts[:5]


def choose(lookup: Lookup[ExtractQuery], found: SearchResult, folder: str | None) -> Choice | None:
    """Choose a conversation; None if none contains enough of the request. `folder`: that of the asking client."""
    candidates = order_channels(lookup, found, folder)
    if not candidates:
        return None
    row, wider = candidates[0][0], found
    if len(found.candidates) >= CANDIDATES:
        found = replace(lookup, scope=replace(lookup.scope, channel_number=row.number)).find()
    verdicts = [one for one in judge_messages(found) if one.ranked.candidate.channel_id == row.number]
    return Choice(found, verdicts, row, wider, candidates)


def order_channels(lookup: Lookup[Any], found: SearchResult, folder: str | None = None) -> list[Scored]:
    """Return the best matching channels with their scores, best first.

    Channels of the asking folder get a bonus, a larger one if they match nearly as well as the best. If the request
    asks for the latest state, the latest of the close ones comes first; the earliest if it asks for the first.
    """
    parsed = lookup.parsed
    scores = best_channels(found, is_narrowed=parsed.is_narrowed)[:MAX_CHOICES]
    known = channels_by_number(lookup.tx, [number for number, _ in scores])
    best = [(known[number], score) for number, score in scores if number in known]
    if folder is not None and not parsed.is_about_other_project:
        most = 0.6 * found.coverage(best[0][0].number) if best else 0.0
        for at, (row, score) in enumerate(best):
            if row.project_path is not None and is_within(row.project_path, folder):
                best[at] = row, score / (0.5 if found.coverage(row.number) >= most else 0.85)
        best.sort(key=lambda one: -one[1])
    if (parsed.is_about_latest or parsed.is_about_first) and best:
        close = [one for one in best if one[1] >= 0.6 * best[0][1]]
        if parsed.is_about_latest:
            first = max(close, key=lambda one: one[0].updated_at)
        else:
            first = min(close, key=lambda one: one[0].created_at)
        best = [(first[0], best[0][1]), *(one for one in best if one is not first)]
    best = list(_prefer_time_of_request(best, parsed))
    lookup.run.recorder.explain(channels=[{"channel": row.name, "score": round(score, 3)} for row, score in best])
    return best


def _prefer_time_of_request(candidates: list[Scored], parsed: ParsedRequest) -> list[Scored]:
    """Put the conversation of the requested time first: the last one before a date in the request or, if it asks for
    the state before a change, the one before the latest."""
    if len(candidates) < 2:
        return candidates
    (chosen, best), *others = candidates
    close = [row for row, score in others if score >= 0.4 * best]
    end = max(past_ends(parsed), default=None)
    older: list[ChannelRow] = []
    if end and chosen.created_at > end:
        older = [row for row in close if row.created_at <= end]
    if not older and parsed.is_about_past and not any(row.created_at > chosen.created_at for row in close):
        older = close
    first = [one for one in candidates if one[0] in older[:1]]
    return [*first, *(one for one in candidates if one not in first)]


def past_ends(parsed: ParsedRequest) -> list[datetime]:
    """Return the ends of the past times in a request."""
    return [span.end for span in parsed.dates if span.end and span.end < now()]


def latest_channels(lookup: Lookup[ExtractQuery], *, relaxed: str) -> list[ChannelRow]:
    """Return the channels in scope, the latest first, or the oldest if the request asks for the first.

    Raise NotFound if there are none.
    """
    tx, text, scope, parsed = lookup.tx, lookup.query.text, lookup.scope, lookup.parsed
    if parsed.is_narrowed or parsed.is_about_first or scope.from_ or scope.to or scope.project is not None:
        active, _ = list_latest_sessions(tx, scope, MAX_CHOICES, 0, newest_first=not parsed.is_about_first)
        known = channels_by_number(tx, [number for number, _ in active])
        if rows := [known[number] for number, _ in active if number in known]:
            return rows
        raise empty_scope_error(lookup)
    asks_nothing = text and not any(map(str.isalnum, text))  # a sign or an emoji
    latest = [] if relaxed or asks_nothing else recent_channels(tx, MAX_CHOICES + len(scope.exclude_numbers))
    rows = [row for row in latest if row.number not in scope.exclude_numbers]
    if not rows:
        raise no_match_error(text)
    return rows


def nothing_similar_error(lookup: Lookup[ExtractQuery], found: SearchResult) -> NotFound:
    """Return the error for a request that nothing in its channel and time matches; it names similar titles of all."""
    wider = replace(lookup.scope, channel_number=None, from_=None, to=None)
    if wider != lookup.scope:
        found = replace(lookup, scope=wider).find()
    rows = channels_by_number(lookup.tx, [one.number for one in found.channels[:3]])
    titles = (preview_of(row.title or row.first_message_preview or row.name, 60) for row in rows.values())
    error = no_match_error(lookup.query.text, list(titles))
    span = format_span(lookup.scope, lookup.query.utc_offset_minutes)
    about_time = f"; nothing about it from {span}" if span else ""
    about_wordings = "" if lookup.query.also or not rows else "; other wordings (also) may find it"
    return NotFound(error.message, f"{error.details}{about_time}{about_wordings}")
