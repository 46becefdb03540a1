"""Test summaries: questions, decisions, changes, and open points."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest

from orchestrator.answer.delivery import tokens_in
from orchestrator.answer.digests.summary import digest_of, points_of, sentences_in, summary_of

ENGLISH = [
    ("user", "How should we store sessions for the shop? We expect ten servers."),
    ("assistant", "Redis or signed cookies. I recommend Redis, because tokens can be revoked at once."),
    ("user", "ok"),
    ("assistant", "Shall I write it?"),
    ("user", "Let's go with Redis and a TTL of 30 minutes."),
    (
        "assistant",
        "I've added session/store.py and the tests pass. Still to do: the migration of old sessions. TODO: TTL.",
    ),
    ("user", "thanks"),
]
KOREAN = [
    ("user", "피보나치 함수의 시간복잡도를 개선하려면 어떻게 해야 할까요?"),
    ("assistant", "메모이제이션을 쓰면 O(n)이 됩니다."),
    ("user", "네"),
    ("assistant", "반복문으로 바꾸면 공간도 O(1)입니다."),
    ("user", "반복문으로 가자."),
    ("assistant", "optimizer.py를 수정했습니다. 남은 일은 벤치마크입니다."),
    ("user", "좋아요"),
]


def messages(*turns: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"role": role, "text": text} for role, text in turns]


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (ENGLISH, ["Asked: How should we store sessions", "Decided: ", "Let's go with Redis", "Changed: I've added"]),
        (
            KOREAN,
            ["질문: 피보나치 함수의", "결정: 반복문으로 가자.", "변경: optimizer.py를 수정했습니다.", "미해결: 남은"],
        ),
    ],
    ids=["English", "Korean"],
)
def test_a_summary_says_what_was_asked_decided_changed_and_left(
    turns: list[tuple[str, str]], expected: list[str]
) -> None:
    summary = summary_of(messages(*turns), 300)
    assert [part for part in expected if part not in summary] == []
    assert "ok" not in summary.split()
    assert "thanks" not in summary


@pytest.mark.parametrize(
    ("asked", "changed"),
    [
        ("Fix the login", "Changed: src/a.py · `pytest -q` (failed), `git push` (completed)"),
        ("로그인을 고쳐 줘", "변경: src/a.py · `pytest -q` (실패), `git push` (완료)"),
    ],
)
def test_files_and_commands_of_a_summary_come_from_tool_calls(asked: str, changed: str) -> None:
    tools = [
        {
            "role": "tool",
            "text": "",
            "tool": {"name": "Edit", "params": {"file_path": "src/a.py"}, "status": "completed"},
        },
        {"role": "tool", "text": "", "tool": {"name": "Read", "params": {"file_path": "src/b.py"}}},
        {"role": "tool", "text": "", "tool": {"name": "Bash", "params": {"command": "pytest -q"}, "status": "failed"}},
        {"role": "tool", "text": "", "tool": {"name": "sh", "params": {"command": "git push"}, "status": "completed"}},
    ]
    summary = summary_of([*messages(("user", asked)), *tools], 100)
    assert changed in summary
    assert "src/b.py" not in summary


def test_an_unanswered_question_is_open() -> None:
    assert "Open: Shall I deploy it tonight?" in summary_of(
        messages(("user", "Fix the login"), ("assistant", "It is fixed now. Shall I deploy it tonight?")), 100
    )


def test_an_empty_conversation_has_no_summary() -> None:
    for words in [["ok"], ["네"], ["ok", "thanks", "계속", "```\ncode\n```"], []]:
        assert summary_of(messages(*(("user", word) for word in words)), 100) == ""


def test_a_summary_and_a_digest_keep_within_their_size() -> None:
    for tokens in [5, 20, 60, 200]:
        turns = messages(*ENGLISH, *KOREAN)
        assert 0 < tokens_in(summary_of(turns, tokens)) <= tokens
        assert sum(tokens_in(message["text"]) for message in digest_of(turns, max(tokens, 12))) <= max(tokens, 12)


def test_a_summary_holds_no_code() -> None:
    summary = summary_of(messages(("user", "Explain this:\n```py\nraise SystemExit\n```\nWhy does it stop?")), 100)
    assert summary == "Asked: Explain this: Why does it stop?"


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Put both under `networks: [backend]`.", ["Put both under networks: [backend]."]),
        ("See [the guide](https://example.org/a), please.", ["See [the guide](https://example.org/a), please."]),
        ("The password is [secret:password:a8].", ["The password is [secret:password:a8]."]),
        ("- [x] Write the tests [1, 2].", ["Write the tests ."]),
        ("[Request interrupted by user]\nUse Redis.", ["Use Redis."]),
        ("![diagram](a.png)\n[Image #1] Use ![a table](b.png) Redis.", ["Use  Redis."]),
    ],
)
def test_brackets_of_links_and_secrets_stay_and_those_of_marks_and_images_go(text: str, sentences: list[str]) -> None:
    assert list(sentences_in(text)) == sentences


@pytest.mark.parametrize("opened", ["[Image", "![a", "![a]("])
def test_many_unclosed_brackets_are_parsed_in_linear_time(opened: str) -> None:
    before = process_time()
    assert list(sentences_in(opened * 13_000))
    assert process_time() - before < 1  # 5 s if each bracket scans the rest of the text


@pytest.mark.parametrize(
    ("settled", "line"),
    [
        ("Let's go with PMTiles, generated by planetiler.", "Let's go with PMTiles, generated by planetiler."),
        ("그럼 잠실 쪽 한정식으로 예약할게.", "그럼 잠실 쪽 한정식으로 예약할게."),
        ("3/8 일요일로 하자", "3/8 일요일로 하자"),
    ],
)
def test_a_choice_of_the_user_is_a_decision(settled: str, line: str) -> None:
    talk = [
        {"role": "user", "text": "What would you do here?"},
        {"role": "assistant", "text": "There are several ways, each with its price."},
        {"role": "user", "text": settled},
        {"role": "assistant", "text": "Good choice."},
    ]
    [decided] = points_of(talk, "en")["decided"]
    assert decided.endswith(line)


def test_a_summary_reports_the_outcome_and_not_the_word_of_success_before_it() -> None:
    talk = [
        {"role": "user", "text": "도커 빌드가 매번 11분 걸려"},
        {"role": "assistant", "text": "`COPY` 순서를 바꾸세요."},
        {"role": "user", "text": "ok 통과. 2분 10초로 줄었다"},
    ]
    assert points_of(talk, "en")["changed"] == ["2분 10초로 줄었다"]


def test_a_sentence_about_what_users_can_choose_is_no_decision() -> None:
    talk = [
        {"role": "user", "text": "One file per park?"},
        {"role": "assistant", "text": "The cost is that users can't choose an arbitrary area."},
    ]
    assert "decided" not in points_of(talk, "en")


ANSWER = """\
### Next steps
| key | what it holds |
| --- | --- |
| session | the basket of a signed-in user |

