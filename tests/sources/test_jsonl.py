"""JSON lines, also damaged ones."""

from __future__ import annotations

from io import BytesIO

import pytest

from sources.kit.jsonl import Damage, read_lines, records_of
from sources.kit.loose_json import Record


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (b"1234567\n12\n", [b"1234567\n", b"12\n"]),
        (b"12345678\n12\n", [None, b"12\n"]),
        (b"1234567890123456\n12", [None, b"12"]),
    ],
)
def test_a_line_of_the_maximum_length_is_read_and_only_a_longer_one_is_lost(
    written: bytes, lines: list[bytes | None]
) -> None:
    assert list(read_lines(BytesIO(written), max_bytes=8)) == lines


def test_several_records_on_one_line_are_read() -> None:
    cases: list[tuple[bytes, list[Record]]] = [
        (b'{"a": 1}\r\n', [{"a": 1}]),
        (b'{"a": 1}{"b": 2}\n', [{"a": 1}, {"b": 2}]),
        (b'\0\0{"a": 1}\n', [{"a": 1}]),
        (b'\xef\xbb\xbf{"a": 1} \n', [{"a": 1}]),
        (b"\n", []),
    ]
    for line, records in cases:
        damage = Damage()
        assert list(records_of([line], damage)) == records
        assert damage.skipped() == ()


@pytest.mark.parametrize(
    ("line", "records", "why"),
    [
        (b'{"a": 1}{"b"\n', [{"a": 1}], "not JSON"),
        (b'{"a": 1', [], "incomplete line"),
        (b"[1]\n", [], "not a JSON object"),
    ],
)
def test_complete_records_of_a_damaged_line_are_read(line: bytes, records: list[Record], why: str) -> None:
    damage = Damage()
    assert list(records_of([line], damage)) == records
    [skipped] = damage.skipped()
    assert (skipped.what, skipped.why) == ("line 1", why)
