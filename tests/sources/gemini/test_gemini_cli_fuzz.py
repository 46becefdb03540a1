"""Whatever a chat of Gemini CLI holds: it is read or passed over, without a crash and without an end of time."""

from __future__ import annotations

import copy
import io
import json

from hypothesis import given
from hypothesis import strategies as st

from registry.domain import Session
from sources.gemini import chat as gemini_chat
from sources.kit.jsonl import Damage, Record, read_lines, records_of
from tests.sources.anything import ANYTHING, DEEP, change, check, or_anything
from tests.sources.gemini.gemini_files import Chat, call, working_chat

IDS = or_anything("m1", "m2", "m3", "")
TEXTS = or_anything("Hi", "<session_context>", "x --- Content from referenced files --- Content from @a:", "")
PARTS = TEXTS | st.lists(
    st.fixed_dictionaries({}, optional={"text": TEXTS, "inlineData": ANYTHING, "thought": ANYTHING})
)
CALL = st.fixed_dictionaries(
    {"name": or_anything("shell")},
    optional={
        "id": IDS,
        "args": ANYTHING,
        "status": or_anything("success", "error", "cancelled", "executing", "odd"),
        "result": ANYTHING | st.lists(st.fixed_dictionaries({"functionResponse": ANYTHING})),
        "resultDisplay": ANYTHING,
    },
)
MESSAGE = st.fixed_dictionaries(
    {"type": or_anything("user", "gemini", "info", "error")},
    optional={
        "id": IDS,
        "timestamp": ANYTHING,
        "content": PARTS,
        "displayContent": PARTS,
        "thoughts": ANYTHING | st.lists(st.fixed_dictionaries({"subject": ANYTHING, "description": ANYTHING})),
        "tokens": ANYTHING,
        "model": ANYTHING,
        "toolCalls": ANYTHING | st.lists(CALL, max_size=2),
    },
)
HEADER = st.fixed_dictionaries(
    {},
    optional={
        "sessionId": ANYTHING,
        "summary": TEXTS,
        "directories": ANYTHING,
        "projectHash": ANYTHING,
        "messages": ANYTHING | st.lists(MESSAGE | ANYTHING, max_size=4),
    },
)
RECORD = (
    MESSAGE | HEADER | st.fixed_dictionaries({"$rewindTo": IDS}) | st.fixed_dictionaries({"$set": HEADER | ANYTHING})
)


def read(records: list[Record], agent_of: str | None = None) -> Session:
    chat = gemini_chat.Chat("s", agent_of)
    for record in records:
        chat.read(record)
    return chat.session()


@given(st.lists(RECORD, max_size=12), st.sampled_from([None, "parent"]))
def test_any_records_make_a_session(records: list[Record], agent_of: str | None) -> None:
    check(read(records, agent_of))


@given(st.binary() | st.lists(st.sampled_from([b"{", b"}", b'"$set":', b"{}", b"\n", b"\xff"])).map(b"".join))
def test_any_bytes_are_read_or_told(data: bytes) -> None:
    check(read(list(records_of(read_lines(io.BytesIO(data)), Damage()))))


WHOLE = working_chat().journal()


@given(st.integers(0, len(WHOLE)))
def test_a_journal_cut_anywhere_keeps_what_was_written_before(length: int) -> None:
    session = read(list(records_of(read_lines(io.BytesIO(WHOLE[:length])), Damage())))
    check(session)
    assert len(session.messages) <= 10


@given(st.data())
def test_a_real_chat_with_any_value_changed_is_still_read(data: st.DataObject) -> None:
    records = copy.deepcopy([working_chat().header, *working_chat().lines])
    for _ in range(data.draw(st.integers(1, 4))):
        change(data, data.draw(st.sampled_from([record for record in records if record])))
    check(read(records))


def test_a_bottomless_parameter_and_result_do_no_harm() -> None:
    chat = Chat()
    chat.gemini("", call("shell", {"a": DEEP}, DEEP), call("shell", {}, None, resultDisplay=[DEEP]))
    session = read(chat.lines)
    check(session)
    json.dumps([dict(message.more) for message in session.messages])


def test_fifty_thousand_rewound_messages_take_no_time() -> None:
    chat = gemini_chat.Chat("s")
    for number in range(50_000):
        chat.read({"id": f"m{number}", "type": "user", "content": f"{number}"})
        chat.read({"$rewindTo": f"m{number}"})
    assert len(chat.session().messages) == 50_000
