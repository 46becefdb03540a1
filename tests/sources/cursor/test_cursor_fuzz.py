"""Arbitrary and extreme rows of Cursor, beyond `tests/sources/test_fuzz.py`."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from registry.domain import Session
from sources.base import FoundSession
from sources.cursor.bubbles import error_text, plain_text
from sources.cursor.conversations import Composer, headers_of, inline_bubbles, read_composer
from sources.cursor.projects import WorkspaceProjects
from sources.cursor.store import record_of_tab
from sources.kit.workspace_files import first_folder, path_of
from tests.sources.anything import check_all
from tests.sources.cursor.cursor_files import NOW, CursorFiles, Json, asked, record
from tests.sources.cursor.cursor_fuzz import BUBBLES, FULL, RECORD, VALUES, damaged


def assert_valid(session: Session) -> None:
    """Check what the registry expects of Cursor's sessions, beyond `anything.check`."""
    check_all([session])
    assert all(message.timestamp is None or message.timestamp <= NOW for message in session.messages)
    assert isinstance(session.title, str)


@given(damaged(RECORD), damaged(RECORD), st.lists(BUBBLES, max_size=5))
def test_any_record_with_any_bubbles_is_parsed(kept: Json, header: Json, bubbles: list[Any]) -> None:
    order = headers_of(kept)
    inline_bubbles(kept)
    pairs = list(zip(order * 5, bubbles, strict=False))
    assert_valid(read_composer(Composer("c", kept, header), pairs, WorkspaceProjects(), NOW).session)


@given(damaged({"tabId": "t", "chatTitle": "x", "lastSendTime": 1, "bubbles": []}), st.lists(BUBBLES, max_size=5))
def test_any_tab_of_the_old_panel_is_parsed(tab: Json, bubbles: list[Any]) -> None:
    for held in ({"bubbles": bubbles} | tab, tab | {"bubbles": bubbles}):
        kept = record_of_tab(held, "w")
        pairs = [(header, inline_bubbles(kept).get(header["bubbleId"])) for header in headers_of(kept)]
        assert_valid(read_composer(Composer("t", kept, {}), pairs, WorkspaceProjects(), NOW).session)


@given(VALUES)
def test_any_value_can_be_a_text_and_a_path(value: Any) -> None:
    for read in (plain_text, error_text, path_of):
        assert isinstance(read(value), str)


@given(st.text() | VALUES.map(json.dumps), st.text())
def test_any_workspace_file_is_parsed(content: str, path: str) -> None:
    assert isinstance(first_folder(content, path), str)


def test_values_nested_a_thousand_times_neither_crash_nor_hang() -> None:
    deepen: list[Callable[[Any], Any]] = [
        lambda inner: [inner],
        lambda inner: {"children": [inner]},
        lambda inner: {"uri": inner},
    ]
    for deeper in deepen:
        value: Any = "x"
        for _ in range(900):
            value = deeper(value)
        bubble = {name: value for name in FULL | {"text": 1, "images": 1, "relevantFiles": 1}}
        kept = {name: value for name in RECORD} | {"fullConversationHeadersOnly": [{"bubbleId": "u1", "type": 1}]}
        pairs = [({"bubbleId": "u1", "type": 1}, bubble)]
        assert_valid(read_composer(Composer("c", kept, kept), pairs, WorkspaceProjects(), NOW).session)


@given(
    st.dictionaries(st.sampled_from(["composerData:c", "bubbleId:c:u1"]), VALUES.map(json.dumps) | st.binary()), VALUES
)
def test_any_rows_in_a_store_are_read(rows: dict[str, str | bytes], items: Any) -> None:
    with TemporaryDirectory() as folder:
        cursor = CursorFiles(Path(folder))
        cursor.rows({"composerData:c": json.dumps(record("c", asked("u1", "?"))), **rows})
        cursor.items({"composer.composerHeaders": items})
        cursor.header_row("c", {"name": items})
        cursor.workspace(
            "w",
            {"folder": items},
            {"composer.composerData": items, "workbench.panel.aichat.view.aichat.chatdata": items},
        )
        for found in cursor.read():
            if isinstance(found, FoundSession):
                assert_valid(found.session)
