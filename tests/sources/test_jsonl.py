"""Lines as clients leave them."""

from __future__ import annotations

from io import BytesIO

import pytest

from sources.kit.jsonl import read_lines


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (b"1234567\n12\n", [b"1234567\n", b"12\n"]),
        (b"12345678\n12\n", [None, b"12\n"]),
        (b"1234567890123456\n12", [None, b"12"]),
    ],
)
def test_a_line_of_just_the_greatest_length_is_read_and_a_longer_one_costs_only_itself(
    written: bytes, lines: list[bytes | None]
) -> None:
    assert list(read_lines(BytesIO(written), longest=8)) == lines
