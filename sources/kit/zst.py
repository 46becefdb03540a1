"""What a client has compressed with Zstandard, as bytes of its contents."""

from __future__ import annotations

import errno
import io
from typing import BinaryIO, cast

from registry.extras import install_command

try:
    import zstandard
except ImportError:  # an extra: few clients compress
    HAS_ZST = False
    DAMAGED: tuple[type[Exception], ...] = ()
else:
    HAS_ZST = True
    DAMAGED = (zstandard.ZstdError,)

_LARGEST_WINDOW = 2**27
_MISSING = "compressed; to read it: {}"


def open_plain(path: str) -> BinaryIO:
    """The contents of a file, whether its name ends in `.zst` or not.

    Raises OSError; while reading, one of DAMAGED. Without the library for `.zst` it is an OSError too.
    """
    if not path.endswith(".zst"):
        return open(path, "rb")
    if not HAS_ZST:
        raise OSError(0, _MISSING.format(install_command("zst")))
    file = open(path, "rb")  # noqa: SIM115 - the reader closes it
    decompressor = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
    reader = decompressor.stream_reader(file, read_across_frames=True, closefd=True)
    return io.BufferedReader(cast(io.RawIOBase, reader))


def unpacked(content: bytes, most: int) -> bytes:
    """What was compressed. Raises OSError where it is longer than `most` bytes, or without the library; or DAMAGED."""
    if not HAS_ZST:
        raise OSError(0, _MISSING.format(install_command("zst")))
    decompressor = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
    with decompressor.stream_reader(content) as reader:
        found = reader.read(most + 1)
    if len(found) > most:
        raise OSError(errno.EFBIG, "too large to be read as a whole")
    return found
