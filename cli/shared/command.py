"""A reading command on the user's side: the local process runs it, its output is printed here.

Imports next to nothing.
"""

from __future__ import annotations

import os
import sys
from shutil import get_terminal_size

from cli.shared.place import ProcessPlace, current_folder, this_place
from orchestrator.sync.spool import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from typing import Any


def run_shared(words: list[str]) -> int | None:
    """Let the local process run a command, print its output, and return its exit status; None if it does not."""
    place = this_place()
    if place is None or "_CTXR_COMPLETE" in os.environ:
        return None
    if words[0] == "sync" and not os.path.exists(os.path.join(place.home, "registry.db")):
        return None  # the first sync takes long and shows a progress bar
    hello = {
        "want": "command",
        "words": words,
        "folder": current_folder(),
        "columns": get_terminal_size().columns,
        "is_utf8": (sys.stdout.encoding or "").lower().replace("-", "") == "utf8",
        "are_terminals": [stream.isatty() and not os.environ.get("NO_COLOR") for stream in (sys.stdout, sys.stderr)],
    }
    is_note = words[0] == "note"  # a client waits for it, so no process is started, and none is waited for
    return _print(_ask(place, hello, 2.0 if is_note else None))


def output_at_once(words: list[str], patience_s: float) -> str:
    """Let the local process run a command, and return what it writes; "" if it fails, or none answers so soon."""
    place = this_place()
    hello = {"want": "command", "words": words, "folder": "", "columns": 80, "is_utf8": True}
    done = _ask(place, {**hello, "are_terminals": [False, False]}, patience_s) if place else None
    return "" if not done or done["status"] else "".join(text for which, text in done["output"] if which == 0)


def _ask(place: ProcessPlace, hello: dict[str, Any], patience_s: float | None) -> dict[str, Any] | None:
    """Return what a command has written, and its exit status; None if no process has run it to the end.

    Without `patience_s` one is started if there is none. A command that only reads may be run again.
    """
    connection = place.reach(hello) if patience_s is None else place.reach_at_once(hello, patience_s)
    answer = _read_answer(connection, place, is_patient=patience_s is None) if connection else b""
    return loads(answer.decode()) if answer.endswith(b"\n") else None


def _read_answer(connection: socket, place: ProcessPlace, *, is_patient: bool) -> bytes:
    answer = bytearray()
    try:
        while True:
            try:
                chunk = connection.recv(1 << 16)
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


def _print(answer: dict[str, Any] | None) -> int | None:
    if answer is None:
        return None
    streams: tuple[Any, Any] = (sys.stdout, sys.stderr)
    try:
        for which, text in answer["output"]:
            streams[which].reconfigure(errors="replace")
            streams[which].write(text)
            streams[which].flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that Python does not complain at exit either
        return 1
    status: int = answer["status"]
    return status
