"""Read a zip without its list of contents, which is at its end: a download that was cut off."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, cast

_HEADER = struct.Struct("<4s5H3I2H")
_SIGN = b"PK\x03\x04"
_DEFLATED, _SIZE_FOLLOWS, _ENCRYPTED, _IN_EXTRA = 8, 8, 1, 0xFFFFFFFF
_PIECE = 2**16


class Member(NamedTuple):
    """A file in the zip; `at` is the offset of its compressed data."""

    name: str
    at: int
    size: int


def members_of(file: BinaryIO) -> Iterator[Member]:
    """Yield the compressed files up to the damage. Raises OSError and zlib.error."""
    at = 0
    while True:
        file.seek(at)
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size or not header.startswith(_SIGN):
            return
        _, _, flags, method, _, _, _, packed, size, name_length, extra_length = _HEADER.unpack(header)
        name = file.read(name_length).decode("utf-8", "replace")
        begin = at + _HEADER.size + name_length + extra_length
        is_readable = method == _DEFLATED and not flags & _ENCRYPTED
        if is_readable:
            yield Member(name, begin, size)
        if not flags & _SIZE_FOLLOWS and packed != _IN_EXTRA:
            at = begin + packed
        elif is_readable:
            at = _next_header(file, begin)
        else:
            return


def _next_header(file: BinaryIO, begin: int) -> int:
    """Return the offset of the next file where sizes follow the data: it is found only by decompressing."""
    inflated = Inflated(file, begin)
    buffer = memoryview(bytearray(_PIECE))
    try:
        while inflated.readinto(buffer):
            pass
    except EOFError:
        return file.seek(0, io.SEEK_END)
    file.seek(inflated.end)
    return inflated.end + max(file.read(28).find(_SIGN), 0)  # at most 24 bytes of sizes, then the next file


def open_member(file: BinaryIO, member: Member) -> BinaryIO:
    """Open a file in the zip. Reading raises EOFError where the zip was cut off, OSError, zlib.error."""
    return cast(BinaryIO, io.BufferedReader(Inflated(file, member.at)))


class Inflated(io.RawIOBase):
    def __init__(self, file: BinaryIO, at: int) -> None:
        self._file, self._at, self._decoder = file, at, zlib.decompressobj(-zlib.MAX_WBITS)

    @property
    def end(self) -> int:
        """Return the end of the data, once they are read."""
        return self._at - len(self._decoder.unused_data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill the buffer; 0 at the end of the data."""
        piece = b""
        while not piece and not self._decoder.eof:
            piece = self._decoder.decompress(self._decoder.unconsumed_tail or self._more(), len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def _more(self) -> bytes:
        self._file.seek(self._at)
        raw = self._file.read(_PIECE)
        self._at += len(raw)
        if not raw:
            raise EOFError("the zip was cut off here")
        return raw
