"""The interface of the readers, one for each client that keeps conversations on this machine (`sources.readers`)."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from registry.domain import Session


@dataclass(frozen=True, slots=True)
class Paths:
    """The user's home folder and environment variables, by which readers find the clients' folders."""

    home: Path
    environment: Mapping[str, str]

    def folder(self, variable: str, *usual: str) -> Path:
        """Return the folder named by an environment variable, else the usual one below the home folder."""
        return next(iter(self.named(variable)), self.home.joinpath(*usual))

    def named(self, variable: str) -> list[Path]:
        """Return a list with the folder named by an environment variable; an empty list if it is not set."""
        value = self.environment.get(variable)
        return [Path(value).expanduser()] if value else []


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part of a store that a reader skipped, and the reason.

    `session`: the key of its session, set by the sync; "" for a part of the store that every sync skips again.
    """

    what: str
    why: str
    session: str = field(default="", compare=False)


EMPTY = "no conversation in it"  # the reason of a skipped session that was only opened


def is_drift(why: str) -> bool:
    """Return True if a reader skipped an unknown part, because the client's format has changed."""
    return "unknown" in why


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A session that is new or has changed. `fingerprint`: changes with the session, and is cheap to compute."""

    key: str
    fingerprint: str
    session: Session
    skipped: tuple[Skipped, ...] = ()


class Source(ABC):
    """A reader of one client's histories. `name`: the client's source."""

    name: str

    @abstractmethod
    def find(self, paths: Paths) -> Iterator[Path]:
        """Yield the stores on this machine. A missing store does not mean that the user deleted it."""

    def stamp(self, store: Path) -> str:
        """Return a text that changes with the store, at almost no cost; "" if `sessions` costs as little."""
        return ""

    @abstractmethod
    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """Yield the sessions whose fingerprint differs from the one in `seen` (by key).

        Strictly read-only, streaming, bounded in memory. A damaged part is yielded as Skipped, and reading continues.
        Raises StorageError if the store as a whole cannot be read.
        """

    def count(self, store: Path) -> int:
        """Estimate the number of sessions in a store, for a progress bar; 0 if counting takes long.

        Raises StorageError or OSError.
        """
        return 0

    def watched(self, store: Path) -> Iterable[Path]:
        """Return the folders to watch for changes, including those below them; they need not exist."""
        return [store if store.is_dir() else store.parent]

    def backup_patterns(self) -> Iterable[str]:
        """Return the patterns of the files below a store that a backup of its conversations needs."""
        return ()
