"""Arbitrary records and rows of OpenCode are read or skipped without a crash."""

from __future__ import annotations

import copy
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from registry.domain import Session
from sources.base import FoundSession
from sources.kit.loose_json import Record
from sources.opencode import reader as opencode_reader
from sources.opencode.reader import _IGNORED, OpenCode
from tests.sources.anything import ANYTHING, DEEP, change, check, or_anything
from tests.sources.opencode import opencode_files
from tests.sources.opencode.opencode_files import tool, working_dialogue, write_database

KINDS = ("compaction", "file", "reasoning", "retry", "subtask", "text", "tool")
IDS = or_anything("m1", "p1", "")
TIME = ANYTHING | st.fixed_dictionaries({}, optional={"start": ANYTHING, "created": ANYTHING, "completed": ANYTHING})
STATE = st.fixed_dictionaries(
    {},
    optional={
        "status": or_anything("completed", "error", "running"),
        "metadata": ANYTHING | st.fixed_dictionaries({"exit": ANYTHING, "sessionId": ANYTHING}),
        "time": TIME,
        **{key: ANYTHING for key in ("input", "output", "error", "attachments")},
    },
)
PART = st.fixed_dictionaries(
    {"type": or_anything(*KINDS, *_IGNORED)},
    optional={
        "id": IDS,
        "time": TIME,
        "state": STATE | ANYTHING,
        **{key: ANYTHING for key in ("text", "synthetic", "ignored", "tool", "url", "filename", "mime", "error")},
        **{key: ANYTHING for key in ("prompt", "command", "description", "agent")},
    },
)
MESSAGE = st.fixed_dictionaries(
    {"role": or_anything("user", "assistant")},
    optional={
        "id": IDS,
        "time": TIME,
        "error": ANYTHING | st.fixed_dictionaries({"name": or_anything("MessageAbortedError"), "data": ANYTHING}),
        **{key: ANYTHING for key in ("modelID", "tokens", "summary")},
    },
)
DESCRIBED = st.fixed_dictionaries(
    {"id": st.just("ses_1")},
    optional={
        "revert": ANYTHING | st.fixed_dictionaries({"messageID": IDS}, optional={"partID": IDS}).map(json.dumps),
        **{key: ANYTHING for key in ("parent_id", "directory", "title", "version", "time_created")},
    },
)


def read(described: Record, messages: list[tuple[Record, list[Record]]]) -> Session:
    reading = opencode_reader.OpenCodeDialogue(described=described)
    for message, parts in messages:
        reading.read(message, parts)
    session = reading.session()
    check(session)
    return session


@given(DESCRIBED, st.lists(st.tuples(MESSAGE, st.lists(PART, max_size=4)), max_size=4))
def test_any_records_are_parsed(described: Record, messages: list[tuple[Record, list[Record]]]) -> None:
    read(described, messages)


@given(st.data())
def test_a_real_session_with_any_value_changed_is_still_read(data: st.DataObject) -> None:
    dialogue = working_dialogue()
    messages = copy.deepcopy(dialogue.messages)
    records = [record for message, parts in messages for record in (message, *parts)]
    for _ in range(data.draw(st.integers(1, 4))):
        change(data, data.draw(st.sampled_from([record for record in records if record])))
    read(dialogue.info(), messages)


VALUES = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(max_size=9)
    | st.binary(max_size=9)
    | ANYTHING.map(json.dumps)
)
COLUMNS = st.sampled_from(
    [
        *("session.title", "session.revert", "session.time_updated", "session.time_created", "session.directory"),
        *("message.data", "message.time_updated", "message.time_created", "part.data", "part.time_updated"),
    ]
)


@given(st.dictionaries(COLUMNS, VALUES, min_size=1, max_size=3))
def test_any_values_in_the_database_are_read(values: dict[str, object]) -> None:
    with TemporaryDirectory() as folder:
        store = write_database(Path(folder), working_dialogue())
        with closing(sqlite3.connect(store)) as connection, connection:
            for column, value in values.items():
                table, _, name = column.partition(".")
                connection.execute(f"UPDATE OR IGNORE {table} SET {name} = ?", (value,))  # noqa: S608
        sessions = [each for each in OpenCode().sessions(store, {}) if isinstance(each, FoundSession)]
        assert len(sessions) == 1
        check(sessions[0].session)


def test_deeply_nested_parameters_and_results_are_parsed() -> None:
    dialogue = opencode_files.Dialogue()
    dialogue.answer(tool("x", DEEP, DEEP), tool("y", {}, DEEP, "error"), error=DEEP)
    json.dumps([dict(message.more) for message in read(dialogue.info(), dialogue.messages).messages])
