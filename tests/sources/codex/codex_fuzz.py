"""Codex's format for `tests/sources/test_fuzz.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from registry.domain import Session
from sources.codex import rollout as codex_rollout
from sources.codex.tools import CALLS, EVENTS, ITEMS, OUTPUTS
from sources.kit.loose_json import Record
from tests.sources.anything import ANYTHING, or_anything
from tests.sources.codex.codex_files import flat, legacy, paginated, thread_id
from tests.sources.fuzzing import Format

IDS = st.sampled_from(["c1", "c2", ""])
TURNS = st.sampled_from(["t1", "t2", ""])
TEXTS = st.sampled_from(["Hi", "<environment_context>", "x ## My request for Codex: y", "## My request for Codex:"])


CONTENT = or_anything(st.lists(st.fixed_dictionaries({"type": st.just("input_image") | ANYTHING, "text": TEXTS})))
ITEM = st.fixed_dictionaries(
    {"type": or_anything(st.sampled_from([*ITEMS, "UserMessage", "AgentMessage", "Reasoning", "Plan", "planets"]))},
    optional={
        "id": or_anything(IDS),
        "content": CONTENT,
        "changes": ANYTHING,
        "exit_code": ANYTHING,
        "result": ANYTHING,
        "summary_text": ANYTHING,
    },
)
PAYLOAD = st.fixed_dictionaries(
    {
        "type": or_anything(
            st.sampled_from(
                [
                    *(*CALLS, *OUTPUTS, *EVENTS, "message", "reasoning", "user_message", "agent_message"),
                    *("item_completed", "thread_rolled_back", "turn_aborted", "error"),
                ]
            )
        )
    },
    optional={
        "id": or_anything(IDS),
        "call_id": or_anything(IDS),
        "turn_id": or_anything(TURNS),
        "role": or_anything(st.sampled_from(["user", "assistant", "developer"])),
        "name": or_anything(st.sampled_from(["shell", "exec", "view"])),
        "content": CONTENT,
        "message": or_anything(TEXTS),
        "arguments": or_anything(st.sampled_from(['{"command":["ls"]}', "[1]", "{", '{"a":' * 5000])),
        "output": or_anything(st.sampled_from(['{"output":1,"metadata":{"exit_code":2}}', "plain"])),
        "item": or_anything(ITEM),
        "num_turns": or_anything(st.integers(-2, 3)),
        "summary": CONTENT,
        "cwd": or_anything(st.sampled_from(["/a", "C:\\a"])),
        "source": ANYTHING,
        "history_base": ANYTHING,
        "subagent_history_start_ordinal": ANYTHING,
        "images": ANYTHING,
        "invocation": ANYTHING,
        "stdout": ANYTHING,
        "git": ANYTHING,
    },
)
RECORD = st.fixed_dictionaries(
    {"type": or_anything(st.sampled_from(["session_meta", "turn_context", "response_item", "event_msg", "compacted"]))},
    optional={"payload": or_anything(PAYLOAD), "timestamp": ANYTHING, "ordinal": ANYTHING, "record_type": ANYTHING},
)


def read_records(records: list[Record], inherited: tuple[str, ...] = ()) -> list[Session]:
    """Parse the records of a thread."""
    rollout = codex_rollout.Rollout(thread_id(1), is_agent=True, copied=inherited)
    for record in records:
        rollout.read(record)
    return [rollout.session()]


SAMPLES = tuple(rollout.records for rollout in (legacy(), flat(), paginated()))
CODEX = Format("codex", RECORD | PAYLOAD, SAMPLES, read_records, are_lines=True)
