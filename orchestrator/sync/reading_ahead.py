"""Big stores read in a process of their own: on another core than the one that stores, and ahead of it.

Whatever goes wrong there, what it has not brought is read here.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from orchestrator.sync.spool import registry_home
from registry.errors import RegistryError
from registry.storage.file_probe import embedded_file
from sources.base import Counts, FoundSession, Places, Skipped, Source
from sources.readers import READERS

WORTH_SESSIONS = 200
"""So many new sessions take seconds; the process costs a part of one."""

_ROOT = Path(__file__).parents[2]
_PROCESS = "from orchestrator.sync.reader_process import main; main()"


def is_worth_it(reader: Source, store: Path) -> bool:
    """Return whether a store that was never read is so big, and another core is there.

    The other process works elsewhere, so that a folder named from here is another one there.
    """
    if reader not in READERS or not isinstance(reader, Counts) or (os.cpu_count() or 1) < 2 or not store.is_absolute():
        return False
    with suppress(RegistryError, OSError):  # the reading that follows says what is wrong
        return reader.count(store) >= WORTH_SESSIONS
    return False


def stamp_of(reader: Source, store: Path) -> str:
    """Return the reader's stamp of the whole store; "" if it has none."""
    try:
        return reader.stamp(store)
    except (RegistryError, OSError):  # the reading that follows says what is wrong
        return ""


@contextmanager
def begun(readers: Sequence[Source], places: Places) -> Iterator[ReadingAhead | None]:
    """Reading begun where nothing is stored yet, while the rest of the program starts."""
    stores: list[tuple[Source, Path]] = []
    with suppress(Exception):  # looking for stores again says what is wrong
        file = embedded_file(Path(registry_home()), places.environment)
        if file and not file.exists():
            found = [(reader, store) for reader in readers for store in reader.find(places)]
            stores = [(reader, store) for reader, store in found if is_worth_it(reader, store)]
    if not stores:
        yield None
        return
    with ReadingAhead(stores, is_shared=True) as ahead:
        yield ahead


class Chunk(NamedTuple):
    """Some sessions of a store; of what is said about them, and of the texts of those that are not ready, what has no
    secret in it; and of these texts the tokens. Unless `is_looked_at`, all is as it was read."""

    found: list[FoundSession | Skipped]
    clean: list[str]
    tokens: dict[str, str]
    is_looked_at: bool = False


def with_rows(found: FoundSession | Skipped, source: str) -> FoundSession | Skipped:
    """A session as it was read, with its messages as rows if it is kept as it came."""
    from registry.ingest.message_rows import ready

    if isinstance(found, FoundSession):
        with suppress(Exception):  # storing it says what is wrong with it, and goes on with the next
            return replace(found, ready=ready(found.session, source))
    return found


class End(NamedTuple):
    """The end of a store, or where reading it has failed."""

    is_complete: bool


class ReadingAhead:
    """A process that reads some stores, one after the other, while it is entered.

    `is_shared`: this one has nothing else to do than to store, and does a part of what else it would wait for.
    """

    def __init__(self, stores: Sequence[tuple[Source, Path]], *, is_shared: bool = False) -> None:
        self._stamps = {(reader.name, store): stamp_of(reader, store) for reader, store in stores}
        self._stores = list(self._stamps)
        self._is_shared = is_shared
        self._ended = 0
        self._is_greeted = False
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with suppress(OSError):  # where nothing can be started, all is read here
            self._process = subprocess.Popen([sys.executable, "-c", _PROCESS], cwd=_ROOT, **pipes)  # noqa: S603, ours
            assert self._process.stdin  # noqa: S101, it is a pipe
            with self._process.stdin as asked:
                pickle.dump((self._stores, self._is_shared), asked)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout  # noqa: S101, it is a pipe
            self._process.stdout.close()

    def stamp(self, reader: Source, store: Path) -> str | None:
        """Return the store's stamp from before it was read; None if it was not, or is outdated."""
        return self._stamps.get((reader.name, store))

    def sessions(self, reader: Source, store: Path) -> Iterator[FoundSession | Skipped]:
        """The sessions of a store that was never read, as `reader.sessions` gives them; once."""
        from registry.text.analysis.analyzer import note_analyzed
        from registry.text.privacy.masking import note_clean

        place = self._stores.index((reader.name, store))
        for taken in self._stores[: place + 1]:
            self._stamps.pop(taken, None)
        brought: dict[str, str] = {}
        try:
            for chunk in self._chunks(place):
                note_clean(chunk.clean)
                note_analyzed(chunk.tokens)
                brought |= {one.key: one.fingerprint for one in chunk.found if isinstance(one, FoundSession)}
                for one in chunk.found:
                    yield one if chunk.is_looked_at else with_rows(one, reader.name)
        except _Failed:
            yield from reader.sessions(store, brought)

    def _chunks(self, place: int) -> Iterator[Chunk]:
        self._greet()
        while self._ended <= place:
            said = self._next()
            if isinstance(said, Chunk):
                if self._ended == place:
                    yield said
                continue
            self._ended += 1
        if not said.is_complete:
            raise _Failed

    def _greet(self) -> None:
        from registry.text.analysis.analyzer import ANALYZER_VERSION

        if not self._is_greeted and self._next() != ANALYZER_VERSION:
            raise _Failed
        self._is_greeted = True

    def _next(self) -> Any:
        if self._process is None or self._process.stdout is None:
            raise _Failed
        try:
            return pickle.load(self._process.stdout)  # noqa: S301, our own process
        except Exception as exc:  # nothing is said of what comes out of half an answer, or of another version's
            raise _Failed from exc


class _Failed(Exception):
    """The process ended early, or what it said is not understood: it may be of another version by now."""
