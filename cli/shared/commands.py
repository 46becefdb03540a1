"""Run commands in the local process for a user's terminal."""

import io
import sys
from contextvars import ContextVar
from typing import Any, TextIO

from cli.main import cli
from cli.terminal import SERVED, NotHere, Terminal

_OUTPUT: ContextVar[list[tuple[int, str]]] = ContextVar("_OUTPUT")


class _Stream(io.TextIOBase):
    """stdout (0) or stderr (1): collected for the user whose command writes, else this process's own."""

    encoding = "utf-8"

    def __init__(self, which: int, own: TextIO) -> None:
        self._which, self._own = which, own

    def write(self, text: str) -> int:
        if not isinstance(text, str):  # so click tells a stream of text from one of bytes
            raise TypeError(f"expected text, not {type(text).__name__}")
        if SERVED.get() is None:
            return self._own.write(text)
        _OUTPUT.get().append((self._which, text))
        return len(text)

    def flush(self) -> None:
        if SERVED.get() is None:
            self._own.flush()

    def isatty(self) -> bool:
        served = SERVED.get()
        return served.are_terminals[self._which] if served else self._own.isatty()


def run_command(words: list[str], terminal: Terminal) -> dict[str, Any] | None:
    """Run a command and return its output and exit status; None if it cannot run here.

    Call it in a thread of its own, with its own context: it waits for the event loop.
    """
    if not isinstance(sys.stdout, _Stream):
        sys.stdout, sys.stderr = _Stream(0, sys.stdout), _Stream(1, sys.stderr)
    output: list[tuple[int, str]] = []
    _OUTPUT.set(output)
    SERVED.set(terminal)
    try:
        cli(words, prog_name="ctxr")
    except SystemExit as end:
        return {"output": output, "status": end.code or 0}
    except NotHere:
        return None
    raise AssertionError("a command ends the program")
