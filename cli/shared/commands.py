"""Commands that the local process runs for a user: theirs is the terminal, ours are the graph and the open registry."""

from __future__ import annotations

import io
import sys
from contextvars import ContextVar
from typing import Any, TextIO

from cli.main import cli
from cli.terminal import SERVED, NotHere, Terminal

_SAID: ContextVar[list[tuple[int, str]]] = ContextVar("_SAID")


class _Stream(io.TextIOBase):
    """stdout (0) or stderr (1): of the user for whom the command runs that writes, else of this process."""

    encoding = "utf-8"

    def __init__(self, which: int, own: TextIO) -> None:
        self._which, self._own = which, own

    def write(self, text: str) -> int:
        if not isinstance(text, str):  # so click tells a stream of text from one of bytes
            raise TypeError(f"a text is written here, not {type(text).__name__}")
        if SERVED.get() is None:
            return self._own.write(text)
        _SAID.get().append((self._which, text))
        return len(text)

    def flush(self) -> None:
        if SERVED.get() is None:
            self._own.flush()

    def isatty(self) -> bool:
        served = SERVED.get()
        return served.are_terminals[self._which] if served else self._own.isatty()


def run_command(words: list[str], terminal: Terminal) -> dict[str, Any] | None:
    """Run a command and return [[stream, text], …] and its exit status; None: it cannot run here.

    In a thread of its own: a context of its own, and it waits for the process's event loop.
    """
    if not isinstance(sys.stdout, _Stream):
        sys.stdout, sys.stderr = _Stream(0, sys.stdout), _Stream(1, sys.stderr)
    said: list[tuple[int, str]] = []
    _SAID.set(said)
    SERVED.set(terminal)
    try:
        cli(words, prog_name="ctxr")
    except SystemExit as end:
        return {"said": said, "status": end.code or 0}
    except NotHere:
        return None
    raise AssertionError("a command ends the program")
