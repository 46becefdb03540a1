"""Run commands in the local process for a user's terminal."""

import io
import sys
from contextvars import ContextVar
from typing import Any, TextIO

from cli.main import cli
from cli.terminal import SERVED, NotHere, Terminal

_OUTPUT: ContextVar[list[tuple[int, str]]] = ContextVar("_OUTPUT")


class _Stream(io.TextIOBase):
    """stdout (0) or stderr (1): collects what a served command writes, else passes it to the original stream."""

    encoding = "utf-8"

    def __init__(self, which: int, original: TextIO) -> None:
        self._which, self._original = which, original

    def write(self, text: str) -> int:
        if not isinstance(text, str):  # click recognises a text stream by this error
            raise TypeError(f"expected text, not {type(text).__name__}")
        if SERVED.get() is None:
            return self._original.write(text)
        _OUTPUT.get().append((self._which, text))
        return len(text)

    def flush(self) -> None:
        if SERVED.get() is None:
            self._original.flush()

    def isatty(self) -> bool:
        served = SERVED.get()
        return served.are_terminals[self._which] if served else self._original.isatty()


def run_command(words: list[str], terminal: Terminal) -> dict[str, Any] | None:
    """Run a command and return its output and exit status; None if it cannot run here.

    Call it in a thread with its own context, because it blocks until the event loop has run its operations.
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
