"""Arbitrary and extreme transcripts of Claude Code, beyond `tests/sources/test_fuzz.py`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from registry.domain import Role
from sources.claude_code.prompts import pieces_of
from sources.claude_code.reader import parse
from tests.sources.anything import check_all
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, working_session
from tests.sources.claude_code.claude_code_fuzz import CLAUDE_CODE, WRAPPED

WHOLE = working_session().lines()


@given(st.lists(WRAPPED | st.text()))
def test_any_text_is_split_into_non_empty_pieces(texts: list[str]) -> None:
    assert all(piece.text for piece in pieces_of(texts))


def test_a_text_of_many_wrappers_is_parsed_fast() -> None:
    for text in ("<bash-stdout></bash-stdout>" * 100_000, "<system-reminder>x</system-reminder>" * 100_000):
        assert list(pieces_of([text])) is not None
    assert next(pieces_of(["<bash-stdout>" * 100_000])).role is Role.SYSTEM


def test_an_answer_in_five_thousand_records_is_parsed_fast() -> None:
    talk = Dialogue(session_id(1))
    for number in range(5_000):
        message = {"id": "msg_1", "content": [{"type": "text", "text": f"{number}"}]}
        talk.records.append({"type": "assistant", "uuid": f"u{number}", "message": message})
    assert len(parse(talk.records, talk.session_id)[0].session().messages) == 1


def test_infinite_numbers_and_deeply_nested_parameters_are_parsed() -> None:
    line = b'{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"X","input":{"n":1e999,"d":'
    [session] = CLAUDE_CODE.read_bytes(line + b"[" * 400 + b"]" * 400 + b"}}]}}\n")
    check_all([session])


def test_a_chain_of_ten_thousand_records_is_parsed_fast() -> None:
    talk = Dialogue(session_id(1))
    for number in range(10_000):
        talk.records.append({"type": "user", "uuid": f"u{number}", "parentUuid": f"u{number - 1}", "message": {}})
    assert parse(talk.records, talk.session_id)[0].session().messages == ()
