"""Files that only this user may read, also in a folder that others may look into."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_OTHERS = 0o077


def make_private_file(path: Path) -> None:
    """Make an empty file that only this user may read, where there is none; what cannot be made here fails later."""
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def keep_private(paths: Iterable[Path]) -> None:
    """Take from everybody else what they may do with these files and folders, those of them that are there."""
    for path in paths:
        with suppress(OSError):
            mode = path.stat().st_mode
            if mode & _OTHERS:
                path.chmod(mode & ~_OTHERS & 0o7777)


def private_files_of(home: Path) -> Iterable[Path]:
    """What in the registry's folder is nobody else's business."""
    yield home / "config.toml"
    yield home / "masking.json"
    yield from home.glob("registry.db*")
    yield home / "spool"
    yield from (home / "spool").glob("*")
