"""Read public benchmarks as their authors publish them; their data is not part of this repository."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.retrieval.question_sets import Message, Question, QuestionSet, Session

LOCOMO_KINDS = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop", 5: "unanswerable"}
"""LoCoMo's categories. Questions of the fifth have no answer."""
LOCOMO_HALVES = {"locomo_tuning": 0, "locomo_dialogues": 1}
"""Dialogues with even numbers are for tuning; figures are reported for the others."""
FOREIGN_EACH = 6
"""Every sixth question is also asked in the next dialogue, which does not answer it."""
_LocomoSample = tuple[list[Session], list[Question]]
TURN = timedelta(seconds=30)
EPOCH = datetime(2024, 1, 1, 9, tzinfo=UTC)
"""Begin of conversations in sets without times."""


def published_sets(folder: Path) -> Iterator[QuestionSet]:
    """Yield the sets of LoCoMo, LongMemEval and BEAM in a folder, found by the authors' file names."""
    for pattern, read in READERS.items():
        for file in sorted(folder.glob(pattern)):
            yield from read(file)


def locomo(file: Path) -> Iterator[QuestionSet]:
    """Yield LoCoMo in three forms: all sessions as channels of one registry; the sessions of each dialogue in their own
    registry; each dialogue as one channel, in two halves."""
    samples = [_locomo_sample(number, sample) for number, sample in enumerate(json.loads(file.read_text("utf-8")))]
    sessions = [session for some, _ in samples for session in some]
    questions = [one for _, some in samples for one in some]
    now = _after(sessions)
    yield QuestionSet("locomo", now, "UTC", sessions, questions)
    for some, asked in samples:
        yield QuestionSet("locomo_sessions", now, "UTC", some, asked)
    for half, numbers in LOCOMO_HALVES.items():
        if dialogues := {number: one for number, one in enumerate(samples) if number % 2 == numbers}:
            yield _locomo_dialogues(half, now, dialogues)


def _locomo_dialogues(name: str, now: datetime, samples: Mapping[int, _LocomoSample]) -> QuestionSet:
    """Return dialogues as channels, with their questions and some that only the previous dialogue answers."""
    dialogues = [
        Session(str(number), [said for session in some for said in session.messages])
        for number, (some, _) in samples.items()
    ]
    asked = [replace(one, sessions=(str(number),)) for number, (_, some) in samples.items() for one in some]
    names = [one.id for one in dialogues]
    foreign = [
        replace(one, id=f"{one.id} foreign", kind="foreign", sessions=(following,))
        for number, following in zip(names, [*names[1:], *names[:1]], strict=True)
        if following != number
        for one in [one for one in asked if one.sessions == (number,) and one.is_answerable][::FOREIGN_EACH]
    ]
    return QuestionSet(name, now, "UTC", dialogues, [*asked, *foreign])


