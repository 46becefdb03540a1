"""The two formats of Cursor's agent for `tests/sources/test_fuzz.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from registry.domain import Session
from sources.cursor.times import TimeFrame
from sources.cursor_agent.messages import AgentDialogue
from sources.cursor_agent.reader import Fingerprint, fill_times
from sources.kit.drafts import Draft, title_of, undated_messages_of
from sources.kit.loose_json import Record
from tests.sources.anything import ANYTHING, or_anything
from tests.sources.cursor_agent.cursor_agent_files import NOW, START, mirror, working_session
from tests.sources.fuzzing import Format

CALLS = st.sampled_from(["t1", "t1\nfc_1", ""])
WRAPPED = st.lists(
    st.sampled_from(
        [
            *("<user_query>", "</user_query>", "<user_info>", "</user_info>", "<system_reminder>", "\n", "words"),
            *("<timestamp>Sunday, Apr 26, 2026, 9:53 PM (UTC-4)</timestamp>", '<attached_files path="a.py">'),
            *("<timestamp>Sunday, Feb 31, 9999, 99:99 PM (UTC-99:99)</timestamp>", '<file_contents path="a.py">'),
        ]
    )
    | st.text(max_size=5)
).map("".join)
PART_KINDS = ("text", "reasoning", "redacted-reasoning", "tool-call", "tool-result", "image", "file", "novel")
TOLD = st.fixed_dictionaries(
    {},
    optional={
        "isError": ANYTHING,
        "rejected": ANYTHING,
        "output": or_anything(st.fixed_dictionaries({"success": st.fixed_dictionaries({"exitCode": ANYTHING})})),
        "diffString": ANYTHING,
    },
)
OPTIONS = st.fixed_dictionaries(
    {
        "cursor": st.fixed_dictionaries(
            {},
            optional={
                "modelName": or_anything(st.sampled_from(["default", "m"])),
                "requestId": ANYTHING,
                "isSummary": ANYTHING,
                "highLevelToolCallResult": or_anything(TOLD),
            },
        )
    }
)
PARTS = st.fixed_dictionaries(
    {"type": or_anything(st.sampled_from(PART_KINDS))},
    optional={
        "text": or_anything(WRAPPED),
        "toolCallId": or_anything(CALLS),
        "toolName": or_anything(st.sampled_from(["Read", "Shell"])),
        "args": or_anything(st.sampled_from([{"path": "/a"}, '{"command": "x"}', "{" * 5000])),
        "result": ANYTHING,
        "isError": ANYTHING,
        "image": or_anything(st.sampled_from(["https://x/a.png", "data:image/png;base64,AA"])),
        "filename": ANYTHING,
        "providerOptions": or_anything(OPTIONS),
    },
)
MESSAGES = st.fixed_dictionaries(
    {"role": or_anything(st.sampled_from(["system", "user", "assistant", "tool"]))},
    optional={
        "content": or_anything(st.lists(or_anything(PARTS), max_size=4) | WRAPPED),
        "tool_calls": or_anything(st.lists(st.fixed_dictionaries({"id": CALLS, "function": ANYTHING}), max_size=2)),
        "tool_call_id": or_anything(CALLS),
        "providerOptions": or_anything(OPTIONS),
    },
)
BLOCKS = st.fixed_dictionaries(
    {"type": or_anything(st.sampled_from(["text", "thinking", "tool_use", "novel"]))},
    optional={
        "text": or_anything(WRAPPED | st.just("[REDACTED]")),
        "name": or_anything(st.sampled_from(["Read", "Shell"])),
        "input": or_anything(st.dictionaries(st.sampled_from(["path", "command"]), ANYTHING)),
        "result": ANYTHING,
    },
)
LINES = st.fixed_dictionaries(
    {},
    optional={
        "role": or_anything(st.sampled_from(["user", "assistant"])),
        "type": or_anything(st.sampled_from(["turn_ended", "error"])),
        "message": or_anything(st.fixed_dictionaries({"content": or_anything(st.lists(BLOCKS, max_size=4) | WRAPPED)})),
        "status": or_anything(st.sampled_from(["success", "error", "aborted"])),
        "error": ANYTHING,
    },
)


def session_of(drafts: list[Draft]) -> Session:
    """Build a session like the reader."""
    messages = fill_times(
        undated_messages_of(drafts), TimeFrame(START, None, NOW), Fingerprint(message_count=2, until=START)
    )
    assert all(message.timestamp and message.timestamp <= NOW for message in messages)
    return Session("s", messages, title_of(drafts))


def read_messages(messages: list[Record]) -> list[Session]:
    """Parse the messages of a prompt into a session."""
    conversation = AgentDialogue()
    for place, message in enumerate(messages):
        conversation.read(f"{place}", message)
    conversation.skipped()
    return [session_of(conversation.drafts)]


def read_lines_of_transcript(records: list[Record]) -> list[Session]:
    """Parse the lines of a transcript into a session."""
    conversation = AgentDialogue()
    for number, record in enumerate(records, 1):
        conversation.read_line(str(number), record)
    conversation.skipped()
    return [session_of(conversation.drafts)]


CURSOR_AGENT = Format("cursor-agent", MESSAGES, (working_session(),), read_messages)
CURSOR_TRANSCRIPTS = Format("cursor-transcripts", LINES, (mirror(),), read_lines_of_transcript, are_lines=True)
