"""Arbitrary and extreme blobs and transcripts of Cursor's agent, beyond `tests/sources/test_fuzz.py`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from registry.domain import Message, Role
from sources.base import FoundSession, Skipped
from sources.cursor.times import TimeFrame
from sources.cursor_agent.messages import AgentDialogue, records_of_text
from sources.cursor_agent.prompts import find_timestamp, pieces_of
from sources.cursor_agent.reader import Fingerprint, fill_times
from sources.cursor_agent.store import links_of, read_node, read_root
from tests.sources.anything import ANYTHING, check_all
from tests.sources.cursor_agent.cursor_agent_files import (
    NOW,
    START,
    AgentFiles,
    agent_id,
    encoded,
    field,
    hash_of,
    root,
    working_session,
)
from tests.sources.cursor_agent.cursor_agent_fuzz import WRAPPED, read_lines_of_transcript

WHOLE = root([hash_of(b"{}"), hash_of(b"[]")], field(4, "{}"), field(8, hash_of(b"")), field(9, "file:///a"))
WIRE = st.binary() | st.lists(
    st.sampled_from([b"\x0a\x20", b"\x0a", b"\xff" * 9, b"\x00", b"\x80", hash_of(b"x"), b"\x0b", WHOLE])
).map(b"".join)


@given(WIRE | st.integers(0, len(WHOLE)).map(lambda end: WHOLE[:end]))
def test_any_bytes_are_parsed_as_a_state(data: bytes) -> None:
    state = read_root(data)
    assert all(isinstance(each, str | bytes) for each in state.prompt)
    assert isinstance(state.folder, str)
    assert len(state.turns) + len(state.waiting) <= len(data)
    assert isinstance(state.mode, str)
    assert all(len(link) == 64 or isinstance(link, bytes) for link in links_of(data))


@given(st.lists(st.tuples(st.integers(1, 2**29 - 1), st.integers(0, 2**64 - 1) | st.binary() | st.text())))
def test_encoded_fields_are_decoded_to_the_same_values(fields: list[tuple[int, int | bytes | str]]) -> None:
    node = read_node(b"".join(field(tag, value) for tag, value in fields))
    assert node.is_whole
    for tag, value in dict(fields).items():
        if isinstance(value, int):
            assert node.number(tag) == next(
                each for at, each in reversed(fields) if at == tag and isinstance(each, int)
            )
        else:
            assert (value.encode() if isinstance(value, str) else value) in node.blocks(tag)


def test_fixed_width_numbers_are_skipped_and_groups_end_parsing() -> None:
    node = read_node(b"\x09" + b"x" * 8 + b"\x15" + b"x" * 4 + field(3, "here"))
    assert (node.is_whole, node.text(3)) == (True, "here")
    node = read_node(field(3, "here") + b"\x0b" + field(4, "not here"))
    assert (node.is_whole, node.text(3), node.text(4)) == (False, "here", "")


@given(WRAPPED | st.text())
def test_any_text_is_split_into_non_empty_pieces(text: str) -> None:
    pieces = list(pieces_of(text))
    assert all(piece.strip() == piece and piece for _, piece in pieces)
    assert sum(len(piece) for _, piece in pieces) <= len(text)
    assert all(role in (Role.USER, Role.SYSTEM) for role, _ in pieces)
    find_timestamp(text)


TEXT_LINES = st.sampled_from(
    [
        *("user:\n", "A:\n", "assistant: \n", "[Thinking] so\n", "[Tool call] Read\n", "[Tool result] Read\n"),
        *("  path: /a\n", "words\n", "\n", "[Tool result]\n", "[Tool call]\n"),
    ]
)


@given(st.lists(TEXT_LINES | st.text(max_size=20)))
def test_any_text_file_is_parsed(lines: list[str]) -> None:
    check_all(read_lines_of_transcript(list(records_of_text(lines))))


TIMES = st.none() | st.datetimes(timezones=st.just(UTC))


@given(st.lists(TIMES), TIMES, TIMES, st.text(), st.integers(0, 9))
def test_times_never_decrease_or_lie_in_the_future(
    known: list[datetime | None], start: datetime | None, end: datetime | None, mark: str, count: int
) -> None:
    earlier = Fingerprint("files", count, START)
    assert Fingerprint.parse(earlier.fingerprint()) == earlier
    assert Fingerprint.parse(mark).files in mark
    given = [Message(Role.ASSISTANT, "x", at) for at in known]
    times = [
        message.timestamp for message in fill_times(given, TimeFrame(start, end, NOW), earlier) if message.timestamp
    ]
    assert times == sorted(times)
    assert not times or times[-1] <= NOW
    assert all(at >= START for at in times[count:]) or None in (message.timestamp for message in given)


BLOBS = st.dictionaries(
    st.sampled_from([sha256(encoded(each)).hexdigest() for each in working_session()[:4]] + ["free name"]),
    st.none() | st.binary() | st.text() | ANYTHING.map(json.dumps) | WIRE,
)
VALUES = st.text() | ANYTHING.map(json.dumps) | ANYTHING.map(lambda value: json.dumps(value).encode().hex()) | st.none()


@given(BLOBS, st.none() | VALUES, st.none() | WIRE, st.none() | ANYTHING)
def test_any_rows_in_a_store_are_read(
    blobs: dict[str, object], meta: str | None, state: bytes | None, description: object
) -> None:
    with TemporaryDirectory() as folder:
        files = AgentFiles(Path(folder))
        store = files.chat(1, *working_session())
        if state is not None:
            name = sha256(state).hexdigest()
            blobs |= {name: state}
            files.rows(store, {}, {"0": json.dumps({"latestRootBlobId": name}).encode().hex()})
        files.rows(store, blobs, {} if meta is None else {"0": meta})
        if description is not None:
            (store.parent / "meta.json").write_text(json.dumps(description), encoding="utf-8")
        for found in files.read():
            if isinstance(found, FoundSession):
                check_all([found.session])


@given(st.data())
def test_a_store_with_damaged_pages_is_read_or_reported(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        files = AgentFiles(Path(folder))
        store = files.chat(1, *working_session())
        content = bytearray(store.read_bytes())
        for _ in range(data.draw(st.integers(1, 8))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        store.write_bytes(content[: data.draw(st.integers(0, len(content)) | st.just(len(content)))])
        outcome = files.read()
        assert outcome
        check_all([found.session for found in outcome if isinstance(found, FoundSession)])
        assert all(one.why for one in outcome if isinstance(one, Skipped))


def test_a_cycle_of_states_is_read_once(tmp_path: Path) -> None:
    files = AgentFiles(tmp_path)
    one, other = b"\x01" * 32, b"\x02" * 32
    rows = {one.hex(): field(1, other), other.hex(): field(1, one) + field(1, other)}
    store = tmp_path / "chats" / "x" / agent_id(1) / "store.db"
    files.rows(store, rows, {"0": json.dumps({"latestRootBlobId": one.hex()})})
    [found, _] = files.read()
    assert isinstance(found, FoundSession)
    assert found.session.messages == ()


def test_a_text_of_many_wrappers_is_parsed_fast() -> None:
    for text in ("<a_b></a_b>" * 100_000, "x" + "<a_b>x</a_b>" * 100_000, "<a_b>" * 100_000, "</a_b>" * 100_000):
        assert len(list(pieces_of(text))) <= 3
    lines = ["A:\n", *["[Tool result] Read\n"] * 100_000]
    assert len(list(records_of_text(lines))) == 1


def test_five_thousand_calls_and_results_are_parsed_fast() -> None:
    conversation = AgentDialogue()
    for number in range(5_000):
        part = {"type": "tool-call", "toolCallId": f"t{number}", "toolName": "Read", "args": {}}
        conversation.read(f"{number}", {"role": "assistant", "content": [part]})
        conversation.read(
            f"{number}r", {"role": "tool", "content": [{"type": "tool-result", "toolCallId": f"t{number}"}]}
        )
    assert len(conversation.drafts) == 5_000
