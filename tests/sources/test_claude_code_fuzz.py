"""Whatever a transcript holds: it is read or passed over, without a crash and without an end of time."""

from __future__ import annotations

import copy
import io
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from registry.domain import Role, storable
from sources.base import Session
from sources.claude_code import parse
from sources.claude_code_facts import TITLE_FIELDS
from sources.claude_code_fields import IGNORED_SYSTEM, KEPT_SYSTEM
from sources.claude_code_prompts import pieces_of
from sources.claude_code_tree import fork_origin, stamps_of
from sources.jsonl import Damage, Record, read_lines, records_of
from tests.sources.claude_code_files import Dialogue, session_id, working_session

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
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


def or_anything(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return strategy | ANYTHING


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


def check(sessions: list[Session]) -> None:
    """What every session must be, whatever it was read from."""
    for session in sessions:
        assert session.session_id
        for message in session.messages:
            assert message.role in Role
            assert message.text
            json.dumps(storable(message.more), allow_nan=False)
        assert session.title is None or session.title.strip()
        assert session.project is None or session.project
        json.dumps(storable(session.meta))


def read(data: bytes) -> tuple[list[Session], Damage]:
    damage = Damage()
    transcripts = parse(records_of(read_lines(io.BytesIO(data)), damage), session_id(1))
    return [transcript.session() for transcript in transcripts], damage


@given(st.lists(RECORDS | st.dictionaries(st.text(max_size=8), ANYTHING), max_size=12))
def test_any_records_make_sessions(records: list[Record]) -> None:
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    sessions, damage = read(lines)
    check(sessions)
    assert damage.skipped() == ()


@given(
    st.binary()
    | st.lists(st.sampled_from([b"{", b"}", b'"type":', b'"user"', b"\n", b"\0", b"\xff", b"[["])).map(b"".join)
)
def test_any_bytes_are_read_or_told(data: bytes) -> None:
    sessions, _ = read(data)
    check(sessions)


WHOLE = working_session().lines()


@given(st.integers(0, len(WHOLE)))
def test_a_transcript_cut_anywhere_keeps_what_was_written_before(length: int) -> None:
    [session], damage = read(WHOLE[:length])
    check([session])
    [full], _ = read(WHOLE)
    assert len(session.messages) <= len(full.messages)
    assert len(damage.found) <= 1


@given(st.data())
def test_a_real_transcript_with_any_value_changed_is_still_read(data: st.DataObject) -> None:
    records = copy.deepcopy(working_session().records)
    for _ in range(data.draw(st.integers(1, 4))):
        change(data, data.draw(st.sampled_from([record for record in records if record])))
    check([transcript.session() for transcript in parse(records, session_id(1))])


def change(data: st.DataObject, record: Record) -> None:
    """Replaces or drops one value somewhere in the record."""
    key = data.draw(st.sampled_from(sorted(record)))
    inner = record[key][0] if isinstance(record[key], list) and record[key] else record[key]
    if isinstance(inner, dict) and inner and data.draw(st.booleans()):
        change(data, inner)
    elif data.draw(st.booleans()):
        record[key] = data.draw(ANYTHING)
    else:
        del record[key]


@given(st.lists(WRAPPED | st.text()))
def test_any_text_falls_into_pieces_that_say_something(texts: list[str]) -> None:
    assert all(piece.text for piece in pieces_of(texts))


@given(st.dictionaries(UUIDS, st.text(max_size=3)), st.dictionaries(UUIDS, st.text(max_size=3)))
def test_two_transcripts_are_never_each_others_origin(one: dict[str, str], other: dict[str, str]) -> None:
    twins = {"one": one, "other": other}
    assert not (fork_origin("one", twins) and fork_origin("other", twins))


def test_a_text_of_nothing_but_wrappers_takes_no_time() -> None:
    for text in ("<bash-stdout></bash-stdout>" * 100_000, "<system-reminder>x</system-reminder>" * 100_000):
        assert list(pieces_of([text])) is not None
    assert next(pieces_of(["<bash-stdout>" * 100_000])).is_injected


def test_an_answer_in_fifty_thousand_records_takes_no_time() -> None:
    talk = Dialogue(session_id(1))
    for number in range(50_000):
        message = {"id": "msg_1", "content": [{"type": "text", "text": f"{number}"}]}
        talk.records.append({"type": "assistant", "uuid": f"u{number}", "message": message})
    assert len(parse(talk.records, talk.session_id)[0].session().messages) == 1


def test_a_number_beyond_all_numbers_and_a_bottomless_parameter_do_no_harm() -> None:
    line = b'{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"X","input":{"n":1e999,"d":'
    [session], _ = read(line + b"[" * 400 + b"]" * 400 + b"}}]}}\n")
    check([session])


def test_a_chain_of_a_hundred_thousand_records_takes_no_time() -> None:
    talk = Dialogue(session_id(1))
    for number in range(100_000):
        talk.records.append({"type": "user", "uuid": f"u{number}", "parentUuid": f"u{number - 1}", "message": {}})
    assert parse(talk.records, talk.session_id)[0].session().messages == ()
    assert len(stamps_of(talk.records)) == 100_000
