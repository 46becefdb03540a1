"""Test Codex's settings: our table is added and removed, and the user's text is unchanged."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.connect.toml_tables import drop_table, put_table

PATH = ("mcp_servers", "context-registry")
TABLE = {"command": "/opt/my ctxr", "args": ["mcp"], "env": {"CTXR_HOME": 'C:\\data "기록"'}}

lines = st.sampled_from(
    [
        'model = "o5"',
        "# a comment",
        "",
        "[mcp_servers.other]",
        'command = "x"',
        "[features]",
        "hooks = true",
        '[mcp_servers."context-registry-two"]',
        'notes = """\n[mcp_servers]\n"""',
        "list = [\n  1,\n]",
    ]
)


@st.composite
def settings_files(draw: st.DrawFn) -> str:
    """Draw a valid settings file."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    kept: list[str] = []
    for line in draw(st.lists(lines, max_size=8, unique=True)):
        try:
            tomllib.loads("\n".join([*kept, line]))
        except tomllib.TOMLDecodeError:
            continue
        kept.append(line)
    return "\n".join(kept).replace("\n", newline) + draw(st.sampled_from(["", newline, 2 * newline]))


@given(settings_files())
def test_removing_the_table_restores_the_file_exactly(text: str) -> None:
    changed = put_table(text, PATH, TABLE)
    assert changed.startswith(text)
    assert tomllib.loads(changed)["mcp_servers"]["context-registry"] == TABLE
    assert put_table(changed, PATH, TABLE) == changed
    assert drop_table(changed, PATH) == text


@given(settings_files())
def test_an_older_table_is_replaced(text: str) -> None:
    older = text + '\n[mcp_servers.context-registry]\ncommand = "old"\n\n[mcp_servers.context-registry.env]\nA = "1"\n'
    changed = put_table(older + "\n# about profiles\n[profiles.x]\nmodel = 1\n", PATH, TABLE)
    parsed = tomllib.loads(changed)
    assert parsed["mcp_servers"]["context-registry"] == TABLE
    assert parsed["profiles"] == {"x": {"model": 1}}
    assert "# about profiles\n[profiles.x]\n" in changed


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_removing_a_table_between_others_keeps_their_lines_apart(newline: str) -> None:
    older = newline.join(['model = "o5"', "[mcp_servers.context-registry]", 'command = "old"', "[profiles.x]", ""])
    assert drop_table(older, PATH) == newline.join(['model = "o5"', "[profiles.x]", ""])
    assert tomllib.loads(put_table(older, PATH, TABLE))["mcp_servers"]["context-registry"] == TABLE


@pytest.mark.parametrize(
    "text", ["not toml", "[mcp_servers]\ncontext-registry = { command = 'x' }\n", "mcp_servers = { other = {} }\n"]
)
def test_a_file_that_cannot_be_changed_safely_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        put_table(text, PATH, TABLE)
