"""Read files and values that are compressed with Zstandard."""

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

_LARGEST_WINDOW = 2**27  # bytes: bounds the memory that a file can ask for


def open_plain(path: str) -> BinaryIO:
    """Open a file for reading its contents, whether its name ends in `.zst` or not.

    Raises OSError, also without the library for `.zst`; while reading, one of DAMAGED.
    """
    if not path.endswith(".zst"):
        return open(path, "rb")
    decompressor = _decompressor()
    file = open(path, "rb")  # noqa: SIM115 - the reader closes it
    reader = decompressor.stream_reader(file, read_across_frames=True, closefd=True)
    return io.BufferedReader(cast(io.RawIOBase, reader))


def unpacked(content: bytes, most: int) -> bytes:
    """Decompress bytes. Raises OSError if they are more than `most` bytes, or without the library; or DAMAGED."""
    with _decompressor().stream_reader(content) as reader:
        found = reader.read(most + 1)
    if len(found) > most:
        raise OSError(errno.EFBIG, "too large to be read as a whole")
    return found


def _decompressor() -> zstandard.ZstdDecompressor:
    if not HAS_ZST:
        raise OSError(0, f"compressed; to read it: {install_command('zst')}")
    return zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
