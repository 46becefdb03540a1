"""The user's terminal: this process's own, or the one for which the local process runs a command."""

import shutil
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from cli.shared.process_handle import current_folder


@dataclass(frozen=True, slots=True)
class Terminal:
    """The terminal's working folder and size, and the function that runs operations for it."""

    folder: str
    columns: int
    is_utf8: bool
    run: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None
    are_terminals: tuple[bool, bool] = (False, False)  # True for each of stdout and stderr that is a terminal


class NotHere(BaseException):
    """The local process leaves this command to the user's own process. Not an `Exception`, so nothing catches it."""


SERVED: ContextVar[Terminal | None] = ContextVar("SERVED", default=None)
"""The terminal for which the local process runs a command just now."""


def terminal() -> Terminal:
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return SERVED.get() or Terminal(current_folder(), shutil.get_terminal_size().columns, is_utf8)
