"""A reading command from the user's side: asked of the local process, shown here. Imports next to nothing."""

from __future__ import annotations

import os
import sys

from cli.shared.place import Place, current_folder, this_place
from orchestrator.sync.spool import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from typing import Any

_CHUNK = 1 << 16
_COLUMNS = 80


AT_ONCE = {"note": 2.0}
"""For these, and so many seconds, only a process that runs already is asked: a client waits for what they say."""


def run_shared(words: list[str]) -> int | None:
    """Let the local process run a command, show what it says, and return its exit status; None if it does not."""
    place = this_place()
    if place is None or "_CTXR_COMPLETE" in os.environ or _is_first_sync(words, place):
        return None
    hello = {
        "want": "command",
        "words": words,
        "folder": current_folder(),
        "columns": _columns(),
        "is_utf8": (sys.stdout.encoding or "").lower().replace("-", "") == "utf8",
        "are_terminals": [sys.stdout.isatty(), sys.stderr.isatty()],
    }
    patience_s = AT_ONCE.get(words[0])
    connection = place.reach(hello) if patience_s is None else place.reach_at_once(hello, patience_s)
    answer = _answer(connection, place, is_patient=patience_s is None) if connection else b""
    if not answer.endswith(b"\n"):
        return None  # it died in the middle: what reads may be done again
    return _show(loads(answer.decode()))


def _is_first_sync(words: list[str], place: Place) -> bool:
    """Return whether it is a sync into no registry yet: a long one, which the local process would leave to this one."""
    return words[0] == "sync" and not os.path.exists(os.path.join(place.home, "registry.db"))


def _answer(connection: socket, place: Place, *, is_patient: bool) -> bytes:
    answer = bytearray()
    try:
        while True:
            try:
                chunk = connection.recv(_CHUNK)
            except TimeoutError:
                if not is_patient:
                    return b""
                if place.answers():
                    continue
                place.end_hung()
                return b""
            if not chunk:
                return bytes(answer)
            answer += chunk
    except OSError:
        return b""
    finally:
        connection.close()


def _show(answer: dict[str, Any] | None) -> int | None:
    if answer is None:
        return None
    streams: tuple[Any, Any] = (sys.stdout, sys.stderr)
    try:
        for which, text in answer["said"]:
            streams[which].reconfigure(errors="replace")
            streams[which].write(text)
            streams[which].flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader has gone: no word of it at exit either
        return 1
    status: int = answer["status"]
    return status


def _columns() -> int:
    """As `shutil.get_terminal_size`, which takes long to import."""
    try:
        return int(os.environ.get("COLUMNS", "")) or os.get_terminal_size(1).columns
    except (ValueError, OSError):
        pass
    try:
        return os.get_terminal_size(1).columns or _COLUMNS
    except (ValueError, OSError):
        return _COLUMNS
