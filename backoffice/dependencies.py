"""Dependencies of the routes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query, Request

from backoffice.machine import Machine
from orchestrator.requests.refusals import Refusal, succeeded
from orchestrator.requests.shapes import QueryShape
from orchestrator.service import Orchestrator
from orchestrator.state import LocalCopy
from registry.access import Access, Level
from registry.registry import Registry

T = TypeVar("T")
SOURCE = "backoffice"  # the source of operations started from the pages
API = "api"  # the source of operations started through the API by callers that name none


@dataclass(frozen=True, slots=True)
class HttpClient:
    """Runs operations for one HTTP client, as far as its token allows."""

    orchestrator: Orchestrator
    name: str | None
    source: str
    access: Access | None

    def running(self) -> list[dict[str, Any]]:
        """Return the unfinished runs of this process; a restricted token sees its own."""
        runs = self.orchestrator.running()
        return [run for run in runs if not self.access or run["token"] == self.access.name]

    async def answer(
        self, given: Mapping[str, Any] | Refusal, execution_id: str | None = None, *, is_recorded: bool = True
    ) -> dict[str, Any]:
        """Run a whole request and return its answer, also if it failed; `is_recorded`: as an execution."""
        return await self.orchestrator.run(given, self.name, execution_id, self.access, "http", is_recorded=is_recorded)

    async def ask(
        self, operation: str, query: Mapping[str, Any], channel: str | None = None, *, is_recorded: bool = True
    ) -> dict[str, Any]:
        request = {"operation": operation, "channel": channel, "query": query, "source": self.source}
        return await self.answer(request, is_recorded=is_recorded)

    async def run(
        self, operation: str, query: Mapping[str, Any], channel: str | None = None, *, is_recorded: bool = True
    ) -> dict[str, Any]:
        """Run an operation and return its answer; raise its failure."""
        return succeeded(await self.ask(operation, query, channel, is_recorded=is_recorded))

    async def view(self, read: Callable[..., T], *arguments: Any, **named: Any) -> T:
        return await self.orchestrator.view(read, *arguments, access=self.access, client=self.name, **named)

    async def change(self, write: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Store pins, saved views, ratings and the like; a read-only token may not."""
        return await self.orchestrator.change(write, *arguments, access=self.access, **named)

    @property
    def registry(self) -> Registry:
        """Return the registry restricted to what the token may see."""
        return self.orchestrator.registry.seen_by(self.access)

    def writable_registry(self) -> Registry:
        """Return the registry for writing; Unauthorized for a read-only token."""
        if self.access:
            self.access.require(Level.WRITE)
        return self.registry


async def _client(request: Request) -> HttpClient:
    name = request.headers.get("user-agent", "")[:200] or None
    source = API if request.url.path.startswith("/bo/") else SOURCE
    return HttpClient(request.app.state.orchestrator, name, source, _access(request))


def _access(request: Request) -> Access | None:
    access: Access | None = request.scope.get("access")
    return access


async def _machine(request: Request) -> Machine:
    """Return the machine; refuse restricted tokens, because its folders belong to no channel."""
    access = _access(request)
    if access:
        access.require_everything()
        access.require(Level.READ if request.method == "GET" else Level.ADMIN)
    machine: Machine = request.app.state.machine
    return machine


@dataclass(frozen=True, slots=True)
class CopiedRegistry:
    """The remote registry of which this one is a copy; `copy` is set while the remote does not answer."""

    url: str
    copy: LocalCopy | None


async def _copied_registry(request: Request) -> CopiedRegistry | None:
    orchestrator: Orchestrator = request.app.state.orchestrator
    return CopiedRegistry(orchestrator.remote_url, await orchestrator.local_copy()) if orchestrator.local_copy else None


async def _refuse_restricted(request: Request) -> None:
    """Refuse a token that is restricted to some channels."""
    access = _access(request)
    if access:
        access.require_everything()


async def _refuse_parameters(_given: Annotated[QueryShape, Query()]) -> None:
    """Refuse any query parameter."""


CurrentClient = Annotated[HttpClient, Depends(_client)]
Local = Annotated[Machine, Depends(_machine)]
CopyOf = Annotated[CopiedRegistry | None, Depends(_copied_registry)]
without_parameters = Depends(_refuse_parameters)
for_everything = Depends(_refuse_restricted)
