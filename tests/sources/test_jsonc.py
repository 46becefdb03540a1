"""Changes to a client's settings file preserve everything else, byte for byte."""

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sources.kit.jsonc import append, drop, drop_items, get, is_bare, parse, put

SERVER = ("mcpServers", "context-registry")
ENTRY = {"command": "/opt/ctxr", "args": ["mcp"], "env": {"CTXR_HOME": "/data/기록"}}
HOOK = {"command": "/opt/ctxr hook cursor stop"}

words = st.text(alphabet=string.ascii_letters + '"\\ /*,{}[]:가\u2028', max_size=6)
plain = st.none() | st.booleans() | st.integers(-99, 99) | st.floats(allow_nan=False, allow_infinity=False) | words
documents = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3))
spaces = st.sampled_from(["", "", " ", "\n", "\n  ", "\r\n\t", " // it's {\n", " /* , } */ ", "\n// [\n  "])


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """Return a value as JSON with comments, odd spacing and trailing commas."""
    if not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    entries = value.items() if isinstance(value, dict) else [(None, each) for each in value]
    parts = []
    for key, each in entries:
        named = "" if key is None else json.dumps(key) + draw(spaces) + ":" + draw(spaces)
        parts.append(draw(spaces) + named + draw(written(each)) + draw(spaces))
    has_comma: bool = draw(st.booleans())
    text = ",".join(parts) + ("," if parts and has_comma else "")
    text += draw(spaces) if parts else ""
    return "{" + text + "}" if isinstance(value, dict) else "[" + text + "]"


@st.composite
def files(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Return a settings file without our entries, and its parsed content."""
    content: dict[str, Any] = draw(st.dictionaries(words, documents, max_size=3))
    for name in ("mcpServers", "hooks"):
        content.pop(name, None)
    others = st.dictionaries(words, documents, min_size=1, max_size=3)
    if draw(st.booleans()):
        content["mcpServers"] = draw(others)
    if draw(st.booleans()):
        content["hooks"] = {"stop": draw(st.lists(documents, min_size=1, max_size=3))}
    return draw(spaces) + draw(written(content)) + draw(spaces), content


def test_an_object_with_a_comment_stays_after_our_entry_is_removed() -> None:
    text = '{"mcpServers": {\n  // ours, see the wiki\n  "context-registry": {"command": "ctxr"}}}'
    assert "// ours, see the wiki" in drop(text, SERVER)
    assert parse(drop(text, SERVER)).data == {"mcpServers": {}}


@given(files())
def test_adding_and_removing_an_entry_restores_the_file(file: tuple[str, dict[str, Any]]) -> None:
    text, content = file
    changed = put(text, SERVER, ENTRY)
    assert parse(changed).data == {**content, "mcpServers": {**content.get("mcpServers", {}), SERVER[1]: ENTRY}}
    assert put(changed, SERVER, ENTRY) == changed
    assert drop(changed, SERVER) == text


@given(files())
def test_adding_and_removing_a_list_item_restores_the_file(file: tuple[str, dict[str, Any]]) -> None:
    text, content = file
    changed = append(text, ("hooks", "stop"), HOOK)
    stop = [*content.get("hooks", {}).get("stop", []), HOOK]
    assert parse(changed).data == {**content, "hooks": {**content.get("hooks", {}), "stop": stop}}
    assert drop_items(changed, ("hooks", "stop"), lambda item: item == HOOK) == text


@given(files(), documents)
def test_a_new_value_replaces_only_our_entry(file: tuple[str, dict[str, Any]], older: Any) -> None:
    text, _ = file
    assert parse(put(put(text, SERVER, older), SERVER, ENTRY)).data == parse(put(text, SERVER, ENTRY)).data
    assert drop(put(put(text, SERVER, older), SERVER, ENTRY), SERVER) == text


@given(st.text() | files().map(lambda file: file[0][:-3]))
def test_invalid_json_is_refused(text: str) -> None:
    try:
        assert get(put(text, SERVER, ENTRY), SERVER) == ENTRY
    except ValueError:
        return


def test_an_added_entry_follows_the_files_formatting() -> None:
    text = '{\n    // mine\n    "mcpServers": {\n        "other": {"command": "x"} // keep\n    }\n}\n'
    assert put(text, SERVER, {"command": "c"}) == (
        '{\n    // mine\n    "mcpServers": {\n        "other": {"command": "x"}, // keep\n'
        '        "context-registry": {\n            "command": "c"\n        }\n    }\n}\n'
    )
    far_in = '{\n  "servers": {\n      "other": 1\n  }\n}'
    assert put(far_in, ("servers", "ours"), 2) == '{\n  "servers": {\n      "other": 1,\n      "ours": 2\n  }\n}'


def test_a_file_on_one_line_stays_on_one_line() -> None:
    assert append('{"hooks": {"stop": [{"command": "x"}]}}', ("hooks", "stop"), {"command": "c"}) == (
        '{"hooks": {"stop": [{"command": "x"}, {"command": "c"}]}}'
    )


def test_a_new_file_is_indented_and_empty_after_removal() -> None:
    text = put("", SERVER, ENTRY)
    assert json.loads(text) == {"mcpServers": {"context-registry": ENTRY}}
    assert text.startswith('{\n  "mcpServers": {\n')
    assert is_bare(drop(text, SERVER))


def test_a_file_of_another_structure_is_refused() -> None:
    cases: list[str] = ["[]", '{"mcpServers": []}', '{"mcpServers": {}', "{} x", '{"a": 1 "b": 2}', "[" * 999]
    for text in cases:
        with pytest.raises(ValueError, match=r"."):
            put(text, SERVER, ENTRY)
