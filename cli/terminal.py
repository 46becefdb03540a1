"""The user's terminal: this process's own, or that of a user who has a command run by the local process."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from cli.shared.place import current_folder


@dataclass(frozen=True, slots=True)
class Terminal:
    """The user's terminal as a command needs it, and the function that runs operations for it."""

    folder: str
    columns: int
    is_utf8: bool
    run: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None
    are_shown: tuple[bool, bool] = (False, False)
    """Whether stdout and stderr are a terminal's; this process asks its own."""


class NotHere(BaseException):
    """The local process leaves this to the user's own. Not an `Exception`: nobody on the way is to answer it."""


SERVED: ContextVar[Terminal | None] = ContextVar("SERVED", default=None)
"""The terminal for which the local process runs a command just now."""


def terminal() -> Terminal:
    """The terminal that the running command speaks to."""
    return SERVED.get() or Terminal(current_folder(), shutil.get_terminal_size().columns, _is_utf8())


def _is_utf8() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
