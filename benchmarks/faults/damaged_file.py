"""Change bytes of a registry's file, and measure what `ctxr doctor` notices and `ctxr db salvage` recovers."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.setup import servers
from benchmarks.setup.figures import table
from benchmarks.setup.homes import write_home

SESSIONS = 8
HEADS = ("bytes changed", "copies", "damaged", "doctor", "doctor --deep", "salvaged", "messages saved")
"""Damaged: the content or structure differs; changes in the unused space of a page do not count."""


@dataclass(frozen=True)
class Copy:
    """Results for one copy."""

    is_damaged: bool
    is_noticed: bool
    is_noticed_deep: bool
    saved: set[str] | None
    """Texts in the salvaged registry; None if it was not written."""


def change_bytes(copies: int) -> str:
    """Return the table: copies of a registry with one byte changed in each, and with twenty."""
    with tempfile.TemporaryDirectory(prefix="ctxr-bytes-") as folder:
        home = Path(folder)
        write_home(home, {"claude-code": SESSIONS})
        _ctxr(home, "sync")
        with closing(sqlite3.connect(home / "registry.db")) as database:
            database.execute("PRAGMA journal_mode = DELETE")  # so that all data is in one file
        whole, texts = (home / "registry.db").read_bytes(), _texts(home / "registry.db")
        rows = [_row(count, [_damage_and_salvage(whole, count) for _ in range(copies)], texts) for count in (1, 20)]
    return table(HEADS, rows)


def _row(count: int, done: Sequence[Copy], texts: set[str]) -> tuple[str, ...]:
    damaged = [copy for copy in done if copy.is_damaged]
    saved = [len(texts & copy.saved) for copy in damaged if copy.saved is not None]
    figures = (len(done), len(damaged), sum(copy.is_noticed for copy in damaged))
    deep = (sum(copy.is_noticed_deep for copy in damaged), len(saved))
    of = f"{sum(saved) / max(1, len(saved)):.1f} of {len(texts)}, at least {min(saved, default=0)}"
    return (str(count), *map(str, (*figures, *deep)), of)


def _damage_and_salvage(whole: bytes, count: int) -> Copy:
    with tempfile.TemporaryDirectory(prefix="ctxr-bytes-") as folder:
        home = Path(folder)
        file, new, content = home / "registry.db", home / "new.db", bytearray(whole)
        file.write_bytes(whole)
        before = _content(file)
        for place in random.sample(range(len(content)), count):
            content[place] ^= random.randint(1, 255)
        file.write_bytes(content)
        is_damaged = _content(file) != before
        is_noticed, is_noticed_deep = (_ctxr(home, "doctor", *more) != 0 for more in ((), ("--deep",)))
        _ctxr(home, "db", "salvage", str(new))
        return Copy(is_damaged, is_noticed, is_noticed_deep, _texts(new) if new.exists() else None)


def _ctxr(home: Path, *words: str) -> int:
    env = servers.environment(home) | {"CTXR_EMBED_MODEL": "off", "HOME": str(home)}
    return subprocess.run([servers.CTXR, *words], env=env, capture_output=True, check=False).returncode


def _content(file: Path) -> list[str]:
    """Return the dump of the database and its integrity check, or SQLite's error."""
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)) as database:
            return [*map(str, database.execute("PRAGMA integrity_check")), *database.iterdump()]
    except (sqlite3.Error, ValueError) as exc:
        return [str(exc)]


def _texts(file: Path) -> set[str]:
    with closing(sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)) as database:
        return {text for (text,) in database.execute("SELECT text FROM conversation")}
