"""Choose the conversation that is meant, and decide how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from orchestrator.answer.finding.elsewhere import nothing_found, nothing_then
from orchestrator.answer.finding.looking_up import Lookup
from orchestrator.answer.finding.relevance import Judged, best_channels, confidence_in, judge
from orchestrator.requests.shapes import ExtractQuery
from registry.domain import is_within, now, preview_of
from registry.errors import NotFound
from registry.search.candidates import CANDIDATES
from registry.search.retrieval import SearchResult
from registry.search.sessions import list_latest_sessions
from registry.storage.conversations.channels import ChannelRow, channels_by_number, recent_channels
from registry.text.ranking.confidence import Confidence
from registry.text.request.understanding import ParsedRequest

CHOICES = 5  # conversations that an unsure answer offers

Scored = tuple[ChannelRow, float]


@dataclass(frozen=True)
class Choice:
    """The search's result, and the conversation that is meant: the first of the `candidates` where none was named."""

    found: SearchResult
    verdicts: Sequence[Judged]
    channel: ChannelRow
    candidates: Sequence[Scored] = ()
    wider: SearchResult | None = None
    """The first search's result where `found` was searched again inside the channel."""

    @property
    def everywhere(self) -> SearchResult:
        """Return the result of the search in all conversations in scope."""
        return self.wider or self.found

    @cached_property
    def inside(self) -> list[Judged]:
        """Return the verdicts on the messages of this conversation."""
        if not self.candidates:  # it was named, and nowhere else was looked
            return list(self.verdicts)
        number = self.channel.number
        return [one for one in self.verdicts if one.ranked.candidate.channel_id == number]

    @property
    def kept(self) -> list[Judged]:
        """Return the messages that answer, best first; the best five if none holds a whole word of the request."""
        return [one for one in self.inside if one.reason is None] or self.inside[:5]


def chosen(asked: Lookup[ExtractQuery], found: SearchResult, folder: str | None) -> Choice | None:
    """Return the conversation that is meant; None if none holds enough of the request. `folder`: the asking one."""
    candidates = ordered_channels(asked, found, folder)
    if not candidates:
        return None
    row, wider = candidates[0][0], found
    if len(found.candidates) >= CANDIDATES:
        found = replace(asked, scope=replace(asked.scope, channel_number=row.number)).find()
    return Choice(found, judge(found), row, candidates, wider)


def ordered_channels(asked: Lookup[Any], found: SearchResult, folder: str | None = None) -> list[Scored]:
    """Return the channels that fit the request with their scores, best first.

    Those of the asking folder gain, more if they hold most of the best; for a request for what holds in the end the
    latest of close ones comes first.
    """
    said = asked.said
    scores = best_channels(found, is_narrowed=said.is_narrowed)[:CHOICES]
    known = channels_by_number(asked.tx, [number for number, _ in scores])
    best = [(known[number], score) for number, score in scores if number in known]
    if folder is not None and not said.is_about_other_project:
        most = 0.6 * found.coverage(best[0][0].number) if best else 0.0
        gained = [
            (row, score / (0.5 if found.coverage(row.number) >= most else 0.85) if _is_in(row, folder) else score)
            for row, score in best
        ]
        best = sorted(gained, key=lambda one: -one[1])
    if said.is_about_latest and best:
        close = [one for one in best if one[1] >= 0.5 * best[0][1]]
        latest = max(close, key=lambda one: one[0].updated_at)
        best = [(latest[0], best[0][1]), *(one for one in best if one is not latest)]
    best = list(_as_of_then(best, said))
    asked.run.recorder.explain(channels=[{"channel": row.name, "score": round(score, 3)} for row, score in best])
    return best


def _as_of_then(candidates: list[Scored], said: ParsedRequest) -> list[Scored]:
    """Put first the conversation that held at the time a request asks for: the last before a date that it names, or,
    asked for what was before a change, the one before the latest."""
    if len(candidates) < 2:
        return candidates
    (chosen, best), *others = candidates
    near = [row for row, score in others if score >= 0.4 * best]
    end = max(past_ends(said), default=None)
    older: list[ChannelRow] = []
    if end and chosen.created_at > end:
        older = [row for row in near if row.created_at <= end]
    if not older and said.is_about_past and not any(row.created_at > chosen.created_at for row in near):
        older = near
    first = [one for one in candidates if one[0] in older[:1]]
    return [*first, *(one for one in candidates if one not in first)]


def past_ends(said: ParsedRequest) -> list[datetime]:
    """Return the ends of the past times that a request names."""
    return [span.end for span in said.dates if span.end and span.end < now()]


def _is_in(row: ChannelRow, folder: str) -> bool:
    return row.project_path is not None and is_within(row.project_path, folder)


def sure_of(asked: Lookup[ExtractQuery], choice: Choice) -> Confidence:
    """Return how sure it is that the conversation that was chosen or named answers."""
    scores = [score for _, score in choice.candidates]
    said = asked.said
    return confidence_in(
        choice.found, choice.channel.number, scores, is_narrowed=said.is_narrowed, is_continuation=said.is_continuation
    )


def latest(asked: Lookup[ExtractQuery], *, relaxed: str) -> list[ChannelRow]:
    """Return the channels of the time and place that are meant, the latest first; there is one at least."""
    tx, search, scope = asked.tx, asked.said.search, asked.scope
    is_narrowed = search.when_words or asked.said.sources or search.project or scope.from_ or scope.to
    if not is_narrowed:
        if relaxed:
            raise nothing_found(asked.query.text)
        rows = recent_channels(tx, CHOICES)
    else:
        active, _ = list_latest_sessions(tx, scope, CHOICES, 0)
        known = channels_by_number(tx, [number for number, _ in active])
        rows = [known[number] for number, _ in active if number in known]
        if not rows:
            raise nothing_then(asked)
    if not rows:
        raise nothing_found(asked.query.text)
    return rows


def nothing_like(asked: Lookup[ExtractQuery], found: SearchResult) -> NotFound:
    """Return the error for a request of which no conversation, or not the named one, holds enough; it names the
    nearest titles, of the whole registry."""
    if asked.scope.channel_number is not None:
        found = replace(asked, scope=replace(asked.scope, channel_number=None)).find()
    rows = channels_by_number(asked.tx, [one.number for one in found.channels[:3]])
    titles = (preview_of(row.title or row.first_message_preview or row.name, 60) for row in rows.values())
    return nothing_found(asked.query.text, list(titles))
