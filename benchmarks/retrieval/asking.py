"""Ask each question in each way that the tools allow."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from typing import Any

from benchmarks.retrieval.losses import Losses
from benchmarks.retrieval.product import Answer, Product
from benchmarks.retrieval.question_sets import Question

FIRST = 10
CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True)
class Way:
    """A way to ask a question: the tool, with or without the channel and other wordings (`also`)."""

    name: str
    tool: str
    in_channel: bool = False
    with_also: bool = False

    def takes(self, question: Question) -> bool:
        """Return True if a question can be asked in this way.

        `other_life` questions are asked in a channel only, because another channel of the set answers them.
        """
        if self.with_also and not question.also:
            return False
        return bool(question.sessions) if self.in_channel else question.kind != "other_life"

    def arguments(self, question: Question, channel: str, limit: int | None = None) -> dict[str, Any]:
        """Return the tool's arguments."""
        also = {"also": list(question.also)} if self.with_also else {}
        if self.tool == "search_sessions":
            return {"query": question.text, "project": "all", **also}
        query = {"text": question.text, **also, **({"limit": limit} if limit else {})}
        return {"query": query, **({"channel": channel} if self.in_channel else {})}


WAYS = (
    Way("extract, of its channel", "extract", in_channel=True),
    Way("extract, of its channel, also", "extract", in_channel=True, with_also=True),
    Way("extract", "extract"),
    Way("extract, also", "extract", with_also=True),
    Way("search_sessions", "search_sessions"),
    Way("search_sessions, also", "search_sessions", with_also=True),
)


@dataclass(frozen=True)
class Outcome:
    """The answer to one question.

    `sessions` are ranked. `messages` are those of the default answer, and `first` those of an answer with a limit of
    `FIRST`. `until_fact` is the number of tokens up to the end of the first message that answers. `lost` gives for each
    missing message the reason.
    """

    question: Question
    way: str
    in_channel: bool
    is_found: bool
    confidence: str | None
    sessions: list[str]
    first: list[str]
    messages: list[str]
    tokens: int
    until_fact: int | None
    cpu_ms: float
    evidence: frozenset[str]
    lost: dict[str, str] = field(default_factory=dict)

    @property
    def is_answered(self) -> bool:
        """Return True if there is an answer and its confidence is not low."""
        return self.is_found and self.confidence != "low"

    @property
    def is_missed(self) -> bool:
        """Return True if all evidence is missing or another session is first; if unanswerable, if it was answered."""
        if not self.question.is_answerable:
            return self.is_answered
        is_other = not self.in_channel and self.sessions[:1] != [*self.question.sessions[:1]]
        return is_other or (bool(self.evidence) and not self.evidence & set(self.messages))


async def ask_all(
    product: Product, questions: Collection[Question], ways: Collection[Way] = WAYS
) -> AsyncIterator[Outcome]:
    """Ask every question in every way that it and the tools allow."""
    losses = await Losses.of(product)
    for way in ways:
        if way.with_also and not await product.takes_also(way.tool):
            continue
        for question in questions:
            if way.takes(question):
                yield await _ask(product, way, question, losses)


async def _ask(product: Product, way: Way, question: Question, losses: Losses) -> Outcome:
    channel = product.channels[question.sessions[0]] if way.in_channel else ""
    answer = await product.ask(way.tool, way.arguments(question, channel))
    execution = product.executions[-1]
    shorter = answer
    if len(answer.messages) > FIRST and way.tool == "extract":
        shorter = await product.ask(way.tool, way.arguments(question, channel, FIRST))
    sessions = _sessions_of(product, answer)
    evidence = _evidence(product, way, question)
    missing = evidence - set(answer.messages)
    is_elsewhere = not way.in_channel and sessions[:1] != [*question.sessions[:1]]
    return Outcome(
        question,
        way.name,
        way.in_channel,
        bool(answer.passages),
        answer.result.get("confidence"),
        sessions,
        shorter.messages[:FIRST],
        answer.messages,
        len(answer.text) // CHARACTERS_A_TOKEN,
        _until_fact(answer, evidence),
        answer.cpu_ms,
        evidence,
        await losses.explain(execution, missing, is_elsewhere=is_elsewhere) if way.tool == "extract" else {},
    )


def _sessions_of(product: Product, answer: Answer) -> list[str]:
    """Return the sessions that an answer names, best first."""
    result = answer.result
    named = [*result.get("sessions", []), *([result] if "channel" in result else []), *(result.get("candidates") or [])]
    return list(dict.fromkeys(product.sessions[one["channel"]] for one in named))


def _evidence(product: Product, way: Way, question: Question) -> frozenset[str]:
    """Return the evidence that an answer can hold: in a channel, only that channel's."""
    if not way.in_channel:
        return question.evidence
    return frozenset(one for one in question.evidence if product.session_of(one) == question.sessions[0])


def _until_fact(answer: Answer, evidence: frozenset[str]) -> int | None:
    ends = [_end_of(passage.text, answer.text) for passage in answer.passages if passage.message in evidence]
    return min(ends) // CHARACTERS_A_TOKEN if ends else None


def _end_of(said: str, text: str) -> int:
    written = json.dumps(said, ensure_ascii=False)
    place = text.find(written)
    return len(text) if place < 0 else place + len(written)
