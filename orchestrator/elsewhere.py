"""Where sessions are looked for by a client's name, and where there are some when a folder holds none."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, TypeVar

from orchestrator.queries import ListQuery, SessionsQuery
from orchestrator.recording.recorder import Recorder
from orchestrator.requests import ListRequest, Request, SearchRequest, SessionsRequest
from orchestrator.state import Run
from registry.domain import Project, format_time, parse_time
from registry.errors import InvalidRequest
from registry.search.scope import Scope
from registry.search.sessions import nearest_times
from registry.storage.conversations.facets import known_names, sources, tags_like
from registry.storage.database import ReadTransaction
from registry.text.request.understanding import project_called, source_called
from sources.clients import CLIENTS

Asked = TypeVar("Asked", bound=Request)
Answer = Callable[[Run, Request], Awaitable[dict[str, Any]]]
"""Carries out an operation that only reads, once more."""
TAGS = 20
NEAR = 3
"""How many folders that are called nearly so are named."""


def with_known_names(tx: ReadTransaction, request: Asked) -> Asked:
    """The request with its source and its project as they are written here; InvalidRequest names the sources there are.

    A folder's path is a project as it stands.
    """
    query = request.query if isinstance(request, ListRequest | SearchRequest | SessionsRequest) else None
    if query is None:
        return request
    named: dict[str, str] = {}
    if query.source is not None:
        named["source"] = _known_source(tx, query.source)
    if query.project is not None and not _IS_PATH.search(query.project):
        named["project"] = project_called(query.project, known_names(tx).projects)
    return request.model_copy(update={"query": query.model_copy(update=named)}) if named else request


_IS_PATH = re.compile(r"[/\\]")


def _known_source(tx: ReadTransaction, given: str) -> str:
    here = sources(tx)
    if given in here:
        return given
    written = {name.casefold(): name for name in [*(client.source for client in CLIENTS), *here]}
    if called := source_called(given, here):
        return called
    if given.casefold() in written:
        return written[given.casefold()]
    allowed = ", ".join(here or written.values())
    raise InvalidRequest("No such source.", f"source: given {given!r}; allowed: {allowed}")


async def elsewhere(run: Run, request: Request, result: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
    """Where there are such sessions, as nothing was found: in other folders, at other times. Empty if nowhere.

    Where there are guesses: in which other folders it is none.
    """
    query = request.query if isinstance(request, ListRequest | SessionsRequest) else None
    if query is None:
        return {}
    if "guess" in result:
        return await _in_other_folders(run, request, query, answer, but_guesses=True)
    read = result.get("understood", {})
    nearest = await run.registry.read(lambda tx: {**_nearest(tx, query, read), **_known_tags(tx, query, read)})
    return {**nearest, **await _in_other_folders(run, request, query, answer)}


def _nearest(tx: ReadTransaction, query: ListQuery | SessionsQuery, read: Mapping[str, Any]) -> dict[str, Any]:
    """When something was said just before and just after the time that was named."""
    given = (query.since, query.until) if isinstance(query, ListQuery) else (query.from_, query.to)
    from_, to = (parse_time(read[name]) if name in read else at for name, at in zip(("from", "to"), given, strict=True))
    place = Scope(sources=[query.source] if query.source else read.get("sources", ()), project=query.project)
    times = nearest_times(tx, replace(place, from_=from_, to=to)) if from_ or to else []
    return {"nearest": [format_time(moment) for moment in times]} if times else {}


def _known_tags(tx: ReadTransaction, query: ListQuery | SessionsQuery, read: Mapping[str, Any]) -> dict[str, Any]:
    """The tags there are, where one was named that no session carries."""
    wanted = {query.tag, *read.get("tags", ())} - {None}
    known = tags_like(tx, "", TAGS) if wanted else []
    return {"tags": known} if known and not wanted & set(known) else {}


async def _in_other_folders(
    run: Run, request: Request, query: ListQuery | SessionsQuery, answer: Answer, *, but_guesses: bool = False
) -> dict[str, Any]:
    """How many there are in all, in a folder of the same name, and which folders are called nearly so."""
    if query.project is None:
        return {}
    recorder = Recorder(request.operation.value, request.source, None, None)
    aside = replace(run, recorder=recorder)

    async def sessions(project: str | None) -> tuple[int, str | None]:
        wider = query.model_copy(update={"project": project, "limit": 1, "offset": 0})
        with recorder.step("elsewhere"):
            found = await answer(aside, request.model_copy(update={"query": wider}))
        total = 0 if but_guesses and "guess" in found else found["pagination"]["total"]
        return total, found["sessions"][0].get("project_path") if found["sessions"] else None

    total, _ = await sessions(None)
    wanted = Project.from_path(query.project).name
    named, path = await sessions(wanted) if total else (0, None)
    same_name = {"same_name": {"path": path, "count": named}} if named else {}
    near = [] if named else await run.registry.read(lambda tx: _called_nearly(tx, wanted))
    return {"all": total, **same_name, **({"projects": near} if near else {})} if total else {}


def _called_nearly(tx: ReadTransaction, wanted: str) -> list[str]:
    names = sorted({name for name, _ in known_names(tx).projects})
    written = {name.casefold(): name for name in names}
    return [written[name] for name in get_close_matches(wanted.casefold(), written, NEAR)]
