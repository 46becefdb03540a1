"""Read JSON lines as clients leave them: torn, glued together, damaged, sometimes enormous. Bounded in memory."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from sources.base import Skipped
from sources.kit.loose_json import DECODER, Record

LONGEST_LINE = 32 * 2**20  # bytes: pasted images make lines of 10 MB; a longer line is passed over unread

_PADDING = re.compile(r"[ \t\r\n\0\ufeff]*")  # a crash may leave a block of zeros, an editor a byte order mark


@dataclass(slots=True)
class Damage:
    """The damage found in one file: for each reason the first line, and how many."""

    found: dict[str, list[int]] = field(default_factory=dict)

    def note(self, line: int, why: str) -> None:
        """Count a line that is damaged for this reason; line 0 is the file as a whole."""
        first_and_count = self.found.setdefault(why, [line, 0])
        first_and_count[1] += 1

    def skipped(self) -> tuple[Skipped, ...]:
        return tuple(Skipped(_where(first, count), why) for why, (first, count) in self.found.items())


def _where(first: int, count: int) -> str:
    if not first:
        return "the file"
    return f"line {first}" if count == 1 else f"line {first} and {count - 1} more"


def read_lines(file: BinaryIO, longest: int = LONGEST_LINE) -> Iterator[bytes | None]:
    """Yield the lines of a file; None for one that is too long to be kept in memory."""
    while line := file.readline(longest):
        if len(line) < longest or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(longest)
        yield None


def records_of(lines: Iterable[bytes | None], damage: Damage) -> Iterator[Record]:
    """Yield the JSON objects in the lines, in order; anything else is noted as damage, blank lines are passed over."""
    for number, line in enumerate(lines, 1):
        if line is None:
            damage.note(number, f"longer than {LONGEST_LINE // 2**20} MB")
        else:
            yield from _objects_in(line.decode("utf-8", "replace"), number, damage)


def _objects_in(text: str, number: int, damage: Damage) -> Iterator[Record]:
    """Yield the objects of a line: several if two processes wrote at once and a line break was lost."""
    at = _past_padding(text, 0)
    while at < len(text):
        try:
            value, at = DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            damage.note(number, "not JSON" if text.endswith("\n") else "not written to its end")
            return
        if isinstance(value, dict):
            yield value
        else:
            damage.note(number, "not a JSON object")
        at = _past_padding(text, at)


def _past_padding(text: str, at: int) -> int:
    padding = _PADDING.match(text, at)
    return padding.end() if padding else at
