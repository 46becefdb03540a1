"""The JSON of an account export, one conversation at a time: files of many gigabytes in bounded memory."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, BinaryIO

from sources.kit.jsonl import Record

LONGEST = 64 * 2**20
"""Bytes of one conversation. A longer one is passed over, and so is the rest of a file where no end of it comes."""
MOST_VALUES = 2_000_000
"""Keys and values of one conversation: brackets take far more memory than they take room in the file."""
DEEPEST = 100
_ABYSS = 10_000

_CHUNK = 2**18  # the parser makes a list of all in a chunk, and looks at a long string anew with each
_NO_OBJECT = "not a JSON object"
_OPENING, _CLOSING = ("start_map", "start_array"), ("end_map", "end_array")


_Event = tuple[str, Any]


class NoEnd(Exception):
    """So much was read without a beginning or an end of anything that the rest is not worth reading."""


@dataclass(slots=True)
class Utf8Source:
    """A file as the JSON parser wants it: valid UTF-8, whatever is in it, without a byte order mark.

    `told` hears how many bytes were read; `quiet`, of them, how many since the parser last made sense of something.
    """

    file: BinaryIO
    told: Callable[[int], None] = lambda _: None
    at: int = 0
    quiet: int = 0
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8-sig")("replace")
    )

    def read(self, size: int = -1) -> bytes:
        """The next bytes; none at the end, or if none are asked for. Raises what the file raises, and NoEnd."""
        while size:
            raw = self.file.read(_CHUNK)
            self.told(len(raw))
            self.quiet += len(raw)
            if self.quiet > LONGEST:
                raise NoEnd
            text = self._decoder.decode(raw, not raw)
            if text or not raw:
                self.at += len(raw)
                return text.encode()
        return b""


def records_in(source: Utf8Source) -> Iterator[Record | str]:
    """The objects in a JSON array, or the one object that the file is; a string says why one, or the rest, is not.

    Raises what the file raises.
    """
    import ijson

    try:
        yield from _records(ijson.basic_parse(source, use_float=True, buf_size=_CHUNK), source)
    except NoEnd:
        yield f"a conversation longer than {LONGEST // 2**20} MB without an end; the rest was not read"
    except (ijson.JSONError, ValueError):
        yield f"cut off or damaged (at byte {source.at} or before); the rest was not read"


def _records(events: Iterator[_Event], source: Utf8Source) -> Iterator[Record | str]:
    first = next(events, ("", None))
    if first[0] in _OPENING:
        yield from _objects(events if first[0] == "start_array" else chain([first], events), source)
    else:
        yield _NO_OBJECT


def _objects(events: Iterable[_Event], source: Utf8Source) -> Iterator[Record | str]:
    """Gives each object as soon as it is whole. What is too large or too deep is counted, but not kept."""
    opened: list[Any] = []
    depth = values = 0
    key, reason, began = "", "", source.at
    for event, value in events:
        if event == "map_key":
            key = value
            continue
        values += 1
        if event in _CLOSING:
            source.quiet = 0
            depth -= 1
            whole = opened.pop() if opened else None
            if depth == 0:
                yield whole if isinstance(whole, dict) else reason or _NO_OBJECT
                values, reason, began = 0, "", source.at
            continue
        if event in _OPENING:
            source.quiet = 0
            depth += 1
            value = {} if event == "start_map" else []
        elif depth == 0:
            yield _NO_OBJECT
            continue
        reason = _too_much(depth, values, source.at - began) or reason
        if reason:
            opened.clear()
            continue
        if opened and type(opened[-1]) is dict:
            opened[-1][key] = value
        elif opened:
            opened[-1].append(value)
        if event in _OPENING:
            opened.append(value)


def _too_much(depth: int, values: int, size: int) -> str:
    if depth > _ABYSS:
        raise NoEnd
    if values > MOST_VALUES or size > LONGEST:
        return f"larger than {LONGEST // 2**20} MB or {MOST_VALUES} values"
    return f"nested deeper than {DEEPEST}" if depth > DEEPEST else ""
