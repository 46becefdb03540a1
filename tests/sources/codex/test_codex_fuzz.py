"""Arbitrary and extreme rollouts of Codex, beyond `tests/sources/test_fuzz.py`."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from sources.codex import rollout as codex_rollout
from sources.codex.records import pieces_of
from sources.codex.tools import parse_output
from sources.kit.loose_json import Record
from tests.sources.anything import ANYTHING, check_all
from tests.sources.codex.codex_files import thread_id
from tests.sources.codex.codex_fuzz import PAYLOAD, RECORD, TEXTS, read_records


@given(st.lists(RECORD | PAYLOAD, max_size=12))
def test_any_records_of_a_sub_agent_are_parsed(records: list[Record]) -> None:
    check_all(read_records(records, ("t1",)))


@given(TEXTS | st.text())
def test_any_text_is_split_into_non_empty_pieces(text: str) -> None:
    assert all(piece for _, piece in pieces_of(text))


@given(ANYTHING | st.text().map(lambda text: json.dumps({"output": text})))
def test_any_tool_output_becomes_text(output: object) -> None:
    result, status = parse_output(output)
    assert isinstance(result, str)
    assert status in ("completed", "failed")


def test_five_thousand_rolled_back_turns_are_parsed_fast() -> None:
    rollout = codex_rollout.Rollout(thread_id(1))
    for number in range(5_000):
        rollout.read({"type": "event_msg", "payload": {"type": "user_message", "message": f"{number}"}})
        rollout.read({"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}})
    assert len(rollout.session().messages) == 5_000
