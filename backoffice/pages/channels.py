"""/: the channels of the registry, narrowed down and searched while one types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, ValidationError

from backoffice.channels import asked_for, channel_filter
from backoffice.dependencies import Stored
from backoffice.pages.rendering import address, render
from backoffice.pages.snippets import Part, snippet
from backoffice.pages.zone import as_instant, as_local, local_now
from backoffice.queries import ChannelsQuery
from orchestrator.requests import invalid_request
from registry.search.retrieval import Findings
from registry.storage.channels import list_channels, numbers_of
from registry.storage.database import ReadTransaction
from registry.storage.facets import projects_like, sources, tags_like
from registry.storage.messages import by_numbers

router = APIRouter(default_response_class=HTMLResponse)

ROWS = 50
SUGGESTIONS = {"project": projects_like, "tag": tags_like}
SUGGESTED = 20
PERIOD = ("from", "to")
FILTERS = ("source", "project", "tag", "from", "to", "q")
SHOWN_SOURCES = 50

Model = TypeVar("Model", bound=BaseModel)


def given_query(request: Request, shape: type[Model], **defaults: Any) -> Model:
    """The address's parameters in that shape; a form sends what is not filled in as empty, which means not given."""
    given = {name: value for name, value in request.query_params.items() if value}
    given |= {name: as_instant(request, name, given[name]) for name in PERIOD if name in given}
    try:
        return shape.model_validate({**defaults, **given})
    except ValidationError as exc:
        raise invalid_request(exc.errors(include_url=False)) from exc


@router.get("/")
async def channels_page(request: Request, registry: Stored) -> HTMLResponse:
    """The channels by last activity; with words, those that are called so or speak of it."""
    query = given_query(request, ChannelsQuery, limit=ROWS)

    def work(tx: ReadTransaction) -> dict[str, Any]:
        asked = asked_for(tx, query, local_now(request))
        found = list_channels(tx, channel_filter(query, asked), query.page)
        return {
            "found": found,
            "hits": _hits(tx, asked.findings, found["items"]),
            "sources": sources(tx)[:SHOWN_SOURCES],
        }

    given = {name: request.query_params.get(name, "") for name in FILTERS}
    shown = await registry.read(work)
    cursor = shown["found"]["next_cursor"]
    return render(
        request,
        "channels.html",
        section="registry",
        given=given,
        limits={name: as_local(request, as_instant(request, name, given[name])) for name in PERIOD},
        more=address("/", **given, cursor=cursor) if cursor else None,
        **shown,
    )


def _hits(
    tx: ReadTransaction, findings: Findings | None, items: Sequence[dict[str, Any]]
) -> dict[str, tuple[str, list[Part]]]:
    """For each of these channels its best message: the id, and the words of it that were searched for."""
    if findings is None:
        return {}
    wanted = set(numbers_of(tx, [item["channel"] for item in items]).values())
    best: dict[int, int] = {}
    for ranked in findings.ranked:
        if ranked.candidate.channel_id in wanted:
            best.setdefault(ranked.candidate.channel_id, ranked.candidate.number)
    words = [word.text for word in findings.query.words]
    return {row.channel: (row.id, snippet(row.text, words)) for row in by_numbers(tx, list(best.values()))}


@router.get("/suggestions/{kind}")
async def suggestions(
    request: Request, registry: Stored, kind: Literal["project", "tag"], words: Annotated[str, Query()] = ""
) -> HTMLResponse:
    """Projects or tags there are that contain the words, to choose from while typing."""
    find = SUGGESTIONS[kind]
    found = await registry.read(lambda tx: find(tx, words, SUGGESTED))
    return render(request, "suggestions.html", found=found)
