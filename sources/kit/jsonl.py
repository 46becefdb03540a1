"""JSON lines as clients leave them: torn, glued together, damaged, sometimes enormous. Bounded in memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from sources.base import Skipped

Record = dict[str, Any]

LONGEST_LINE = 32 * 2**20
"""Bytes. Pasted images make lines of 10 MB; beyond this a line is passed over unread."""

_DECODER = json.JSONDecoder(parse_constant=lambda _: None)  # NaN and Infinity are no JSON anywhere else
_LINE_ENDS = ("\n", "\r\n", "")
_PADDING = re.compile(r"[ \t\r\n\0\ufeff]*")  # a crash may leave a block of zeros, an editor a byte order mark


@dataclass(slots=True)
class Damage:
    """What could not be read in one file: for each reason the first line, and how many."""

    found: dict[str, list[int]] = field(default_factory=dict)

    def note(self, line: int, why: str) -> None:
        """One more line with this trouble; line 0 is the file as a whole."""
        first_and_count = self.found.setdefault(why, [line, 0])
        first_and_count[1] += 1

    def skipped(self) -> tuple[Skipped, ...]:
        """One entry for each reason."""
        return tuple(Skipped(_where(first, count), why) for why, (first, count) in self.found.items())


def _where(first: int, count: int) -> str:
    if not first:
        return "the file"
    return f"line {first}" if count == 1 else f"line {first} and {count - 1} more"


def read_lines(file: BinaryIO, longest: int = LONGEST_LINE) -> Iterator[bytes | None]:
    """The lines of a file; None stands for one that is too long to be kept in memory."""
    while line := file.readline(longest):
        if len(line) < longest or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(longest)
        yield None


def records_of(lines: Iterable[bytes | None], damage: Damage) -> Iterator[Record]:
    """The JSON objects in the lines, in order; what is none is noted as damage, blank lines are nothing."""
    for number, line in enumerate(lines, 1):
        if line is None:
            damage.note(number, f"longer than {LONGEST_LINE // 2**20} MB")
            continue
        text = line.decode("utf-8", "replace")
        try:
            value, end = _DECODER.raw_decode(text)
        except (ValueError, RecursionError):
            value, end = None, 0
        if isinstance(value, dict) and text[end:] in _LINE_ENDS:  # nearly all
            yield value
        else:
            yield from _objects_in(text, number, damage)


def _objects_in(text: str, number: int, damage: Damage) -> Iterator[Record]:
    """Several where two processes wrote at once and a line break was lost; none where one was torn."""
    at = _past_padding(text, 0)
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
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


def object_in(text: str) -> Record | None:
    """The JSON object that a text is, if it is one: clients put JSON into strings."""
    try:
        value = _DECODER.decode(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def mapping(value: object) -> Record:
    """The value if it is an object, else an empty one: clients change shapes without notice."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def string(value: object) -> str:
    """The value if it is text, else nothing."""
    return value if isinstance(value, str) else ""
