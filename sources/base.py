"""The interface of readers: one for each client that keeps its conversations here, listed in `sources.readers`."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from registry.domain import Session


@dataclass(frozen=True, slots=True)
class Places:
    """The user's home folder and environment, in which clients may keep their histories."""

    home: Path
    environment: Mapping[str, str]

    def folder(self, variable: str, *usual: str) -> Path:
        """Return the folder that a variable names, else the usual one below the home folder."""
        return next(iter(self.named(variable)), self.home.joinpath(*usual))

    def named(self, variable: str) -> list[Path]:
        """Return the folder that a variable names, as a list; an empty list if it is not set."""
        value = self.environment.get(variable)
        return [Path(value).expanduser()] if value else []


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a store that was passed over, and why.

    `session`: the key of the session it is in, noted by the sync; "" if every pass over the store meets it again.
    """

    what: str
    why: str
    session: str = field(default="", compare=False)


def is_drift(why: str) -> bool:
    """Return True if the reader does not know what it passed over: the client's format has changed."""
    return "unknown" in why


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A session that is new or has changed. `fingerprint`: compared cheaply to notice the next change."""

    key: str
    fingerprint: str
    session: Session
    skipped: tuple[Skipped, ...] = ()


class Source(ABC):
    """A reader of one client's histories. `name`: the client's source."""

    name: str

    @abstractmethod
    def find(self, places: Places) -> Iterator[Path]:
        """Yield the stores on this machine. A store that is missing was not deleted by the user."""

    def stamp(self, store: Path) -> str:
        """Return a text that changes with the store, at almost no cost; "" if `sessions` can tell at as little."""
        return ""

    @abstractmethod
    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """Yield the sessions whose fingerprint is not the one in `seen` (by key).

        Strictly read-only, streaming, bounded in memory; damage is a Skipped, never an end. Raises StorageError if the
        store as a whole cannot be read.
        """

    def count(self, store: Path) -> int:
        """Return about how many sessions a store holds, for a progress bar; 0 if it takes long to count them.

        Raises StorageError or OSError.
        """
        return 0

    def watched(self, store: Path) -> Iterable[Path]:
        """Return the folders in or below which something changes with a conversation; they need not exist."""
        return [store if store.is_dir() else store.parent]

    def kept(self) -> Iterable[str]:
        """Return the patterns of files that hold conversations, below a store, for a backup."""
        return ()
