"""Which project a client means by `current`, `all` or a path (contract 2.3)."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

CURRENT, ALL = "current", "all"


def project_of(asked: str, current: str | None) -> str | None:
    """The folder to look in; None for all. Where the current folder is not known, `current` means all."""
    return {CURRENT: current, ALL: None}.get(asked, asked)


def working_folder() -> str | None:
    """The folder a stdio server was started in, unless that says nothing: the home folder, the root, or none."""
    try:
        here = Path.cwd()
    except OSError:
        return None
    return None if here in (Path.home(), Path(here.anchor)) else str(here)


def utc_offset_minutes() -> int:
    """This machine's clock against UTC, for what `yesterday` means."""
    offset = datetime.now().astimezone().utcoffset() or timedelta()
    return int(offset.total_seconds() // 60)
