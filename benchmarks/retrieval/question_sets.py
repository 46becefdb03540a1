"""Sets of conversations with questions about them, as `sets/*.json` hold them.

A set has `name`, `now` and `zone` (when and where its questions are asked), `sessions` {`id`, `source`, `project`,
`title`, `messages` {`id`, `role`, `text`, `timestamp`}}, and `questions` {`id`, `kind`, `text`, `session`, `evidence`
(ids of the messages that answer), `also`? (other wordings of the question, as an asking AI sends them)}.
A question that nothing answers has no evidence; its session, if there is one, is the channel it is asked of.
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
"""Kinds of questions with no answer: never talked about, or, asked of one channel, only in somebody else's."""
FOREIGN_OF_EACH = 12
"""So many questions of each other set are asked as foreign ones."""


@dataclass(frozen=True)
class Message:
    """What was said, and when (ISO 8601)."""

    id: str
    role: str
    text: str
    timestamp: str


@dataclass(frozen=True)
class Session:
    """One conversation."""

    id: str
    messages: Sequence[Message]
    source: str = "cursor"
    project: str | None = None
    title: str | None = None


@dataclass(frozen=True)
class Question:
    """A question. `sessions`: those that answer it; it can be asked of the first of them."""

    id: str
    kind: str
    text: str
    sessions: tuple[str, ...] = ()
    evidence: frozenset[str] = frozenset()
    also: tuple[str, ...] = ()

    @property
    def is_answerable(self) -> bool:
        """Whether any message answers it."""
        return self.kind not in UNANSWERABLE


@dataclass(frozen=True)
class QuestionSet:
    """Sessions that fill one registry, and what is asked of it."""

    name: str
    now: datetime
    zone: str
    sessions: Sequence[Session]
    questions: Sequence[Question]


def own_sets() -> list[QuestionSet]:
    """The sets of this repository."""
    return [read_set(json.loads(file.read_text(encoding="utf-8"))) for file in sorted(SETS.glob("*.json"))]


def sets_in(file: Path) -> list[QuestionSet]:
    """Read a file of questions; of several users each has a registry of their own."""
    given = json.loads(file.read_text(encoding="utf-8"))
    users = sorted({one.get("user") or "" for one in given["sessions"]})

    def of_user(part: str, user: str) -> list[Any]:
        chosen = (one for one in given[part] if (one.get("user") or "") == user)
        return [{name: value for name, value in one.items() if name != "user"} for one in chosen]

    return [
        read_set({**given, "sessions": of_user("sessions", user), "questions": of_user("questions", user)})
        for user in users
    ]


def as_yardstick(asked: QuestionSet) -> dict[str, Any]:
    """Convert a set to the form of the words45 yardstick: two plain baselines to print beside our figures."""
    sessions = [
        {
            "id": one.id,
            "title": one.title,
            "project": one.project,
            "messages": [{"id": said.id, "role": said.role, "text": said.text} for said in one.messages],
        }
        for one in asked.sessions
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
        for one in asked.questions
    ]
    return {"sessions": sessions, "questions": questions}


def read_set(given: Any) -> QuestionSet:
    """A set as its file has it."""
    sessions = [
        Session(**{**one, "messages": [Message(**said) for said in one["messages"]]}) for one in given["sessions"]
    ]
    questions = [_question(one) for one in given["questions"]]
    return QuestionSet(given["name"], datetime.fromisoformat(given["now"]), given["zone"], sessions, questions)


def _question(given: Any) -> Question:
    sessions = (given["session"],) if given["session"] else ()
    evidence, also = frozenset(given["evidence"]), tuple(given.get("also", ()))
    return Question(given["id"], given["kind"], given["text"], sessions, evidence, also)


def with_foreign(asked: QuestionSet, others: Iterable[QuestionSet]) -> QuestionSet:
    """The set, and questions from other people's lives, each asked of one channel after the other."""
    channels = cycle(session.id for session in asked.sessions)
    foreign = [
        replace(one, id=f"{other.name} {one.id}", kind="foreign", sessions=(next(channels),), evidence=frozenset())
        for other in others
        if other.name != asked.name
        for one in _spread(other.questions)
    ]
    return replace(asked, questions=[*asked.questions, *foreign])


def _spread(questions: Sequence[Question]) -> Iterator[Question]:
    """Some that name what they ask for, from all over the set."""
    answerable = [one for one in questions if one.kind in ("direct", "paraphrase", "code", "plain")]
    return islice(answerable[:: max(len(answerable) // FOREIGN_OF_EACH, 1)], FOREIGN_OF_EACH)
