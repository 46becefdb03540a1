"""Claude Code's format for `tests/sources/test_fuzz.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from registry.domain import Session
from sources.claude_code.reader import parse
from sources.claude_code.transcript import IGNORED_SYSTEM, KEPT_SYSTEM, TITLE_FIELDS
from sources.kit.loose_json import Record
from tests.sources.anything import ANYTHING, or_anything
from tests.sources.claude_code.claude_code_files import session_id, working_session
from tests.sources.fuzzing import Format

UUIDS = st.sampled_from(["u1", "u2", "u3", "u4", ""])
CALLS = st.sampled_from(["t1", "t2", ""])
KINDS = ("user", "assistant", "system", "attachment", "summary", "relocated", "progress", "novel", *TITLE_FIELDS)
BLOCK_KINDS = (
    *("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "tool_result", "image", "document"),
    *("web_search_tool_result", "novel"),
)
WRAPPED = st.lists(
    st.sampled_from(["<command-name>", "</command-name>", "/rename", "<system-reminder>", "</system-reminder>", " "])
    | st.text(max_size=5)
).map("".join)


BLOCKS = st.fixed_dictionaries(
    {"type": or_anything(st.sampled_from(BLOCK_KINDS))},
    optional={
        "text": or_anything(WRAPPED),
        "thinking": ANYTHING,
        "id": or_anything(CALLS),
        "tool_use_id": or_anything(CALLS),
        "name": or_anything(st.sampled_from(["Read", "Bash"])),
        "input": or_anything(st.dictionaries(st.sampled_from(["file_path", "command", "path"]), ANYTHING)),
        "content": ANYTHING,
        "is_error": ANYTHING,
        "source": ANYTHING,
    },
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "id": or_anything(st.sampled_from(["m1", "m2"])),
        "model": or_anything(st.sampled_from(["<synthetic>", "claude"])),
        "content": or_anything(st.lists(or_anything(BLOCKS), max_size=4) | WRAPPED),
        "usage": or_anything(st.dictionaries(st.sampled_from(["input_tokens", "output_tokens"]), ANYTHING)),
    },
)
RECORDS = st.fixed_dictionaries(
    {"type": or_anything(st.sampled_from(KINDS))},
    optional={
        "uuid": or_anything(UUIDS),
        "parentUuid": or_anything(UUIDS),
        "logicalParentUuid": or_anything(UUIDS),
        "leafUuid": or_anything(UUIDS),
        "sessionId": ANYTHING,
        "timestamp": ANYTHING | st.datetimes().map(str) | st.just("9999-12-31T23:59:59-12:00"),
        "message": or_anything(MESSAGES),
        "content": or_anything(WRAPPED),
        "subtype": or_anything(st.sampled_from([*KEPT_SYSTEM, *IGNORED_SYSTEM, "api_error"])),
        "attachment": or_anything(
            st.fixed_dictionaries({"type": st.sampled_from(["queued_command", "file"]), "prompt": ANYTHING})
        ),
        "isSidechain": ANYTHING,
        "isMeta": ANYTHING,
        "agentId": ANYTHING,
        "cwd": or_anything(st.sampled_from(["/a", "/a/.claude/worktrees/b", "C:\\x"])),
        "toolUseResult": ANYTHING,
        "forkedFrom": ANYTHING,
        "compactMetadata": ANYTHING,
        "error": ANYTHING,
        "customTitle": ANYTHING,
        "relocatedCwd": ANYTHING,
    },
)


def read_records(records: list[Record]) -> list[Session]:
    """Parse records into sessions."""
    return [transcript.session() for transcript in parse(records, session_id(1))]


CLAUDE_CODE = Format("claude-code", RECORDS, (working_session().records,), read_records, are_lines=True)
