"""What travels through the graph, what every node may use, and what an operation tells the nodes to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypedDict, TypeVar

from orchestrator.outside.writing import ModelWriter
from orchestrator.recording.recorder import Recorder
from orchestrator.requests.shapes import Request
from registry.errors import NotFound
from registry.registry import Registry
from registry.storage.database import ReadTransaction, WriteTransaction
from sources.base import Places, Source
from sources.client import Room

if TYPE_CHECKING:
    from orchestrator.semantic.meaning import Meaning, Meant


OUTSIDE_ATTEMPTS = 3
"""A system outside that is away for a moment is tried so many times in one run."""


class Syncing(TypedDict):
    """How many of this machine's stores were read, and how many are still to be read for the first time."""

    done: int
    left: int


class LocalCopy(TypedDict):
    """An answer is out of this machine's copy: of which registry, and when that was last heard of."""

    of: str
    as_of: str | None


class Tried(NamedTuple):
    """The outcome of one attempt at a request: what was read, and the answer (empty if none) or why there is none."""

    data: Any
    result: dict[str, Any]
    error: NotFound | None


class GeneralState(TypedDict, total=False):
    """The fields that nodes read and write; edges are decided by them."""

    operation: str
    source: str
    channel: str | None
    query: Request
    data: Any
    """What `cr_query` read; its type is the operation's own."""
    result: dict[str, Any]
    """What is answered: kept by `filter`, or made by `cr_write`."""
    transformed_data: str
    """The text that `transform` made for others to read."""
    syncing: Syncing
    """Not everything is there yet: the first import is still running."""
    error: NotFound | None
    """Nothing was found."""
    attempt: str
    """The relaxation that `relax` chose; not set while the request is asked as it came."""
    earlier: Tried
    """What came of the request before it was relaxed."""


class Answered(TypedDict, total=False):
    """The part of the state that leaves the graph."""

    result: dict[str, Any]
    error: NotFound | None
    syncing: Syncing


@dataclass(frozen=True, slots=True)
class Shelf:
    """The folder of backups, the stores that go into them, and drafts for clients that import files."""

    folder: Path
    readers: Sequence[Source] = ()
    places: Places | None = None
    drafts: Path | None = None
    """Where files lie that a client takes in."""


class PartDone(NamedTuple):
    """How far one node is with work that takes long."""

    done: int
    of: int
    what: str

    @property
    def share(self) -> float:
        """Less than 1: the node itself is not done."""
        return self.done / (self.of + 1)

    @property
    def words(self) -> str:
        """For a person: "tables, 3 of 17"."""
        return f"{self.what}, {self.done} of {self.of}"


def _nobody(_: PartDone) -> None:
    """Ignore progress."""


class ExternalAction(Protocol):
    """Something done outside the registry with what an operation produced, such as publishing a briefing."""

    name: str

    async def perform(self, about: Mapping[str, str]) -> str:
        """Do it with {id, date, text}; returns what came of it. After a ConnectionError it is called again."""

    async def was_done(self, about: Mapping[str, str]) -> bool | None:
        """Return whether the outside has it already; None where nobody can tell."""


@dataclass(frozen=True, slots=True)
class Run:
    """The tools of one run, handed to every node beside the state."""

    registry: Registry
    recorder: Recorder
    search_budget: int = 0
    room: Room | None = None
    """How much of an answer reaches the model behind the client; None: all of it, as for pages and commands."""
    actions: Sequence[ExternalAction] = ()
    before_reading: Callable[[bool], Awaitable[Syncing | None]] | None = None
    """What brings the registry up to date before it is asked."""
    meaning: Meaning | None = None
    writer: ModelWriter | None = None
    """A language model, where one is configured."""
    shelf: Shelf | None = None
    """Where backups stand; None where this program keeps none."""
    tell: Callable[[PartDone], None] = _nobody
    """Tells how far a node is; from any thread."""
    meant: Meant | None = None
    """What the request means to the model of `meaning`, asked before the registry is read."""
    attempt: str = ""
    """The relaxation under which the registry is read; "": the request as it was asked."""
    is_kept: bool = True
    """Whether what is delivered is noted, and this run; not where the registry takes nothing more."""


Asked = TypeVar("Asked", bound=Request)
Read = TypeVar("Read")


@dataclass(frozen=True)
class Steps(Generic[Asked, Read]):
    """An operation's work at each node; nodes without work are skipped."""

    query: Callable[[ReadTransaction, Run, Asked], Read] | None = None
    """`cr_query`: what is read from the registry, in one read transaction."""
    keep: Callable[[Run, Asked, Read], Awaitable[dict[str, Any]]] | None = None
    """`filter`: what of it answers the request."""
    relax: Callable[[Read], str] | None = None
    """`relax`: the relaxation to try after what was read; "" where the answer stands."""
    better: Callable[[Run, Asked, Tried, Tried], Tried] | None = None
    """`filter`: which of two attempts is answered, the request as it was asked or the relaxed one."""
    shorten: Callable[[Run, Asked, GeneralState], Awaitable[GeneralState]] | None = None
    """`transform`: a shorter form; where `filter` has kept something, only if one is asked for."""
    write: Callable[[WriteTransaction, Run, Asked, GeneralState], dict[str, Any]] | None = None
    """`cr_write`: what is stored, in one write transaction."""
    afterwards: Callable[[Run, Asked], Awaitable[None]] | None = None
    """What `cr_write` does when that transaction stands."""
    publish: Callable[[Run, Asked, GeneralState], Awaitable[GeneralState]] | None = None
    """`external_action`: the text that was made is handed to the outside systems that are configured."""
    subject: Callable[[Asked], str] | None = None
    """The words of a request that may be close to something in meaning, where a model is asked."""
