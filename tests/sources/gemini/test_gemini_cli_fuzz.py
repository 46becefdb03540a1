"""Arbitrary and extreme chats of Gemini CLI, beyond `tests/sources/test_fuzz.py`."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from sources.gemini import reader as gemini_reader
from sources.kit.loose_json import Record
from tests.sources.anything import DEEP, check
from tests.sources.gemini.gemini_files import Chat, call
from tests.sources.gemini.gemini_fuzz import RECORDS, read


@given(st.lists(RECORDS, max_size=12))
def test_any_records_of_a_sub_agent_are_parsed(records: list[Record]) -> None:
    check(read(records, agent_of="parent"))


def test_deeply_nested_parameters_and_results_are_parsed() -> None:
    chat = Chat()
    chat.gemini("", call("shell", {"a": DEEP}, DEEP), call("shell", {}, None, resultDisplay=[DEEP]))
    session = read(chat.lines)
    check(session)
    json.dumps([dict(message.more) for message in session.messages])


def test_five_thousand_rewound_messages_are_parsed_fast() -> None:
    chat = gemini_reader.GeminiChat("s")
    for number in range(5_000):
        chat.read({"id": f"m{number}", "type": "user", "content": f"{number}"})
        chat.read({"$rewindTo": f"m{number}"})
    assert len(chat.session().messages) == 5_000
