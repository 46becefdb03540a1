"""Where sessions are looked for by a client's name, and where there are some when a folder holds none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from orchestrator.recording.recorder import Recorder
from orchestrator.requests import ListRequest, Request, SearchRequest, SessionsRequest
from orchestrator.state import Run
from registry.domain import Project
from registry.errors import InvalidRequest
from registry.storage.database import ReadTransaction
from registry.storage.facets import sources
from sources.clients import CLIENTS

Asked = TypeVar("Asked", bound=Request)
Answer = Callable[[Run, Request], Awaitable[dict[str, Any]]]
"""Carries out an operation that only reads, once more."""


def with_known_source(tx: ReadTransaction, request: Asked) -> Asked:
    """The request with the source as it is written here, capitals or not; InvalidRequest names those there are."""
    query = request.query if isinstance(request, ListRequest | SearchRequest | SessionsRequest) else None
    if query is None or query.source is None:
        return request
    source = _known_source(tx, query.source)
    return request.model_copy(update={"query": query.model_copy(update={"source": source})})


def _known_source(tx: ReadTransaction, given: str) -> str:
    here = sources(tx)
    if given in here:
        return given
    written = {name.casefold(): name for name in [*(client.source for client in CLIENTS), *here]}
    if given.casefold() in written:
        return written[given.casefold()]
    allowed = ", ".join(here or written.values())
    raise InvalidRequest("No such source.", f"source: given {given!r}; allowed: {allowed}")


async def elsewhere(run: Run, request: Request, answer: Answer) -> dict[str, Any]:
    """How many of the sessions wanted there are in all, and in a folder of the same name; empty where none are."""
    query = request.query if isinstance(request, ListRequest | SessionsRequest) else None
    if query is None or query.project is None:
        return {}
    recorder = Recorder(request.operation.value, request.source, None, None)
    aside = replace(run, recorder=recorder)

    async def sessions(project: str | None) -> tuple[int, str | None]:
        wider = query.model_copy(update={"project": project, "limit": 1, "offset": 0})
        with recorder.step("elsewhere"):
            found = await answer(aside, request.model_copy(update={"query": wider}))
        total = found["pagination"]["total"]
        return total, found["sessions"][0].get("project_path") if found["sessions"] else None

    total, _ = await sessions(None)
    named, path = await sessions(Project.from_path(query.project).name) if total else (0, None)
    same_name = {"same_name": {"path": path, "count": named}} if named else {}
    return {"all": total, **same_name} if total else {}
