"""Check that a reader leaves a client's folder unchanged, and which files it opens."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

_recorders: list[list[str]] = []


def state_of(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Return mode, time of change and content hash of everything below a folder."""
    state = {}
    for path in sorted([folder, *folder.rglob("*")]):
        seen = path.lstat()
        content = sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        state[str(path.relative_to(folder))] = (seen.st_mode, seen.st_mtime_ns, content)
    return state


def _record(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        for recorder in _recorders:
            recorder.append(str(arguments[0]))


sys.addaudithook(_record)  # one for all tests, because an audit hook cannot be removed


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """Yield a list that receives the paths opened in the block."""
    paths: list[str] = []
    _recorders.append(paths)
    try:
        yield paths
    finally:
        _recorders.remove(paths)
