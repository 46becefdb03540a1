"""Read sets of conversations with questions about them, from `sets/*.json`.

A set has `name`, `now` and `zone` (time and time zone of its questions), `sessions` {`id`, `source`, `project`,
`title`, `messages` {`id`, `role`, `text`, `timestamp`}}, and `questions` {`id`, `kind`, `text`, `session`, `evidence`
(ids of the messages that answer), `also`? (other wordings, as an asking AI sends them)}. An unanswerable question has
no evidence; its session, if there is one, is the channel in which it is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Any

SETS = Path(__file__).parent / "sets"
UNANSWERABLE = ("unanswerable", "other_life", "foreign", "no answer", "near_topic", "off_topic")
"""Kinds of questions without an answer in the set, or in the channel in which they are asked."""
FOREIGN_OF_EACH = 12
"""Number of questions from each other set that are asked as foreign ones."""


@dataclass(frozen=True)
class Message:
    """A message; `timestamp` is ISO 8601."""

    id: str
    role: str
    text: str
    timestamp: str


@dataclass(frozen=True)
class Session:
    id: str
    messages: Sequence[Message]
    source: str = "cursor"
    project: str | None = None
    title: str | None = None


@dataclass(frozen=True)
class Question:
    """A question. `sessions` answer it; the first one is the channel in which it is asked."""

    id: str
    kind: str
    text: str
    sessions: tuple[str, ...] = ()
    evidence: frozenset[str] = frozenset()
    also: tuple[str, ...] = ()

    @property
    def is_answerable(self) -> bool:
        return self.kind not in UNANSWERABLE


@dataclass(frozen=True)
class QuestionSet:
    """The sessions of one registry, and questions to it."""

    name: str
    now: datetime
    zone: str
    sessions: Sequence[Session]
    questions: Sequence[Question]


def own_sets() -> list[QuestionSet]:
    """Return the sets of this repository."""
    return [read_set(json.loads(file.read_text(encoding="utf-8"))) for file in sorted(SETS.glob("*.json"))]


def sets_in(file: Path) -> list[QuestionSet]:
    """Read a file of sessions and questions; each user's are a set."""
    given = json.loads(file.read_text(encoding="utf-8"))
    users = sorted({one.get("user") or "" for one in given["sessions"]})

    def of_user(part: str, user: str) -> list[Any]:
        chosen = (one for one in given[part] if (one.get("user") or "") == user)
        return [{name: value for name, value in one.items() if name != "user"} for one in chosen]

    return [
        read_set({**given, "sessions": of_user("sessions", user), "questions": of_user("questions", user)})
        for user in users
    ]


def as_yardstick(question_set: QuestionSet) -> dict[str, Any]:
    """Convert a set to the format of words45.py, a program with two plain baselines."""
    sessions = [
        {
            "id": one.id,
            "title": one.title,
            "project": one.project,
            "messages": [{"id": said.id, "role": said.role, "text": said.text} for said in one.messages],
        }
        for one in question_set.sessions
    ]
    questions = [
        {
            "id": one.id,
            "text": one.text,
            "type": one.kind,
            "sessions": list(one.sessions) if one.is_answerable else [],
            "relevant": dict.fromkeys(one.evidence, 1),
            "also": list(one.also),
        }
        for one in question_set.questions
    ]
    return {"sessions": sessions, "questions": questions}


def read_set(given: Any) -> QuestionSet:
    """Parse a set."""
    sessions = [
        Session(**{**one, "messages": [Message(**said) for said in one["messages"]]}) for one in given["sessions"]
    ]
    questions = [_question(one) for one in given["questions"]]
    return QuestionSet(given["name"], datetime.fromisoformat(given["now"]), given["zone"], sessions, questions)


def _question(given: Any) -> Question:
    sessions = (given["session"],) if given["session"] else ()
    evidence, also = frozenset(given["evidence"]), tuple(given.get("also", ()))
    return Question(given["id"], given["kind"], given["text"], sessions, evidence, also)


def with_foreign(question_set: QuestionSet, others: Iterable[QuestionSet]) -> QuestionSet:
    """Add questions of the other sets, which this set does not answer, each to the next channel in turn."""
    channels = cycle(session.id for session in question_set.sessions)
    foreign = [
        replace(one, id=f"{other.name} {one.id}", kind="foreign", sessions=(next(channels),), evidence=frozenset())
        for other in others
        if other.name != question_set.name
        for one in _spread(other.questions)
    ]
    return replace(question_set, questions=[*question_set.questions, *foreign])


def _spread(questions: Sequence[Question]) -> Iterator[Question]:
    """Yield `FOREIGN_OF_EACH` direct questions, spread evenly over the set."""
    answerable = [one for one in questions if one.kind in ("direct", "paraphrase", "code", "plain")]
    return islice(answerable[:: max(len(answerable) // FOREIGN_OF_EACH, 1)], FOREIGN_OF_EACH)