def _locomo_sample(number: int, sample: Any) -> _LocomoSample:
    talk = sample["conversation"]
    places: dict[tuple[int, int], tuple[str, str]] = {}
    sessions: list[Session] = []
    for key in (key for key in talk if key.startswith("session_") and isinstance(talk[key], list)):
        name = f"{number}_{key}"
        began = datetime.strptime(talk[f"{key}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        messages = []
        for place, said in enumerate(talk[key]):
            role = "user" if said["speaker"] == talk["speaker_a"] else "assistant"
            shown = f" [{said['blip_caption']}]" if said.get("blip_caption") else ""
            text = f"{said['speaker']}: {said['text']}{shown}"
            messages.append(Message(f"{name}-{place + 1}", role, text, (began + place * TURN).isoformat()))
            places |= dict.fromkeys(_dialogue_ids(said["dia_id"]), (name, messages[-1].id))
        sessions.append(Session(name, messages))
    return sessions, list(_locomo_questions(number, sample, places))


def _locomo_questions(number: int, sample: Any, places: dict[tuple[int, int], tuple[str, str]]) -> Iterator[Question]:
    for at, asked in enumerate(sample["qa"]):
        kind = LOCOMO_KINDS[asked["category"]]
        named = _dialogue_ids(" ".join(asked.get("evidence") or []))
        found = [places[one] for one in named if one in places]
        if kind == "unanswerable":
            yield Question(f"{number}_{at}", kind, asked["question"], tuple(dict.fromkeys(name for name, _ in found)))
        elif found:
            names = tuple(dict.fromkeys(name for name, _ in found))
            yield Question(f"{number}_{at}", kind, asked["question"], names, frozenset(one for _, one in found))


def _dialogue_ids(text: str) -> list[tuple[int, int]]:
    """Return pairs of session and turn. Some are published as "D8:6; D9:17", "D:11:26" or "D30:05"."""
    return [(int(session), int(turn)) for session, turn in re.findall(r"D:?(\d+):(\d+)", text)]


def longmemeval(file: Path) -> Iterator[QuestionSet]:
    """Yield a set with its own sessions for each question."""
    for asked in json.loads(file.read_text("utf-8")):
        sessions = [
            _longmemeval_session(name, date, turns)
            for name, date, turns in zip(
                asked["haystack_session_ids"], asked["haystack_dates"], asked["haystack_sessions"], strict=True
            )
        ]
        evidence = frozenset(
            f"{name}-{place + 1}"
            for name, turns in zip(asked["haystack_session_ids"], asked["haystack_sessions"], strict=True)
            for place, turn in enumerate(turns)
            if turn.get("has_answer")
        )
        is_answerable = not asked["question_id"].endswith("_abs")
        question = Question(
            asked["question_id"],
            asked["question_type"] if is_answerable else "unanswerable",
            asked["question"],
            tuple(asked["answer_session_ids"]) if is_answerable else (),
            evidence if is_answerable else frozenset(),
        )
        yield QuestionSet(file.stem, _longmemeval_time(asked["question_date"]), "UTC", sessions, [question])


def _longmemeval_session(name: str, date: str, turns: Any) -> Session:
    began = _longmemeval_time(date)
    return Session(
        name,
        [
            Message(f"{name}-{place + 1}", turn["role"], turn["content"], (began + place * TURN).isoformat())
            for place, turn in enumerate(turns)
        ],
    )


def _longmemeval_time(date: str) -> datetime:
    """Parse a time like 2023/05/30 (Tue) 23:40."""
    return datetime.strptime(re.sub(r" \(\w+\)", "", date), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def beam(file: Path) -> Iterator[QuestionSet]:
    """Read a conversation of BEAM, `…/chat.json` and the probing questions in the same folder, as one channel."""
    [asked_file] = file.parent.glob("probing_questions*/*.json")
    said = list(_leaves(json.loads(file.read_text("utf-8")), "content"))
    name = file.parent.name
    ids = {one.get("id"): f"{name}-{place + 1}" for place, one in enumerate(said)}
    messages = [
        Message(f"{name}-{place + 1}", one["role"], one["content"], (EPOCH + place * TURN).isoformat())
        for place, one in enumerate(said)
    ]
    asked_by_kind = json.loads(asked_file.read_text("utf-8"))
    asked_by_kind = ast.literal_eval(asked_by_kind) if isinstance(asked_by_kind, str) else asked_by_kind
    questions: list[Question] = []
    for kind, some in asked_by_kind.items():
        for one in some:
            evidence = frozenset(ids[source] for source in _numbers(one.get("source_chat_ids")) if source in ids)
            kind = "unanswerable" if kind == "abstention" else kind
            if evidence or kind == "unanswerable":
                questions.append(Question(f"{kind} {len(questions)}", kind, one["question"], (name,), evidence))
    session = Session(name, messages)
    yield QuestionSet(f"beam {name}", _after([session]), "UTC", [session], questions)


def _leaves(node: Any, key: str) -> Iterator[Any]:
    """Yield every object with that key, at any depth."""
    if isinstance(node, dict) and key in node:
        yield node
    elif isinstance(node, dict | list):
        for part in node.values() if isinstance(node, dict) else node:
            yield from _leaves(part, key)


def _numbers(node: Any) -> Iterator[int]:
    if isinstance(node, int):
        yield node
    elif isinstance(node, dict | list):
        for part in node.values() if isinstance(node, dict) else node:
            yield from _numbers(part)


def _after(sessions: list[Session]) -> datetime:
    """Return the time one day after the last message."""
    latest = max(said.timestamp for session in sessions for said in session.messages)
    return datetime.fromisoformat(latest) + timedelta(days=1)


READERS: dict[str, Callable[[Path], Iterator[QuestionSet]]] = {
    "**/locomo*.json": locomo,
    "**/longmemeval_*.json": longmemeval,
    "**/chat.json": beam,
}
