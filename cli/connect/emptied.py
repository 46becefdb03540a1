"""What stood in clients' files that held nothing yet, such as `{}`: uninstalling gives it back to the letter.

Kept in the registry's folder, and only as long as we are in such a file. It holds no setting of anybody's.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from orchestrator.sync.spool import registry_home

NAME = "connected.json"


def what_was(file: Path) -> str | None:
    """Return a file's content before the installation, None if it is not known."""
    return _read().get(str(file))


def remember(file: Path, text: str | None) -> None:
    """This file held just that before we came; None: we have left it."""
    known = {path: kept for path, kept in _read().items() if path != str(file)}
    if text is not None or known != _read():
        _write(known if text is None else {**known, str(file): text})


def _path() -> Path:
    return Path(registry_home(), NAME)


def _read() -> dict[str, str]:
    try:
        known = json.loads(_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _write(known: dict[str, str]) -> None:
    """A record that cannot be kept costs no more than an empty file's `{}`."""
    with suppress(OSError):
        if not known:
            _path().unlink(missing_ok=True)
            return
        _path().parent.mkdir(parents=True, exist_ok=True)
        new = _path().with_suffix(".new")
        new.write_text(json.dumps(known), encoding="utf-8")
        os.replace(new, _path())
