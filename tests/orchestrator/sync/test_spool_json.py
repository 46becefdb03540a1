"""The hooks' JSON is just `json`, only sooner there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.sync.spool import dumps, loads

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(values)
def test_whatever_is_written_is_what_json_writes_and_is_read_back(value: Any) -> None:
    text = dumps(value)
    assert text == json.dumps(value)
    assert loads(text) == value
    assert loads(f"\n\t {json.dumps(value, ensure_ascii=False, indent=2)} \r\n") == value


@given(st.text(alphabet='{}[]",:\\u0dea1eE+-.tfn \n\x00ᄋ') | st.text())
def test_whatever_comes_is_read_or_refused_as_by_json(text: str) -> None:
    assert outcome(loads, text) == outcome(lambda given: json.loads(given, strict=False), text)


def outcome(read: Callable[[str], Any], text: str) -> str:
    try:
        return repr(read(text))
    except ValueError as refusal:
        return f"refused: {refusal}"


def test_a_python_that_calls_its_c_code_otherwise_does_it_by_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "_json", None)
    assert loads(dumps({"말": [1, "\n"]})) == {"말": [1, "\n"]}


def test_this_python_needs_no_json_for_it() -> None:
    code = "import sys; from orchestrator.sync.spool import *; loads(dumps({'a': [1.5, '말']})); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=".")
    assert not {"json", "re", "enum"} & set(modules.stdout.split())
