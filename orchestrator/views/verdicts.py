"""Verdicts on the messages found: which words they hold, and why they were delivered or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from orchestrator.answer.finding.relevance import LEAST_COVERAGE
from registry.storage.conversations.messages import MessageRow
from registry.text.ranking.matching import matched_by, matched_words
from registry.text.ranking.term_weights import Term
from registry.text.request.query import ParsedQuery, QueryWord, parse_query

DELIVERED, WITH_QUESTION, NO_ROOM, KEPT, DROPPED = "delivered", "with its question", "no room", "kept", "dropped"
LISTS_HITS = ("search", "search_sessions")
"""Operations that show messages by what each of them holds itself."""
GIVES_MESSAGES = ("search", "extract")


class Judgement(NamedTuple):
    """The verdict on one message. `held` and `lacking` are words of the wording that it holds most of."""

    verdict: str
    role: str
    coverage: float
    score: float
    similarity: float | None
    wording: int
    reason: str | None
    held: Sequence[str]
    lacking: Sequence[str]
    shown: dict[str, Any] | None
    """The message; None: deleted since."""


@dataclass(frozen=True, slots=True)
class Missed:
    """The reasons why nothing was delivered. `unknown`: words that occur nowhere in what was searched."""

    unknown: list[str]
    nearest: Judgement | None


@dataclass(frozen=True, slots=True)
class RecordedLookup:
    """The recorded look-up of a run."""

    operation: str
    noted: Mapping[str, Any]
    delivered: frozenset[str]
    is_complete: bool
    """All delivered messages are in the record."""

    def judge(self, verdict: Mapping[str, Any], row: MessageRow | None, shown: dict[str, Any] | None) -> Judgement:
        """Return a recorded verdict with its reason."""
        wording = int(verdict["wording"])
        query = self._query(wording)
        held = matched_words(query, row.text) if row else ()
        similarity = verdict.get("similarity")
        name, reason = self._outcome(verdict, row.id if row else None)
        if name == DELIVERED and not held and similarity is None:
            name = WITH_QUESTION
        return Judgement(
            name,
            verdict["role"],
            verdict["coverage"],
            verdict["score"],
            similarity if isinstance(similarity, int | float) else None,
            wording,
            reason,
            held,
            [word.text for word in query.words if word.text not in held] if row else [],
            shown,
        )

    def _query(self, wording: int) -> ParsedQuery:
        also = [one["text"] for one in self.noted.get("also", ()) if isinstance(one, dict)]
        if 0 < wording <= len(also):
            return parse_query(also[wording - 1])
        typos = self.noted.get("taken_for_typos", {})
        words = (str(word) for word in self.noted.get("words", ()))
        return parse_query(" ".join(word for each in words for word in (typos.get(each) or [each])))

    def _outcome(self, verdict: Mapping[str, Any], message_id: str | None) -> tuple[str, str | None]:
        if message_id in self.delivered:
            return (DELIVERED if verdict["kept"] else WITH_QUESTION), None
        if not verdict["kept"]:
            return DROPPED, verdict["reason"]
        is_weak = verdict["coverage"] < LEAST_COVERAGE and verdict.get("similarity") is None
        if self.operation in LISTS_HITS and is_weak:
            return DROPPED, LITTLE
        is_left_out = self.is_complete and self.operation in GIVES_MESSAGES
        return (NO_ROOM if is_left_out else KEPT), None

    def missed(self, judged: Sequence[Judgement]) -> Missed:
        """Return why none of the messages found was good enough."""
        terms = self.noted.get("terms", ())
        found = [Term(one["token"], one["weight"], 1) for one in terms if isinstance(one, dict)]
        words = parse_query(" ".join(map(str, self.noted.get("words", ())))).words
        return Missed(
            [word.text for word in words if not matched_by(ParsedQuery((word,)), found)(_own(word, found))],
            max(judged, key=lambda one: one.coverage, default=None),
        )


def _own(word: QueryWord, terms: Sequence[Term]) -> int:
    """Return the bits of a word's own terms."""
    return sum(1 << place for place, term in enumerate(terms) if term.token in word.tokens)


LITTLE = "holds less of the request than a hit in a list must"
