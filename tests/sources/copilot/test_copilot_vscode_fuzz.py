"""Arbitrary and extreme sessions of Copilot Chat are read or skipped, in time and without a crash."""

from __future__ import annotations

import copy
import json

from hypothesis import given
from hypothesis import strategies as st

from registry.domain import Session
from sources.copilot.chat import _IGNORED, _PARTS, VsCodeChat
from sources.copilot.vscode import replayed
from sources.kit.jsonl import Damage
from sources.kit.loose_json import Record
from tests.sources.anything import ANYTHING, DEEP, change, check, or_anything
from tests.sources.copilot.copilot_files import as_log, asked, chat, lines_of, tool, working_chat

CALLS = or_anything("c1", "c2", "")
TEXTS = or_anything("Hi", "", {"value": "x"})
PART = st.fixed_dictionaries(
    {},
    optional={
        "kind": or_anything(*_PARTS, *sorted(_IGNORED)[:3]),
        "value": TEXTS | ANYTHING,
        "toolCallId": CALLS,
        **{key: ANYTHING for key in ("content", "id", "name", "uri", "edits", "toolId", "isComplete", "isConfirmed")},
        **{key: ANYTHING for key in ("inlineReference", "resultDetails", "toolSpecificData", "invocationMessage")},
    },
)
ROUND = st.fixed_dictionaries(
    {
        "toolCalls": ANYTHING
        | st.lists(st.fixed_dictionaries({"id": CALLS}, optional={"arguments": ANYTHING}), max_size=2)
    }
)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "toolCallRounds": ANYTHING | st.lists(ROUND, max_size=2),
        "toolCallResults": ANYTHING | st.dictionaries(st.sampled_from(["c1", "c2"]), ANYTHING),
        "resolvedModel": ANYTHING,
    },
)
REQUEST = st.fixed_dictionaries(
    {},
    optional={
        "requestId": or_anything("r1", "r2"),
        "message": TEXTS | st.fixed_dictionaries({"text": ANYTHING}),
        "response": ANYTHING | st.lists(PART | ANYTHING, max_size=5),
        "result": ANYTHING | st.fixed_dictionaries({"metadata": METADATA | ANYTHING, "errorDetails": ANYTHING}),
        "variableData": ANYTHING | st.fixed_dictionaries({"variables": ANYTHING}),
        **{key: ANYTHING for key in ("timestamp", "modelId", "shouldBeRemovedOnSend")},
    },
)
SESSION = st.fixed_dictionaries(
    {"requests": ANYTHING | st.lists(REQUEST | ANYTHING, max_size=4)},
    optional={key: ANYTHING for key in ("sessionId", "customTitle", "creationDate", "computedTitle")},
)
KEYS = st.sampled_from(["requests", "response", 0, 1, -1, 10**9, True]) | ANYTHING
LINE = st.fixed_dictionaries(
    {"kind": or_anything(0, 1, 2, 3), "v": SESSION | ANYTHING},
    optional={"k": ANYTHING | st.lists(KEYS, max_size=4), "i": or_anything(0, 1, -5, 10**9)},
)


def read(document: Record) -> Session:
    session = VsCodeChat("s", given=document, listed_title=" ").session()
    check(session)
    return session


@given(SESSION)
def test_any_document_is_parsed(document: Record) -> None:
    read(document)


@given(st.lists(LINE, max_size=12), st.booleans())
def test_any_operations_are_parsed(lines: list[Record], has_beginning: bool) -> None:
    before = as_log(working_chat()) if has_beginning else []
    read(replayed([*before, *lines], Damage()))


WHOLE = lines_of(as_log(working_chat()))


@given(st.data())
def test_a_real_session_with_any_value_changed_is_still_read(data: st.DataObject) -> None:
    session = copy.deepcopy(working_chat())
    for _ in range(data.draw(st.integers(1, 4))):
        if session:
            change(data, session)
    read(session)


def test_deeply_nested_values_are_parsed() -> None:
    parts = [
        tool("c", "x", "y", toolSpecificData={"rawInput": DEEP}),
        {"kind": "inlineReference", "inlineReference": DEEP},
    ]
    metadata = {"toolCallRounds": [{"toolCalls": [{"id": "c", "name": "x", "arguments": DEEP}]}],
                "toolCallResults": {"c": {"content": [{"value": DEEP}]}}}  # fmt: skip
    session = read(chat(1, asked("r", "Hi", *parts, result={"metadata": metadata})))
    json.dumps([dict(message.more) for message in session.messages])


def test_a_tree_of_a_hundred_thousand_words_is_parsed_fast() -> None:
    tree = {"node": {"children": [{"children": [{"text": "x"}] * 10}] * 10_000}}
    metadata = {
        "toolCallRounds": [{"toolCalls": [{"id": "c"}]}],
        "toolCallResults": {"c": {"content": [{"value": tree}]}},
    }
    session = read(chat(1, asked("r", "Hi", tool("c", "x", "y"), result={"metadata": metadata})))
    assert len(session.messages[-1].more["tool"]["result"]) == 100_000


def test_a_log_of_a_hundred_thousand_operations_is_parsed_fast() -> None:
    lines = [{"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "x"}], "i": 0}] * 100_000
    assert len(read(replayed([{"kind": 0, "v": chat(1, asked("r", "Hi"))}, *lines], Damage())).messages) == 2
