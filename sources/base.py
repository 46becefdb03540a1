"""What a reader is. Every client that keeps its conversations on this machine has one, listed in `sources.readers`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from registry.domain import Session


@dataclass(frozen=True, slots=True)
class Places:
    """Where clients may keep their histories: the user's home folder and the environment."""

    home: Path
    environment: Mapping[str, str]

    def folder(self, variables: str | Sequence[str], *usual: str) -> Path:
        """The folder that the first variable which is set names, else the usual one below the home folder."""
        names = [variables] if isinstance(variables, str) else variables
        named = next(filter(None, map(self.environment.get, names)), None)
        return Path(named).expanduser() if named else self.home.joinpath(*usual)


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a store that is not a session or could not be read, and why.

    `session`: the key of the session it is in, noted by the sync; "" for what every look at the store meets again.
    """

    what: str
    why: str
    session: str = field(default="", compare=False)


def is_drift(why: str) -> bool:
    """Whether something was passed over because the reader does not know it: the client's format has moved on."""
    return "unknown" in why


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A session that is new or has changed. `fingerprint` tells cheaply whether it changes again."""

    key: str
    fingerprint: str
    session: Session
    skipped: tuple[Skipped, ...] = ()
    ready: object = None
    """What a process that reads ahead has done for the registry beside reading."""


class Source(Protocol):
    """A reader of one client's histories."""

    name: str

    def find(self, places: Places) -> Iterator[Path]:
        """The stores on this machine. A store that is not seen is never one that the user deleted."""

    def stamp(self, store: Path) -> str:
        """What changes whenever the store may have changed, at almost no cost; "" where only `sessions` can tell."""

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """The sessions of a store whose fingerprint is not the one in `seen` (by key).

        Strictly read-only, streaming, bounded in memory; damage is a Skipped, never an end. Raises StorageError
        when the store as a whole cannot be read.
        """


@runtime_checkable
class Counts(Protocol):
    """A reader that can say cheaply how much there is, for a progress bar."""

    def count(self, store: Path) -> int:
        """About how many sessions a store holds. Raises StorageError or OSError."""


@runtime_checkable
class Watched(Protocol):
    """A reader whose stores' folders hold more than conversations; of the others the whole store is watched."""

    def watched(self, store: Path) -> Iterable[Path]:
        """The folders in or below which something changes when a conversation does; they need not exist."""
