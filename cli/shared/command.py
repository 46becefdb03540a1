"""Let the local process run a reading command, and print its output. Imports almost nothing."""

from __future__ import annotations

import os
import sys
import time
from shutil import get_terminal_size

from cli.shared.process_handle import ProcessHandle, current_folder, current_handle
from orchestrator.sync.spool import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from typing import Any


def run_shared(words: list[str]) -> int | None:
    """Let the local process run a command, print its output, and return its exit status; None if it cannot."""
    handle = current_handle()
    if handle is None or "_CTXR_COMPLETE" in os.environ:
        return None
    if words[0] == "sync" and not os.path.exists(os.path.join(handle.home, "registry.db")):
        return None  # the first sync takes long and shows a progress bar
    hello = {
        "want": "command",
        "words": words,
        "folder": current_folder(),
        "columns": get_terminal_size().columns,
        "is_utf8": (sys.stdout.encoding or "").lower().replace("-", "") == "utf8",
        "are_terminals": [stream.isatty() and not os.environ.get("NO_COLOR") for stream in (sys.stdout, sys.stderr)],
    }
    # a client waits for a start note, which it can read without the process, so none is started
    is_note = words[0] == "note" and "--compacted" not in words
    return _print(_ask(handle, hello, 2.0 if is_note else None))


def output_of_running(words: list[str], timeout_s: float) -> str:
    """Return a command's output from the running local process; "" if it fails or does not answer in time."""
    handle = current_handle()
    hello = {"want": "command", "words": words, "folder": "", "columns": 80, "is_utf8": True}
    done = _ask(handle, {**hello, "are_terminals": [False, False]}, timeout_s) if handle else None
    return "" if not done or done["status"] else "".join(text for which, text in done["output"] if which == 0)


def _ask(handle: ProcessHandle, hello: dict[str, Any], timeout_s: float | None) -> dict[str, Any] | None:
    """Return a command's output and exit status; None if no process has finished it.

    Without `timeout_s` a process is started if there is none. A reading command may be run again.
    """
    asked = time.monotonic()
    connection = handle.reach(hello) if timeout_s is None else handle.reach_running(hello, timeout_s)
    if connection and timeout_s:
        connection.settimeout(max(timeout_s - (time.monotonic() - asked), 0.001))
    answer = _read_answer(connection, handle, may_wait=timeout_s is None) if connection else b""
    return loads(answer.decode()) if answer.endswith(b"\n") else None


def _read_answer(connection: socket, handle: ProcessHandle, *, may_wait: bool) -> bytes:
    answer = bytearray()
    try:
        while True:
            try:
                chunk = connection.recv(1 << 16)
            except TimeoutError:
                if not may_wait:
                    return b""
                if handle.is_answering():
                    continue
                handle.end_hung()
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
