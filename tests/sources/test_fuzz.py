"""Arbitrary contents of clients' files are read or skipped, in time and without a crash."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sources.antigravity.antigravity_fuzz import ANTIGRAVITY
from tests.sources.anything import ANYTHING, change, check_all
from tests.sources.claude_code.claude_code_fuzz import CLAUDE_CODE
from tests.sources.cline.cline_fuzz import CLINE_SESSION, CLINE_TASK
from tests.sources.codex.codex_fuzz import CODEX
from tests.sources.continue_dev.continue_fuzz import CONTINUE
from tests.sources.copilot.copilot_cli_fuzz import COPILOT_CLI
from tests.sources.cursor.cursor_fuzz import CURSOR
from tests.sources.cursor_agent.cursor_agent_fuzz import CURSOR_AGENT, CURSOR_TRANSCRIPTS
from tests.sources.droid.droid_files import DROID
from tests.sources.fuzzing import Format, lines_of
from tests.sources.gemini.gemini_fuzz import GEMINI_CLI
from tests.sources.goose.goose_fuzz import GOOSE
from tests.sources.grok.grok_files import GROK_CLI
from tests.sources.kimi.kimi_files import KIMI_CODE
from tests.sources.pi.pi_files import PI
from tests.sources.qwen.qwen_fuzz import QWEN_CODE
from tests.sources.zed.zed_fuzz import ZED

FORMATS = (
    *(CLAUDE_CODE, CODEX, COPILOT_CLI, CURSOR, CURSOR_AGENT, CURSOR_TRANSCRIPTS, GEMINI_CLI),
    *(ANTIGRAVITY, QWEN_CODE, CLINE_TASK, CLINE_SESSION, CONTINUE, ZED, GOOSE, GROK_CLI, KIMI_CODE, DROID, PI),
)
OF_LINES = [each for each in FORMATS if each.are_lines]

every_format = pytest.mark.parametrize("client", FORMATS, ids=lambda each: each.name)
every_format_of_lines = pytest.mark.parametrize("client", OF_LINES, ids=lambda each: each.name)


@every_format
@given(st.data())
def test_any_records_are_parsed(client: Format, data: st.DataObject) -> None:
    record = client.records | st.dictionaries(st.text(max_size=8), ANYTHING)
    check_all(client.read(data.draw(st.lists(record, max_size=12))))


@every_format
@given(st.data())
def test_a_valid_conversation_with_any_value_changed_is_still_read(client: Format, data: st.DataObject) -> None:
    records = copy.deepcopy(data.draw(st.sampled_from(client.samples)))
    for _ in range(data.draw(st.integers(1, 4))):
        change(data, data.draw(st.sampled_from([record for record in records if record])))
    check_all(client.read(records))


@every_format_of_lines
@given(
    st.binary()
    | st.lists(st.sampled_from([b"{", b"}", b'"type":', b'"user"', b"{}", b"\n", b"\0", b"\xff", b"[["])).map(b"".join)
)
def test_any_bytes_are_read_or_reported(client: Format, content: bytes) -> None:
    check_all(client.read_bytes(content))


@every_format_of_lines
@given(st.data())
def test_a_file_cut_anywhere_keeps_the_part_before(client: Format, data: st.DataObject) -> None:
    whole = lines_of(data.draw(st.sampled_from(client.samples)))
    sessions = client.read_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    check_all(sessions)
    most = max(len(session.messages) for session in client.read_bytes(whole))
    assert all(len(session.messages) <= most for session in sessions)
