"""Test the size of an answer, its passages, and the state of a conversation; no registry is opened."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.answer.conversation_state import MAX_FILES, MAX_TEXT, state_of
from orchestrator.answer.delivery import GAP, shorten, tokens_in, truncate
from sources.client import SizeLimit

# -- size


def test_korean_counts_three_times_its_letters_if_a_client_limits_bytes() -> None:
    assert [SizeLimit(9, in_bytes=in_bytes).length_of("가나다") for in_bytes in (True, False)] == [9, 3]


def test_tokens_are_estimated_from_letters_and_rounded_up() -> None:
    assert (tokens_in(""), tokens_in("abc"), tokens_in("abcd"), tokens_in("가나"), tokens_in("abc 가나")) == (
        0, 1, 1, 2, 3
    )  # fmt: skip


@given(st.text(max_size=200), st.integers(1, 60))
def test_a_cut_text_fits_and_ends_with_an_ellipsis(text: str, most: int) -> None:
    cut = truncate(text, most)
    assert tokens_in(cut) <= most
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))


# -- passages


def occurrences_of(word: str) -> Any:
    return lambda piece: float(piece.count(word))


def test_a_text_that_fits_is_given_whole() -> None:
    assert shorten("short\n\ntext", 100, occurrences_of("x")) == ("short\n\ntext", 0)


def test_a_long_text_is_shortened_to_its_beginning_and_best_passage_with_gaps_marked() -> None:
    paragraphs = [f"paragraph {n} " + "filler words here " * 10 for n in range(30)]
    paragraphs[17] = "the needle is in this one " + "filler words here " * 10
    text = "\n\n".join(paragraphs)
    short = shorten(text, 250, occurrences_of("needle"))
    assert short.full_length == len(text)
    assert tokens_in(short.text) <= 250
    assert "needle" in short.text
    assert short.text.startswith("paragraph 0")
    assert GAP.strip() in short.text


def test_a_block_of_code_is_not_split() -> None:
    code = "```python\n" + "\n\n".join(f"line_{n} = {n}" for n in range(20)) + "\n```"
    text = "\n\n".join(["words " * 60, code, "words " * 60, "needle " * 3, "words " * 60])
    short = shorten(text, 250, occurrences_of("line_7")).text
    assert code in short


def test_a_long_paragraph_is_split_at_its_sentences() -> None:
    text = " ".join(f"Sentence number {n} says little of anything at all." for n in range(60)) + " The needle is here."
    short = shorten(text, 120, occurrences_of("needle"))
    assert "The needle is here." in short.text
    assert tokens_in(short.text) <= 120


def test_a_korean_text_is_split_too() -> None:
    text = " ".join(f"이것은 {n}번째 문장이고 별 내용이 없습니다." for n in range(60)) + " 바늘은 여기에 있습니다."
    short = shorten(text, 200, occurrences_of("바늘"))
    assert "바늘" in short.text
    assert tokens_in(short.text) <= 200


def test_a_word_longer_than_the_limit_is_cut() -> None:
    short = shorten("x" * 5000, 50, occurrences_of("needle"))
    assert (tokens_in(short.text) <= 50, short.full_length) == (True, 5000)


@given(st.lists(st.text(max_size=80), max_size=12), st.integers(20, 200))
def test_a_shortened_text_fits(paragraphs: list[str], most: int) -> None:
    text = "\n\n".join(paragraphs)
    short = shorten(text, most, occurrences_of("a"))
    assert short.full_length == 0 or tokens_in(short.text) <= most + len(paragraphs) * tokens_in(GAP)


# -- the state of a conversation


def message(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "text": text, **more}


def tool_call(name: str, params: dict[str, Any], status: str = "ok", result: str = "") -> dict[str, Any]:
    return message(
        "tool",
        f"{name} {json.dumps(params)}",
        tool={"name": name, "params": params, "status": status, "result": result},
    )


def test_the_state_has_the_last_question_answer_files_command_and_error() -> None:
    state = state_of(
        [
            message("user", "first question"),
            tool_call("read", {"file_path": "/src/a.py"}),
            tool_call("bash", {"command": "make test"}, "error", "2 failed"),
            message("assistant", "first answer"),
            message("user", "and now?"),
            tool_call("edit", {"path": "/src/b.py"}),
            tool_call("edit", {"file_path": "/src/a.py"}),
            tool_call("bash", {"command": ["git", "push"]}, "ok", "done"),
            message("assistant", "Pushed. Shall I open a pull request?"),
        ]
    )
    assert state == {
        "last_question": "and now?",
        "last_answer": "Pushed. Shall I open a pull request?",
        "files": ["/src/a.py", "/src/b.py"],
        "last_command": {"command": "git push", "status": "ok", "result": "done"},
        "last_error": "2 failed",
        "open_question": "Pushed. Shall I open a pull request?",
    }


def test_the_state_leaves_out_empty_fields() -> None:
    assert state_of([]) == {}
    state = state_of([message("user", "hello"), message("assistant", "Hello, all is done.")])
    assert state == {"last_question": "hello", "last_answer": "Hello, all is done."}


def test_a_conversation_that_ends_with_a_question_is_open() -> None:
    cases: list[tuple[str, str, bool]] = [
        ("user", "fix the tests", True),
        ("user", "Thanks. Now fix the tests", True),
        ("user", "Please fix the login bug, thanks", True),
        ("user", "Thanks but it still fails", True),
        ("user", "로그인 버그 고쳐 주세요. 감사합니다", True),
        ("user", "Thank you, can you add one for zero?", True),
        ("user", "ok keeping both. bye", False),
        ("user", "perfect, thanks a lot!", False),
        ("user", "그렇게 할게요. 고마워요~", False),
        ("assistant", "Which database do you use?", True),
        ("assistant", "Done.\nShall I go on?", True),
        ("assistant", "Is it slow? Yes, so I added an index.", False),
        ("assistant", "커밋할까요?", True),
        ("assistant", "다음으로 무엇을 할까요", True),
        ("assistant", "모두 끝났습니다.", False),
    ]
    for role, text, is_open in cases:
        assert ("open_question" in state_of([message("user", "?"), message(role, text)])) == is_open


def test_long_texts_and_many_files_are_cut() -> None:
    state = state_of([message("user", "x" * 2000), *(tool_call("read", {"path": f"/f{n}"}) for n in range(30))])
    assert len(state["last_question"]) <= MAX_TEXT + 1
    assert state["files"] == [f"/f{n}" for n in range(29, 29 - MAX_FILES, -1)]


def test_an_error_message_counts_before_an_error_of_a_tool() -> None:
    messages = [message("error", "connection lost"), tool_call("bash", {"command": "ls"}, "failed", "no such file")]
    assert state_of(messages)["last_error"] == "connection lost"