**Overview**

- Error handling
1. Create the tables

Baskets of guests expire after thirty days in Redis.
Let me know if you have any questions!
"""


@pytest.mark.parametrize("offer", ["", "다른 도움이 필요하시면 언제든 손님 장바구니를 물어보세요."])
def test_an_answer_is_summarised_without_headings_tables_and_offers(offer: str) -> None:
    talk = [{"role": "user", "text": "How are guests' baskets kept?"}, {"role": "assistant", "text": ANSWER + offer}]
    assert points_of(talk, "en")["answered"] == ["Baskets of guests expire after thirty days in Redis."]


def test_an_explanation_or_a_doubt_is_no_decision() -> None:
    cases: list[str] = [
        "Let's go through your implementation step by step to see where it fails.",
        "I'm trying to decide between coins and dice for the first lesson.",
        "Argon2 needs the recommended parameters of its authors.",
        "Sure, let's look at the problem with the marbles again.",
        "고추장은 냉이 향을 덮어서 추천하지 않아요.",
        "저장 방식은 아직 결정이 필요합니다.",
    ]
    for text in cases:
        for role in ("user", "assistant"):
            talk = [{"role": "user", "text": "Where were we with the lesson?"}, {"role": role, "text": text}]
            assert "decided" not in points_of(talk, "en")


def test_an_instruction_in_a_message_with_thanks_is_kept() -> None:
    for thanks in ("Thanks, use Redis for the sessions.", "Use Redis for the sessions, thanks."):
        assert "Redis" in summary_of(messages(("user", "Where do sessions live?"), ("user", thanks)), 100)


def test_a_short_summary_keeps_the_question() -> None:
    talk = [
        {"role": "user", "text": "Where should the baskets of guests be kept?"},
        {"role": "assistant", "text": "We'll keep them in Redis. I added a basket store for guests."},
    ]
    assert summary_of(talk, 20) == "Asked: Where should the baskets of guests be kept?"
