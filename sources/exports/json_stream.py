"""Parse the JSON of an account export one conversation at a time, so that gigabytes fit in bounded memory."""

import codecs
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from typing import Any, BinaryIO

from sources.kit.loose_json import Record

MAX_BYTES = 64 * 2**20  # of one conversation; a longer one is skipped, with the rest of the file if it is twice as long
MAX_VALUES = 2_000_000  # keys and values of one conversation: `[[[…` takes far more memory than bytes in the file
MAX_DEPTH = 100  # levels of one conversation; deeper ones cannot be stored

_CHUNK = 2**18  # bytes: the parser lists all events of a chunk, and scans a long string again with each chunk
NO_OBJECT = "not a JSON object"
_OPENING, _CLOSING = ("start_map", "start_array"), ("end_map", "end_array")


class TooLarge(Exception):
    """Raised if a conversation is so long that the rest of the file is skipped."""


@dataclass(slots=True)
class Utf8Source:
    """Converts a file to valid UTF-8 without a byte order mark, as the JSON parser needs it.

    `on_read` is called with the number of bytes of each read; `began`: the position at which the current conversation
    begins. Raises TooLarge after `max_bytes`.
    """

    file: BinaryIO
    on_read: Callable[[int], None] = lambda _: None
    max_bytes: float = inf
    at: int = 0
    began: int = 0
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8-sig")("replace")
    )

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; none at the end or for `size` 0. Raises the file's errors, and TooLarge."""
        while size:
            raw = self.file.read(_CHUNK)
            self.on_read(len(raw))
            if self.at - self.began > 2 * MAX_BYTES or self.at > self.max_bytes:
                raise TooLarge
            text = self._decoder.decode(raw, not raw)
            if text or not raw:
                self.at += len(raw)
                return text.encode()
        return b""


def records_in(source: Utf8Source) -> Iterator[Record | str]:
    """Yield the objects of a JSON array, or the file's single object; a string is the reason why one was skipped.

    Raises the file's errors.
    """
    import ijson

    try:
        events = ijson.basic_parse(source, use_float=True, buf_size=_CHUNK)
        first = next(events, ("", None))
        yield from _objects(events if first[0] == "start_array" else chain([first], events), source)
    except TooLarge:
        yield f"a conversation twice as large as {MAX_BYTES // 2**20} MB or {MAX_VALUES} values; the rest was not read"
    except (ijson.JSONError, ValueError):
        yield f"cut off or damaged (at byte {source.at} or before); the rest was not read"


def _objects(events: Iterable[tuple[str, Any]], source: Utf8Source) -> Iterator[Record | str]:
    """Yield each object as soon as it is complete, without building those that are too large or too deep."""
    from ijson import ObjectBuilder

    builder, depth, values, reason = ObjectBuilder(), 0, 0, ""
    for event, value in events:
        depth += (event in _OPENING) - (event in _CLOSING)
        values += event != "map_key"
        if depth < 0:  # the end of the list
            continue
        if values > 2 * MAX_VALUES:
            raise TooLarge
        if values > MAX_VALUES or source.at - source.began > MAX_BYTES:
            reason = f"larger than {MAX_BYTES // 2**20} MB or {MAX_VALUES} values"
        elif depth > MAX_DEPTH:
            reason = f"nested deeper than {MAX_DEPTH}"
        if reason:
            builder = None
        else:
            builder.event(event, value)
        if depth == 0:
            whole = None if reason else builder.value
            yield whole if isinstance(whole, dict) else reason or NO_OBJECT
            builder, values, reason, source.began = ObjectBuilder(), 0, "", source.at
