"""Read JSON lines that may be cut off, joined, damaged or enormous, with bounded memory."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from sources.base import Skipped
from sources.kit.loose_json import DECODER, Record

MAX_LINE_BYTES = 32 * 2**20  # a longer line is skipped; pasted images make lines of 10 MB
TOO_LONG = f"longer than {MAX_LINE_BYTES // 2**20} MB"

_PADDING = re.compile(r"[ \t\r\n\0\ufeff]*")  # a crash may leave a block of zeros, an editor a byte order mark


@dataclass(slots=True)
class Damage:
    """The damage in one file: by reason, the first line and the number of lines."""

    found: dict[str, list[int]] = field(default_factory=dict)

    def note(self, line: int, why: str) -> None:
        """Count a damaged line; line 0 is the whole file."""
        first_and_count = self.found.setdefault(why, [line, 0])
        first_and_count[1] += 1

    def skipped(self) -> tuple[Skipped, ...]:
        return tuple(Skipped(_where(first, count), why) for why, (first, count) in self.found.items())


def _where(first: int, count: int) -> str:
    if not first:
        return "the file"
    return f"line {first}" if count == 1 else f"line {first} and {count - 1} more"


def read_lines(file: BinaryIO, max_bytes: int = MAX_LINE_BYTES) -> Iterator[bytes | None]:
    """Yield the lines of a file; None for a line that is too long for memory."""
    while line := file.readline(max_bytes):
        if len(line) < max_bytes or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(max_bytes)
        yield None


def records_of(lines: Iterable[bytes | None], damage: Damage) -> Iterator[Record]:
    """Yield the JSON objects in the lines, in order; count anything else as damage, except blank lines."""
    for number, line in enumerate(lines, 1):
        if line is None:
            damage.note(number, TOO_LONG)
        else:
            yield from _objects_in(line.decode("utf-8", "replace"), number, damage)


def _objects_in(text: str, number: int, damage: Damage) -> Iterator[Record]:
    """Yield the objects of a line, which has several if two processes wrote at once and a line break was lost."""
    at = _past_padding(text, 0)
    while at < len(text):
        try:
            value, at = DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            damage.note(number, "not JSON" if text.endswith("\n") else "incomplete line")
            return
        if isinstance(value, dict):
            yield value
        else:
            damage.note(number, "not a JSON object")
        at = _past_padding(text, at)


def _past_padding(text: str, at: int) -> int:
    padding = _PADDING.match(text, at)
    return padding.end() if padding else at
