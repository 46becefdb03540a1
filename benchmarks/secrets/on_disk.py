"""A registry in its own folder, and a search of its files for planted secrets."""

from __future__ import annotations

import itertools
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from zipfile import ZipFile, is_zipfile

from benchmarks.secrets.kinds import Planted, planted
from benchmarks.setup import servers


class Registry:
    """A registry in a new folder, with a user's home."""

    def __init__(self, folder: Path) -> None:
        self.home, self.user, self.out = folder / "registry", folder / "user", folder / "out"
        self.out.mkdir()
        self.user.mkdir()
        inherited = {name: value for name, value in servers.environment(self.home).items() if "PROXY" not in name}
        own = {"HOME": str(self.user), "CTXR_EMBED_MODEL": "off", "CLAUDE_CONFIG_DIR": str(self.user / ".claude")}
        self.env = inherited | own
        self.planted: list[Planted] = []

    def plant(self, way: str, kind: str, places: Sequence[str]) -> dict[str, Planted]:
        """Make secrets of a kind, and remember them for `left`."""
        made = planted(way, kind, places)
        self.planted += made.values()
        return made

    def run(self, *words: str, given: str = "") -> str:
        """Run a command of the program and return its output."""
        done = subprocess.run(
            [servers.CTXR, *words], env=self.env, cwd=self.user, input=given, text=True, capture_output=True, check=True
        )
        return done.stdout

    def left(self) -> list[tuple[Planted, str]]:
        """Return the planted secrets that are in a file, with the file's name."""
        found: dict[Planted, str] = {}
        for name, content in self._files():
            lowered = content.lower()
            for each in self.planted:
                if each not in found and any(trace in lowered for trace in each.traces):
                    found[each] = name
        return list(found.items())

    def _files(self) -> Iterator[tuple[str, bytes]]:
        for path in sorted(itertools.chain(self.home.rglob("*"), self.out.rglob("*"))):
            if path.is_file():
                yield path.name, path.read_bytes()
                yield from _within(path)


def _within(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the contents of an archive or a database, where compression or page boundaries hide texts."""
    if is_zipfile(path):
        with ZipFile(path) as archive:
            yield from ((f"{path.name}: {name}", archive.read(name)) for name in archive.namelist())
    elif path.suffix == ".db":
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for name in names:
                rows = database.execute(f'SELECT * FROM "{name}"')  # noqa: S608, a table's name
                yield f"{path.name}: {name}", "\n".join(map(str, itertools.chain.from_iterable(rows))).encode()
