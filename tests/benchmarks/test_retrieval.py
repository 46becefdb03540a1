"""Test the retrieval evaluation: reading of public benchmarks, and its figures."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.retrieval import __main__ as command
from benchmarks.retrieval.asking import WAYS, Outcome, ask_all
from benchmarks.retrieval.losses import NO_CANDIDATE, RANKED_LOW, fate_of
from benchmarks.retrieval.product import product_with
from benchmarks.retrieval.published import beam, locomo, longmemeval
from benchmarks.retrieval.question_sets import Message, Question, QuestionSet, Session, own_sets, with_foreign
from registry.domain import now
from tests.embedding_server import EmbeddingServer


def said(session: int, turn: int, speaker: str, text: str, **image: Any) -> dict[str, Any]:
    return {"speaker": speaker, "dia_id": f"D{session}:{turn}", "text": text, **image}


LOCOMO = [
    {
        "sample_id": "conv-26",
        "conversation": {
            "speaker_a": "Mira",
            "speaker_b": "Jonas",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                said(1, 1, "Mira", "I adopted a tortoise named Hektor yesterday."),
                said(1, 2, "Jonas", "How big is he?"),
            ],
            "session_2_date_time": "10:37 am on 27 June, 2023",
            "session_2": [
                said(2, 1, "Jonas", "My pottery class starts on Monday."),
                said(
                    2,
                    2,
                    "Mira",
                    "Look what I baked!",
                    img_url=["an address"],
                    blip_caption="a photo of a blueberry cheesecake",
                    query="cheesecake",
                ),
            ],
            "session_3_date_time": "9:00 am on 1 July, 2023",
        },
        "qa": [
            {
                "question": "What is the name of Mira's tortoise?",
                "answer": "Hektor",
                "evidence": ["D1:1"],
                "category": 4,
            },
            {"question": "Tortoise and pottery?", "answer": 2023, "evidence": ["D1:1; D2:01"], "category": 1},
            {"question": "Which blueberry cheesecake?", "answer": "hers", "evidence": ["D:2:2", "D"], "category": 1},
            {"question": "Who knows?", "answer": "nobody", "evidence": [], "category": 3},
            {
                "question": "What did Jonas say of quantum chromodynamics?",
                "evidence": ["D1:2"],
                "category": 5,
                "adversarial_answer": "nothing",
            },
        ],
        "event_summary": {"events_session_1": {"Mira": ["adopts a tortoise"], "Jonas": [], "date": "8 May, 2023"}},
        "observation": {"session_1_observation": {"Mira": [["Mira has a tortoise.", "D1:1"]]}},
        "session_summary": {"session_1_summary": "They talk of a tortoise."},
    }
]


def asked(question_id: str, question: str, kind: str, sessions: list[str]) -> dict[str, Any]:
    return {
        "question_id": question_id,
        "question_type": kind,
        "question": question,
        "answer": 3,
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["answer_1", "sharegpt_2_0", "ultrachat_3"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/20 (Sat) 02:57", "2023/05/21 (Sun) 07:10"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "I repaired three bicycles today.", "has_answer": True},
                {"role": "assistant", "content": "Well done!", "has_answer": False},
            ],
            [
                {"role": "user", "content": "Explain photosynthesis."},
                {"role": "assistant", "content": "Plants turn light into sugar."},
            ],
            [{"role": "user", "content": ""}, {"role": "assistant", "content": "How can I help?"}],
        ],
        "answer_session_ids": sessions,
    }


LONGMEMEVAL = [
    asked("e47becba", "How many bicycles did I repair?", "single-session-user", ["answer_1"]),
    asked("e47becba_abs", "How many violins did I tune?", "single-session-user", ["answer_1"]),
]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "locomo10.json", tmp_path / "longmemeval_s.json"
    for path, content in zip(paths, (LOCOMO, LONGMEMEVAL), strict=True):
        path.write_text(json.dumps(content), encoding="utf-8")
    return paths


BEAM_CHAT = [
    {
        "batch_number": 1,
        "turns": [
            [
                {"role": "user", "id": 0, "content": "My tortoise Hektor eats dandelions."},
                {"role": "assistant", "id": 1, "content": "A good choice."},
            ],
            [{"role": "user", "id": 2, "content": "The pottery class is on Monday."}],
        ],
    }
]
BEAM_QUESTIONS = {
    "abstention": [{"question": "Which car do I drive?", "source_chat_ids": []}],
    "information_extraction": [{"question": "What does Hektor eat?", "source_chat_ids": [0]}],
    "knowledge_update": [{"question": "Which day is pottery?", "source_chat_ids": {"original_info": [2], "gone": [9]}}],
}


def test_locomo_questions_name_their_answering_turns_in_every_notation(files: tuple[Path, Path]) -> None:
    found, sessions, dialogues = locomo(files[0])
    assert (sessions.sessions, sessions.questions) == (found.sessions, found.questions)  # there is only one dialogue
    assert [session.id for session in found.sessions] == ["0_session_1", "0_session_2"]
    cake = found.sessions[1].messages[1]
    assert (cake.role, cake.text) == ("user", "Mira: Look what I baked! [a photo of a blueberry cheesecake]")
    assert cake.timestamp.startswith("2023-06-27T10:37")
    one, two, three, none = found.questions
    assert one.evidence == {"0_session_1-1"}
    assert two.evidence == {"0_session_1-1", "0_session_2-1"}
    assert set(two.sessions) == {"0_session_1", "0_session_2"}
    assert three.evidence == {"0_session_2-2"}
    assert (none.kind, none.evidence) == ("unanswerable", frozenset())
    assert [len(session.messages) for session in dialogues.sessions] == [4]
    assert dialogues.questions[1].sessions == ("0",)


def test_locomos_halves_share_no_dialogue_and_ask_each_dialogue_the_questions_of_the_other(
    files: tuple[Path, Path],
) -> None:
    files[0].write_text(json.dumps(4 * json.loads(files[0].read_text(encoding="utf-8"))), encoding="utf-8")
    halves = list(locomo(files[0]))[-2:]
    dialogues = [[session.id for session in half.sessions] for half in halves]
    assert dialogues == [["0", "2"], ["1", "3"]]
    for half, ids in zip(halves, dialogues, strict=True):
        assert {said.id[0] for session in half.sessions for said in session.messages} == set(ids)
        assert {(one.id[0], one.sessions) for one in half.questions if one.kind == "foreign"} == {
            (ids[0], (ids[1],)),
            (ids[1], (ids[0],)),
        }


def test_longmemeval_has_a_registry_for_each_question_and_questions_without_an_answer(files: tuple[Path, Path]) -> None:
    first, second = longmemeval(files[1])
    assert first.questions[0].evidence == {"answer_1-1"}
    assert first.questions[0].sessions == ("answer_1",)
    assert [session.id for session in first.sessions] == ["answer_1", "sharegpt_2_0", "ultrachat_3"]
    assert str(first.now) == "2023-05-30 23:40:00+00:00"
    assert (second.questions[0].kind, second.questions[0].sessions) == ("unanswerable", ())


def test_beam_is_one_long_channel_with_its_questions(tmp_path: Path) -> None:
    folder = tmp_path / "7"
    (folder / "probing_questions").mkdir(parents=True)
    (folder / "chat.json").write_text(json.dumps(BEAM_CHAT), encoding="utf-8")
    (folder / "probing_questions" / "probing_questions.json").write_text(json.dumps(BEAM_QUESTIONS), encoding="utf-8")
    [found] = beam(folder / "chat.json")
    assert [said.text for said in found.sessions[0].messages][2] == "The pottery class is on Monday."
    none, eats, day = found.questions
    assert (none.kind, none.evidence, none.sessions) == ("unanswerable", frozenset(), ("7",))
    assert eats.evidence == {"7-1"}
    assert day.evidence == {"7-3"}


def figures(folder: Path, *options: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the figures of the command, by set, method and kind of question."""
    file = folder / "figures.json"
    monkeypatch.setattr(sys, "argv", ["retrieval", "--published", str(folder), "--json", str(file), *options])
    monkeypatch.setattr(command, "own_sets", list)
    command.main()
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def test_both_files_give_figures_on_the_command_line(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = figures(files[0].parent, "--misses", monkeypatch=monkeypatch)
    assert set(found) == {"locomo", "locomo_sessions", "locomo_tuning", "longmemeval_s"}
    assert found["locomo"]["FTS5 OR"]["all answerable"]["questions"] == 3
    for way in ("extract", "search_sessions"):
        everything = found["locomo"][way]["all answerable"]
        assert (everything["questions"], everything["session_1"]) == (3, 1.0)
    for way in ("extract", "search_sessions"):
        long = found["longmemeval_s"][way]
        assert (long["single-session-user"]["questions"], long["single-session-user"]["session_1"]) == (1, 1.0)
        assert (long["unanswerable"]["answered"], long["unanswerable"]["not_found"]) == (0.0, 1.0)
    of_channel = found["locomo_tuning"]["extract, of its channel"]["all answerable"]
    assert (of_channel["recall"], of_channel["session_1"]) == (1.0, None)
    printed = capsys.readouterr().out
    assert "== longmemeval_s" in printed


def test_search_by_meaning_is_measured_with_the_configured_model(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, embedding_server: EmbeddingServer
) -> None:
    monkeypatch.setenv("CTXR_EMBED_BASE_URL", embedding_server.url)
    monkeypatch.setenv("CTXR_EMBED_MODEL", "toy")
    found = figures(files[0].parent, "--set", "longmemeval_s", "--meaning", monkeypatch=monkeypatch)
    assert found["longmemeval_s"]["extract"]["single-session-user"]["session_1"] == 1.0
    texts = {text for batch in embedding_server.received for text in batch}
    assert {"How many bicycles did I repair?", "How many violins did I tune?"} <= texts


LIFE = QuestionSet(
    "a life",
    datetime.fromisoformat("2026-03-20T00:30+09:00"),
    "Asia/Seoul",
    [
        Session("yesterday", [Message("y-1", "user", "the parser of dates", "2026-03-19T12:00+09:00")], "codex"),
        Session("before", [Message("b-1", "user", "the parser of dates", "2026-03-18T23:00+09:00")], "codex"),
    ],
    [Question("q1", "time", "date parser yesterday", ("yesterday",), frozenset({"y-1"}))],
)


async def asked_of(life: QuestionSet) -> dict[str, Outcome]:
    async with product_with(life) as product:
        return {one.way: one async for one in ask_all(product, life.questions)}


def test_questions_are_asked_at_the_hour_and_in_the_zone_of_their_set() -> None:
    before = now()
    assert asyncio.run(asked_of(LIFE))["search_sessions"].sessions == ["yesterday"]
    a_day_earlier = replace(LIFE, now=LIFE.now - timedelta(days=1))
    assert asyncio.run(asked_of(a_day_earlier))["search_sessions"].sessions == ["before"]
    in_london = replace(LIFE, zone="Europe/London")
    assert asyncio.run(asked_of(in_london))["search_sessions"].sessions == ["before"]
    assert before <= now() < before + timedelta(minutes=5)


def test_questions_of_another_set_are_asked_without_an_expected_answer() -> None:
    foreign = with_foreign(LIFE, own_sets()).questions[1:]
    assert {one.kind for one in foreign} == {"foreign"}
    assert not any(one.is_answerable for one in foreign)
    assert {one.sessions for one in foreign} == {("yesterday",), ("before",)}


def test_a_guess_does_not_count_as_an_answer() -> None:
    outcome = asyncio.run(asked_of(LIFE))["extract"]
    assert outcome.is_answered
    assert not replace(outcome, confidence="low").is_answered
    assert replace(outcome, confidence="medium").is_answered


def test_tokens_to_the_fact_end_with_the_answering_message() -> None:
    outcome = asyncio.run(asked_of(LIFE))["extract, of its channel"]
    assert outcome.until_fact is not None
    assert 0 < outcome.until_fact < outcome.tokens


def test_other_wordings_are_sent_to_tools_that_take_them() -> None:
    question = replace(LIFE.questions[0], also=("when", "언제"))
    [extract, search] = [way for way in WAYS if way.with_also and not way.in_channel]
    assert extract.arguments(question, "") == {"query": {"text": question.text, "also": ["when", "언제"]}}
    assert search.arguments(question, "")["also"] == ["when", "언제"]
    assert not extract.takes(LIFE.questions[0])


CUT = {"message": 7, "reason": "too little"}


@pytest.mark.parametrize(
    ("verdict", "fate"),
    [(CUT, "cut: too little"), ({"message": 7, "reason": None}, RANKED_LOW), (None, NO_CANDIDATE)],
)
def test_a_lost_message_is_classified_by_the_step_that_lost_it(verdict: dict[str, Any] | None, fate: str) -> None:
    assert fate_of(verdict, NO_CANDIDATE) == fate
