"""What a chat of Gemini CLI may hold besides what `tests/sources/test_fuzz.py` tries: it is read all the same."""

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
def test_any_records_of_a_sub_agent_make_a_session(records: list[Record]) -> None:
    check(read(records, agent_of="parent"))


def test_a_bottomless_parameter_and_result_do_no_harm() -> None:
    chat = Chat()
    chat.gemini("", call("shell", {"a": DEEP}, DEEP), call("shell", {}, None, resultDisplay=[DEEP]))
    session = read(chat.lines)
    check(session)
    json.dumps([dict(message.more) for message in session.messages])


def test_twenty_thousand_rewound_messages_take_no_time() -> None:
    chat = gemini_reader.GeminiChat("s")
    for number in range(20_000):
        chat.read({"id": f"m{number}", "type": "user", "content": f"{number}"})
        chat.read({"$rewindTo": f"m{number}"})
    assert len(chat.session().messages) == 20_000
