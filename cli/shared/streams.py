"""The client's stdin and stdout, as files that a chat window can wait for."""

from __future__ import annotations

import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CHUNK = 1 << 16


class Streams:
    """The client's stdin and stdout as files that `select` can wait for. On Windows, that is only sockets."""

    def __init__(self, are_sockets: bool) -> None:
        self._pumps: list[Any] = []
        self.input: Any = 0
        self.output: Any = 1
        if are_sockets:
            from socket import socketpair
            from threading import Thread

            self.input, stdin = socketpair()
            self.output, stdout = socketpair()
            self._pumps = [
                Thread(target=_pump, args=(lambda: os.read(0, CHUNK), stdin.sendall, stdin.close), daemon=True),
                Thread(target=_pump, args=(lambda: stdout.recv(CHUNK), _write_all, stdout.close), daemon=True),
            ]
            for pump in self._pumps:
                pump.start()

    def read(self) -> bytes:
        try:
            return self.input.recv(CHUNK) if self._pumps else os.read(0, CHUNK)
        except OSError:
            return b""

    def write(self, content: bytearray) -> int:
        """Write the beginning of `content` without blocking, and return its length; OSError if nobody reads."""
        if self._pumps:
            sent: int = self.output.send(content[:CHUNK])
            return sent
        return os.write(1, content[: getattr(select, "PIPE_BUF", 512)])  # as much as a ready pipe takes

    def __enter__(self) -> Streams:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pumps:
            self.output.close()
            self._pumps[1].join()


def _pump(read: Any, write: Any, close: Any) -> None:
    try:
        while chunk := read():
            write(chunk)
    except OSError:
        return
    finally:
        close()


def _write_all(content: bytes) -> None:
    while content:
        content = content[os.write(1, content) :]
