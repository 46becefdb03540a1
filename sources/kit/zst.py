"""Read files and values that are compressed with Zstandard."""

import errno
import io
from typing import BinaryIO, cast

from registry.extras import install_command

try:
    import zstandard
except ImportError:  # an extra: few clients compress
    HAS_ZST = False
    DECOMPRESSION_ERRORS: tuple[type[Exception], ...] = ()
else:
    HAS_ZST = True
    DECOMPRESSION_ERRORS = (zstandard.ZstdError,)


def open_decompressed(path: str) -> BinaryIO:
    """Open a file for reading; decompress it if its name ends in `.zst`.

    Raises OSError, also if the library for `.zst` is missing. Reading may raise DECOMPRESSION_ERRORS.
    """
    if not path.endswith(".zst"):
        return open(path, "rb")
    decompressor = _decompressor()
    file = open(path, "rb")  # noqa: SIM115 - the reader closes it
    reader = decompressor.stream_reader(file, read_across_frames=True, closefd=True)
    return io.BufferedReader(cast(io.RawIOBase, reader))


def decompress(content: bytes, max_bytes: int) -> bytes:
    """Decompress bytes. Raises OSError over `max_bytes` or without the library, or DECOMPRESSION_ERRORS."""
    with _decompressor().stream_reader(content) as reader:
        found = reader.read(max_bytes + 1)
    if len(found) > max_bytes:
        raise OSError(errno.EFBIG, "too large to be read as a whole")
    return found


def _decompressor() -> zstandard.ZstdDecompressor:
    if not HAS_ZST:
        raise OSError(0, f"compressed; to read it: {install_command('zst')}")
    return zstandard.ZstdDecompressor(max_window_size=2**27)  # bytes: limits the memory for a file
