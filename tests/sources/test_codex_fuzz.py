"""Whatever a rollout holds: it is read or passed over, without a crash and without an end of time."""

from __future__ import annotations

import copy
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.domain import Role, storable
from sources import codex_rollout
from sources.base import Session
from sources.codex_prompts import pieces_of
from sources.codex_tools import CALLS, EVENTS, ITEMS, OUTPUTS, outcome
from sources.jsonl import Damage, Record, read_lines, records_of
from tests.sources.codex_files import Rollout, flat, legacy, paginated, thread_id

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
IDS = st.sampled_from(["c1", "c2", ""])
TURNS = st.sampled_from(["t1", "t2", ""])
TEXTS = st.sampled_from(["Hi", "<environment_context>", "x ## My request for Codex: y", "## My request for Codex:"])


def or_anything(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return strategy | ANYTHING


CONTENT = or_anything(st.lists(st.fixed_dictionaries({"type": st.just("input_image") | ANYTHING, "text": TEXTS})))
ITEM = st.fixed_dictionaries(
    {"type": or_anything(st.sampled_from([*ITEMS, "UserMessage", "AgentMessage", "Reasoning", "Plan", "planets"]))},
    optional={
        "id": or_anything(IDS),
        "content": CONTENT,
        "changes": ANYTHING,
        "exit_code": ANYTHING,
        "result": ANYTHING,
        "summary_text": ANYTHING,
    },
)
PAYLOAD = st.fixed_dictionaries(
    {
        "type": or_anything(
            st.sampled_from(
                [
                    *(*CALLS, *OUTPUTS, *EVENTS, "message", "reasoning", "user_message", "agent_message"),
                    *("item_completed", "thread_rolled_back", "turn_aborted", "error"),
                ]
            )
        )
    },
    optional={
        "id": or_anything(IDS),
        "call_id": or_anything(IDS),
        "turn_id": or_anything(TURNS),
        "role": or_anything(st.sampled_from(["user", "assistant", "developer"])),
        "name": or_anything(st.sampled_from(["shell", "exec", "view"])),
        "content": CONTENT,
        "message": or_anything(TEXTS),
        "arguments": or_anything(st.sampled_from(['{"command":["ls"]}', "[1]", "{", '{"a":' * 5000])),
        "output": or_anything(st.sampled_from(['{"output":1,"metadata":{"exit_code":2}}', "plain"])),
        "item": or_anything(ITEM),
        "num_turns": or_anything(st.integers(-2, 3)),
        "summary": CONTENT,
        "cwd": or_anything(st.sampled_from(["/a", "C:\\a"])),
        "source": ANYTHING,
        "history_base": ANYTHING,
        "subagent_history_start_ordinal": ANYTHING,
        "images": ANYTHING,
        "invocation": ANYTHING,
        "stdout": ANYTHING,
        "git": ANYTHING,
    },
)
RECORD = st.fixed_dictionaries(
    {"type": or_anything(st.sampled_from(["session_meta", "turn_context", "response_item", "event_msg", "compacted"]))},
    optional={"payload": or_anything(PAYLOAD), "timestamp": ANYTHING, "ordinal": ANYTHING, "record_type": ANYTHING},
)


def check(session: Session) -> None:
    """What every session must be, whatever it was read from."""
    assert session.session_id
    for message in session.messages:
        assert message.role in Role
        assert message.text
        json.dumps(storable(message.more), allow_nan=False)
    assert session.title is None or session.title.strip()
    json.dumps(storable(session.meta))


def read(data: bytes, inherited: tuple[str, ...] = ()) -> Session:
    rollout = codex_rollout.Rollout(thread_id(1), inherited)
    for record in records_of(read_lines(io.BytesIO(data)), Damage()):
        rollout.read(record)
    return rollout.session()


@given(st.lists(RECORD | PAYLOAD | st.dictionaries(st.text(max_size=8), ANYTHING), max_size=12), st.booleans())
def test_any_records_make_a_session(records: list[Record], is_agent: bool) -> None:
    check(read(b"".join(json.dumps(record).encode() + b"\n" for record in records), ("t1",) if is_agent else ()))


@given(st.binary() | st.lists(st.sampled_from([b"{", b"}", b'"payload":', b"{}", b"\n", b"\xff"])).map(b"".join))
def test_any_bytes_are_read_or_told(data: bytes) -> None:
    check(read(data))


@pytest.mark.parametrize("rollout", [legacy(), flat(), paginated()], ids=["legacy", "flat", "paginated"])
@given(st.data())
def test_a_rollout_cut_anywhere_is_still_read(rollout: Rollout, data: st.DataObject) -> None:
    whole = rollout.lines()
    check(read(whole[: data.draw(st.integers(0, len(whole)))]))


@pytest.mark.parametrize("rollout", [legacy(), flat(), paginated()], ids=["legacy", "flat", "paginated"])
@given(st.data())
def test_a_real_rollout_with_any_value_changed_is_still_read(rollout: Rollout, data: st.DataObject) -> None:
    records = copy.deepcopy(rollout.records)
    for _ in range(data.draw(st.integers(1, 4))):
        change(data, data.draw(st.sampled_from([record for record in records if record])))
    reading = codex_rollout.Rollout(rollout.thread)
    for record in records:
        reading.read(record)
    check(reading.session())


def change(data: st.DataObject, record: Record) -> None:
    """Replaces or drops one value somewhere in the record."""
    key = data.draw(st.sampled_from(sorted(record)))
    inner = record[key][0] if isinstance(record[key], list) and record[key] else record[key]
    if isinstance(inner, dict) and inner and data.draw(st.booleans()):
        change(data, inner)
    elif data.draw(st.booleans()):
        record[key] = data.draw(ANYTHING)
    else:
        del record[key]


@given(TEXTS | st.text())
def test_any_text_falls_into_pieces_that_say_something(text: str) -> None:
    assert all(piece for _, piece in pieces_of(text))


@given(ANYTHING | st.text().map(lambda text: json.dumps({"output": text})))
def test_any_output_of_a_tool_is_text(output: object) -> None:
    result, status = outcome(output)
    assert isinstance(result, str)
    assert status in ("completed", "failed")


def test_a_thread_of_fifty_thousand_rolled_back_turns_takes_no_time() -> None:
    rollout = codex_rollout.Rollout(thread_id(1))
    for number in range(50_000):
        rollout.read({"type": "event_msg", "payload": {"type": "user_message", "message": f"{number}"}})
        rollout.read({"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}})
    assert len(rollout.session().messages) == 50_000
