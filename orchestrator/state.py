"""Define the state of the graph, the context of its nodes, and the record of an operation with its work at each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypedDict, TypeVar

from orchestrator.recording.recorder import Recorder
from orchestrator.requests.shapes import Request
from orchestrator.tool import Tool
from registry.access import Access, Level
from registry.errors import InvalidRequest, NotFound
from registry.registry import Registry
from registry.storage.database import ReadTransaction, WriteTransaction
from sources.base import Places, Source
from sources.client import Room

if TYPE_CHECKING:
    from orchestrator.outside.language_model import LanguageModel
    from orchestrator.semantic.meaning import Meaning, QueryVector

OUTSIDE_ATTEMPTS = 3
"""Attempts at an outside system in one run: enough for one that restarts. The graph makes its retry policy of it, so
that operations load without LangGraph."""


class Syncing(TypedDict):
    """Progress of the first import: stores read, and stores still to be read."""

    done: int
    left: int


class LocalCopy(TypedDict):
    """The note of an answer from this machine's copy: of which registry, and of which time."""

    of: str
    as_of: str | None


class AttemptOutcome(NamedTuple):
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
    data: Any  # read by `cr_query`; its type depends on the operation
    result: dict[str, Any]  # the answer: kept by `filter`, or made by `cr_write`
    transformed_data: str  # the text for others that `transform` wrote
    syncing: Syncing  # set while the first import runs
    error: NotFound | None  # set if nothing was found
    attempt: str  # the relaxation chosen by `relax`; not set for the original request
    earlier: AttemptOutcome  # the outcome before the relaxation


class GraphOutput(TypedDict, total=False):
    """The part of the state that leaves the graph."""

    result: dict[str, Any]
    error: NotFound | None
    syncing: Syncing


@dataclass(frozen=True, slots=True)
class Shelf:
    """The folder of backups, the clients' stores on this machine, and drafts for clients that import files."""

    folder: Path
    readers: Sequence[Source]
    places: Places
    drafts: Path  # the folder of files that a client imports


class PartDone(NamedTuple):
    """Progress of one node."""

    done: int
    of: int
    what: str

    @property
    def share(self) -> float:
        return self.done / (self.of + 1)

    @property
    def words(self) -> str:
        return f"{self.what}, {self.done} of {self.of}"


class ExternalAction(Protocol):
    """Something done outside the registry with what an operation produced, such as publishing a briefing."""

    name: str

    async def perform(self, about: Mapping[str, str]) -> str:
        """Deliver {id, date, text}, and return the outcome. It is called again after a ConnectionError."""

    async def was_done(self, about: Mapping[str, str]) -> bool | None:
        """Return whether the outside has it already; None where nobody can tell."""


@dataclass(frozen=True, slots=True)
class Run:
    """The tools of one run, handed to every node beside the state."""

    registry: Registry
    recorder: Recorder
    room: Room | None = None  # the size limits of the asking client; None: no limits, as for pages and commands
    actions: Sequence[ExternalAction] = ()
    before_reading: Callable[[bool], Awaitable[Syncing | None]] | None = None
    """Brings the registry up to date before it is read; given True, with what was written this moment."""
    meaning: Meaning | None = None
    writer: LanguageModel | None = None  # the configured language model
    shelf: Shelf | None = None  # the files of this machine; None if this program has none
    report_progress: Callable[[PartDone], None] = lambda _: None  # reports progress, from any thread
    query_vector: QueryVector | None = None  # the request's vector, asked for before the registry is read
    attempt: str = ""  # the relaxation to read with; "": none
    is_recorded: bool = True  # record the run and its deliveries; False if the registry takes nothing


def shelf_of(run: Run) -> Shelf:
    """Return the files of this machine. Raises InvalidRequest."""
    if run.shelf is None:
        raise InvalidRequest("This program has no files of its own.", "run the `ctxr` command on the machine itself")
    return run.shelf


RequestT = TypeVar("RequestT", bound=Request)
DataT = TypeVar("DataT")


@dataclass(frozen=True)
class Steps(Generic[RequestT, DataT]):
    """An operation's work at each node; nodes without work are skipped."""

    query: Callable[[ReadTransaction, Run, RequestT], DataT] | None = None
    """Read from the registry, in one read transaction (`cr_query`)."""
    keep: Callable[[Run, RequestT, DataT], Awaitable[dict[str, Any]]] | None = None
    """Keep what answers the request (`filter`)."""
    relax: Callable[[DataT], str] | None = None
    """Return the relaxation to try; "": none (`relax`)."""
    better: Callable[[Run, RequestT, AttemptOutcome, AttemptOutcome], AttemptOutcome] | None = None
    """Choose between the original and the relaxed attempt (`filter`)."""
    shorten: Callable[[Run, RequestT, GeneralState], Awaitable[GeneralState]] | None = None
    """Write a shorter form (`transform`); after `filter` only if one is asked for."""
    write: Callable[[WriteTransaction, Run, RequestT, GeneralState], dict[str, Any]] | None = None
    """Store, in one write transaction (`cr_write`)."""
    afterwards: Callable[[Run, RequestT], Awaitable[None]] | None = None
    """Run after that transaction."""
    publish: Callable[[Run, RequestT, GeneralState], Awaitable[GeneralState]] | None = None
    """Deliver the text to the configured outside systems (`external_action`)."""
    subject: Callable[[RequestT], str] | None = None
    """Return the words to embed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Operation:
    """An operation with its request, its work at each node, and the tools that run it."""

    request: type[Request]
    level: Level  # the permission a token needs. A request that deletes for good needs `admin`, whatever this says.
    steps: Steps[Any, Any]
    alias: str = ""
    own_level: Level | None = None  # what a person's token needs for what is about the person's own chats alone
    syncs_first: bool = False  # sync the clients' stores before reading
    is_local: bool = False
    """Work on files of this machine, or on the whole registry: not over HTTP, and only for unrestricted tokens."""
    is_internal: bool = False  # not for doors: only this program requests it
    needs_everything: bool = False  # only for tokens without restrictions
    is_log: bool = False  # store what somebody said: an admin, too, adds it to no chat of another person
    names_channel: bool = False  # change the channel of exactly the given name, whether it exists or not
    instead: str = ""  # for refusals: why it is not done over HTTP, and what to run
    tools: Sequence[Tool] = ()
    labels: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Labels of this request's own fields, in English and Korean; `labels.toml` has the shared ones."""

    @property
    def name(self) -> str:
        return self.request.operation

    @property
    def has_query(self) -> bool:
        return "query" in self.request.model_fields

    def check(self, request: Request, access: Access) -> None:
        """Raise Unauthorized if a token does not allow a request."""
        is_own = access.owner is not None and request.limited_to_owner == access.owner
        if self.own_level and is_own and not (access.channels or access.projects):
            access.require(self.own_level)
            return
        access.require(Level.ADMIN if request.is_permanent else self.level, self.instead)
        if request.is_permanent or self.needs_everything or self.is_local:
            access.require_everything()


def no_query(_tx: ReadTransaction, _run: Run, _request: Any) -> None:
    """Read nothing from the registry: the operation works on files."""


async def as_read(_run: Run, _request: Request, data: dict[str, Any]) -> dict[str, Any]:
    return data
