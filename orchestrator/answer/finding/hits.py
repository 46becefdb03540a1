"""What a search has found, and which of it are hits: messages that have to do with the request themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.answer.finding.relevance import Judged
from orchestrator.queries import SearchQuery, SessionsQuery
from orchestrator.state import Run
from registry.search.retrieval import SearchResult
from registry.search.scope import Scope
from registry.text.request.understanding import Understood

LEAST_COVERAGE = 0.2
"""A message that holds less than this share of every wording is no hit in a list of hits."""
SPOKEN = ["user", "assistant"]
"""Who speaks in a conversation: what tools said, and what a client put in, is not why one is found."""


@dataclass(frozen=True)
class Found:
    """What a request was read as, what it found, and the verdict on each message."""

    read: Understood
    result: SearchResult
    verdicts: Sequence[Judged]
    least: float = LEAST_COVERAGE
    listed: Scope | None = None
    """Where all that was said is meant, because a time or place is named and no words are."""

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


def least_of(run: Run, query: SearchQuery | SessionsQuery) -> float:
    """The share of the request that makes a hit; noted where another than the usual one is tried."""
    if query.least_coverage is None:
        return LEAST_COVERAGE
    run.recorder.explain(least_coverage=query.least_coverage)
    return query.least_coverage


def is_about_something(read: Understood, result: SearchResult) -> bool:
    """Whether more is asked for than a time or a place."""
    return bool(any(wording.terms for wording in result.wordings) or read.has_words or read.search.excluded)
