"""Cursor's format for `tests/sources/test_fuzz.py`."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from registry.domain import Session
from sources.cursor.conversations import Composer, read_composer
from sources.cursor.projects import WorkspaceProjects
from tests.sources.cursor.cursor_files import NOW, Json, answered, asked, called, record, thought
from tests.sources.fuzzing import Format

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([0, 1, 2, 15, 22, 30, 1e308, -1, 10**400, 1.7e12, "u1", "default", "{", "[[", "file://", "c:\\"])
    | st.text()
)
FIELDS = st.sampled_from(
    [
        *(
            "text",
            "type",
            "children",
            "content",
            "root",
            "uri",
            "fsPath",
            "path",
            "workspaceResults",
            "success",
            "name",
        ),
        *("bubbleId", "composerId", "data", "bubbleDataMap", "folders", "message", "details", "summary", "modelName"),
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(FIELDS | st.text(max_size=5), inner, max_size=4)
        | inner.map(json.dumps)
    ),
    max_leaves=12,
)


def damaged(valid: Json) -> st.SearchStrategy[Json]:
    """Return a strategy for a valid object with arbitrary values in some fields."""
    return st.dictionaries(st.sampled_from(sorted(valid)), VALUES, max_size=4).map(lambda odd: valid | odd)


FULL = {
    "codeBlocks": [{"content": "x", "languageId": "py"}],
    "richText": "{}",
    "createdAt": "2026-03-02T09:00:00Z",
    "timingInfo": {},
    "thinkingDurationMs": 1,
    "capabilityType": 0,
    "errorDetails": {},
    "context": {},
    "conversationSummary": {},
    "modelInfo": {},
    "requestId": "r",
    "workspaceUris": [],
    "allThinkingBlocks": [],
    "thinking": {},
    "toolFormerData": {},
}
BUBBLES = st.one_of(
    damaged(asked("u1", "?", **FULL)),
    damaged(answered("a1", "!", **FULL)),
    damaged(thought("t1", "…")),
    damaged(called("c1", "read_file", {"path": "a"}, {"contents": "b"})["toolFormerData"]).map(
        lambda call: {"type": 2, "bubbleId": "c1", "toolFormerData": call}
    ),
    VALUES,
)
RECORD = record("c", asked("u1", "?")) | {
    "conversation": [asked("u1", "?")],
    "conversationMap": {},
    "capabilities": [],
    "name": "x",
    "subagentInfo": {},
    "workspaceIdentifier": {},
    "trackedGitRepos": [],
    "newlyCreatedFiles": [],
    "originalFileStates": {},
    "context": {},
    "modelConfig": {},
    "subagentComposerIds": [],
    "generatingBubbleIds": [],
}


SAMPLE = [asked("u1", "?", **FULL), thought("t1", "…"), called("c1", "read_file", {"path": "a"}, {"contents": "b"})]


def read_bubbles(bubbles: list[Any]) -> list[Session]:
    """Parse bubbles into a conversation."""
    pairs = [({"bubbleId": f"b{place}"}, bubble) for place, bubble in enumerate(bubbles)]
    return [read_composer(Composer("c", RECORD, {}), pairs, WorkspaceProjects(), NOW).session]


CURSOR = Format("cursor", BUBBLES, (SAMPLE,), read_bubbles)
