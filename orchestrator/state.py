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
from sources.base import Paths, Source
from sources.client import SizeLimit

if TYPE_CHECKING:
    from orchestrator.outside.language_model import LanguageModel
    from orchestrator.semantic.meaning import Meaning, QueryVector

OUTSIDE_ATTEMPTS = 3
"""Attempts at an outside system in one run: enough for a system that restarts. It is defined here, not with the retry
policy in the graph, so that operations load without LangGraph."""


class Syncing(TypedDict):
    """Progress of the first import: stores read, and stores still to be read."""

    done: int
    left: int


class LocalCopy(TypedDict):
    """Note of an answer from the local copy: the address of the remote registry, and the time of the last exchange."""

    of: str
    as_of: str | None


class AttemptOutcome(NamedTuple):
    """Outcome of an attempt at a request: the data read, and the answer, or an empty answer and an error."""

    data: Any
    result: dict[str, Any]
    error: NotFound | None


class GeneralState(TypedDict, total=False):
    """The fields that nodes read and write, and that decide the edges."""

    operation: str
    source: str
    channel: str | None
    query: Request
    data: Any  # read by `cr_query`; its type depends on the operation
    result: dict[str, Any]  # the answer of `filter` or `cr_write`
    transformed_data: str  # the text that `transform` wrote for outside systems
    syncing: Syncing  # set while the first import runs
    error: NotFound | None  # set if nothing was found
    attempt: str  # the relaxation chosen by `relax`; not set for the original request
    earlier: AttemptOutcome  # the outcome before the relaxation


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The files of this machine: backups, the clients' stores, and drafts for clients that import files."""

    folder: Path
    readers: Sequence[Source]
    paths: Paths
    drafts: Path  # folder of session files for a client to import


class ExternalAction(Protocol):
    """An action of an outside system on an operation's output, such as publishing a briefing."""

    name: str

    async def perform(self, about: Mapping[str, str]) -> str:
        """Deliver {id, date, text}, and return the outcome. It is called again after a ConnectionError."""

    async def was_done(self, about: Mapping[str, str]) -> bool | None:
        """Return True if the outside system has it already; None if the system cannot tell."""


@dataclass(frozen=True, slots=True)
class Run:
    """The context of one run, which every node gets with the state."""

    registry: Registry
    recorder: Recorder
    limit: SizeLimit | None = None  # the asking client's; None: no limit, as for pages and commands
    actions: Sequence[ExternalAction] = ()
    before_reading: Callable[[bool], Awaitable[Syncing | None]] | None = None
    """Syncs before the registry is read; with True, waits for what was written just now."""
    meaning: Meaning | None = None
    writer: LanguageModel | None = None  # the configured language model
    local_files: LocalFiles | None = None  # the files of this machine; None if this program has none
    query_vector: QueryVector | None = None  # computed before the registry is read
    attempt: str = ""  # the relaxation to read with; "": none
    is_recorded: bool = True  # store the run and its deliveries


def local_files_of(run: Run) -> LocalFiles:
    """Return the files of this machine. Raises InvalidRequest."""
    if run.local_files is None:
        raise InvalidRequest(
            "This needs the files of the registry's machine.", "run the `ctxr` command on the machine itself"
        )
    return run.local_files


RequestT = TypeVar("RequestT", bound=Request)
DataT = TypeVar("DataT")


@dataclass(frozen=True)
class Steps(Generic[RequestT, DataT]):
    """An operation's work at each node; nodes without work are skipped."""

    query: Callable[[ReadTransaction, Run, RequestT], DataT] | None = None
    """Read from the registry, in one read transaction (`cr_query`)."""
    answer: Callable[[Run, RequestT, DataT], Awaitable[dict[str, Any]]] | None = None
    """Compose the answer from the data read (`filter`)."""
    relax: Callable[[DataT], str] | None = None
    """Return the relaxation to try next; "": none (`relax`)."""
    choose: Callable[[Run, RequestT, AttemptOutcome, AttemptOutcome], AttemptOutcome] | None = None
    """Choose between the original and the relaxed attempt (`filter`)."""
    shorten: Callable[[Run, RequestT, GeneralState], Awaitable[GeneralState]] | None = None
    """Write a shorter form (`transform`); after `filter`, only on request."""
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
    level: Level  # the permission a token needs; requests that delete permanently always need `admin`
    steps: Steps[Any, Any]
    alias: str = ""
    own_level: Level | None = None  # the permission needed if the request is limited to the token owner's chats
    syncs_first: bool = False  # sync the clients' stores before reading
    is_local: bool = False
    """It uses files of this machine or the whole registry: not over HTTP, and only with unrestricted tokens."""
    is_internal: bool = False  # not for doors: only this program requests it
    needs_everything: bool = False  # only for unrestricted tokens
    is_log: bool = False  # it logs messages: even an admin cannot add any to a chat of another person
    names_channel: bool = False  # it changes the channel of exactly the given name, whether it exists or not
    instead: str = ""  # for refusals over HTTP: the reason, and the command to run instead
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
