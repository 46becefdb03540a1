"""Changing a client's settings file: what others wrote into it stays, to the letter."""

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
    """A value as somebody may have written it: comments, odd spacing, trailing commas."""
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
    """A settings file with or without servers and hooks, none of them ours; and what it says."""
    content: dict[str, Any] = draw(st.dictionaries(words, documents, max_size=3))
    for name in ("mcpServers", "hooks"):
        content.pop(name, None)
    others = st.dictionaries(words, documents, min_size=1, max_size=3)
    if draw(st.booleans()):
        content["mcpServers"] = draw(others)
    if draw(st.booleans()):
        content["hooks"] = {"stop": draw(st.lists(documents, min_size=1, max_size=3))}
    return draw(spaces) + draw(written(content)) + draw(spaces), content


def test_an_object_that_holds_a_comment_stays_when_ours_leaves_it() -> None:
    text = '{"mcpServers": {\n  // ours, see the wiki\n  "context-registry": {"command": "ctxr"}}}'
    assert "// ours, see the wiki" in drop(text, SERVER)
    assert parse(drop(text, SERVER)).data == {"mcpServers": {}}


@given(files())
def test_what_was_put_in_is_taken_out_again_to_the_letter(file: tuple[str, dict[str, Any]]) -> None:
    text, content = file
    changed = put(text, SERVER, ENTRY)
    assert parse(changed).data == {**content, "mcpServers": {**content.get("mcpServers", {}), SERVER[1]: ENTRY}}
    assert put(changed, SERVER, ENTRY) == changed
    assert drop(changed, SERVER) == text


@given(files())
def test_an_item_that_was_added_to_a_list_is_taken_out_again_to_the_letter(file: tuple[str, dict[str, Any]]) -> None:
    text, content = file
    changed = append(text, ("hooks", "stop"), HOOK)
    stop = [*content.get("hooks", {}).get("stop", []), HOOK]
    assert parse(changed).data == {**content, "hooks": {**content.get("hooks", {}), "stop": stop}}
    assert drop_items(changed, ("hooks", "stop"), lambda item: item == HOOK) == text


@given(files(), documents)
def test_another_value_of_ours_replaces_only_that(file: tuple[str, dict[str, Any]], older: Any) -> None:
    text, _ = file
    assert parse(put(put(text, SERVER, older), SERVER, ENTRY)).data == parse(put(text, SERVER, ENTRY)).data
    assert drop(put(put(text, SERVER, older), SERVER, ENTRY), SERVER) == text


@given(st.text() | files().map(lambda file: file[0][:-3]))
def test_what_is_no_json_is_refused_and_nothing_else_happens(text: str) -> None:
    try:
        assert get(put(text, SERVER, ENTRY), SERVER) == ENTRY
    except ValueError:
        return


def test_it_reads_as_if_the_user_had_written_it() -> None:
    text = '{\n    // mine\n    "mcpServers": {\n        "other": {"command": "x"} // keep\n    }\n}\n'
    assert put(text, SERVER, {"command": "c"}) == (
        '{\n    // mine\n    "mcpServers": {\n        "other": {"command": "x"}, // keep\n'
        '        "context-registry": {\n            "command": "c"\n        }\n    }\n}\n'
    )
    far_in = '{\n  "servers": {\n      "other": 1\n  }\n}'
    assert put(far_in, ("servers", "ours"), 2) == '{\n  "servers": {\n      "other": 1,\n      "ours": 2\n  }\n}'


def test_a_file_on_one_line_stays_so() -> None:
    assert append('{"hooks": {"stop": [{"command": "x"}]}}', ("hooks", "stop"), {"command": "c"}) == (
        '{"hooks": {"stop": [{"command": "x"}, {"command": "c"}]}}'
    )


def test_a_new_file_is_readable_and_bare_again_without_us() -> None:
    text = put("", SERVER, ENTRY)
    assert json.loads(text) == {"mcpServers": {"context-registry": ENTRY}}
    assert text.startswith('{\n  "mcpServers": {\n')
    assert is_bare(drop(text, SERVER))


def test_a_file_that_cannot_take_us_is_refused() -> None:
    cases: list[str] = ["[]", '{"mcpServers": []}', '{"mcpServers": {}', "{} x", '{"a": 1 "b": 2}', "[" * 999]
    for text in cases:
        with pytest.raises(ValueError, match=r"."):
            put(text, SERVER, ENTRY)
