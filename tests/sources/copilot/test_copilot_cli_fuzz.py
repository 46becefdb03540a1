"""Arbitrary and extreme logs of Copilot CLI, beyond `tests/sources/test_fuzz.py`."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from registry.domain import storable
from sources.copilot.cli import events_of, parse_note
from sources.kit.loose_json import Record
from tests.sources.anything import DEEP, change, check_all
from tests.sources.copilot.copilot_cli_fuzz import read
from tests.sources.copilot.copilot_files import Log, old_history, request


@given(st.data())
def test_an_old_document_with_any_value_changed_is_still_read(data: st.DataObject) -> None:
    history = old_history()
    for _ in range(data.draw(st.integers(1, 4))):
        if history:
            change(data, history)
    check_all(read(list(events_of(history))))


@given(st.text() | st.lists(st.sampled_from(["name:", " ", '"', "'", "\n", "cwd: x", "\\"])).map("".join))
def test_any_note_is_parsed(text: str) -> None:
    assert all(isinstance(storable(value), str) for value in parse_note(text).values())


def test_deeply_nested_parameters_and_results_are_parsed() -> None:
    log = Log()
    log.answer("", request("c1", "bash", DEEP))
    log.add("tool.execution_complete", toolCallId="c1", success=True, result=DEEP)
    json.dumps([dict(message.more) for message in read(log.events)[0].messages])


def test_five_thousand_rewound_turns_are_parsed_fast() -> None:
    events: list[Record] = []
    for number in range(5_000):
        events.append({"type": "user.message", "id": f"e{number}", "data": {"content": f"{number}"}})
        events.append({"type": "session.snapshot_rewind", "data": {"upToEventId": f"e{number}"}})
    assert len(read(events)[0].messages) == 5_000
