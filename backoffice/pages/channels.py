"""/: the channels of the registry, narrowed down and searched while one types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, ValidationError

from backoffice.channels import page_of_channels
from backoffice.dependencies import SOURCE, Asking, Stored
from backoffice.pages.rendering import address, render
from backoffice.pages.snippets import Part, snippet
from backoffice.pages.zone import as_instant, as_local, utc_offset_minutes
from backoffice.queries import ChannelsQuery
from orchestrator.requests import invalid_request
from registry.storage.channels import list_channels
from registry.storage.database import ReadTransaction
from registry.storage.facets import projects_like, sources, tags_like

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
async def channels_page(request: Request, registry: Stored, client: Asking) -> HTMLResponse:
    """The channels by last activity; with words, those that are called so or speak of it."""
    query = given_query(request, ChannelsQuery, limit=ROWS)

    def work(tx: ReadTransaction) -> dict[str, Any]:
        found = {} if query.q else list_channels(tx, query.wanted, query.page)
        return {"found": found, "sources": sources(tx)[:SHOWN_SOURCES]}

    shown = await registry.read(work)
    hits = {}
    if query.q:
        asked = query.as_query(utc_offset_minutes(request))
        answer = await client.run({"operation": "list", "query": asked, "source": SOURCE})
        shown["found"], hits = page_of_channels(answer), _hits(answer)
    given = {name: request.query_params.get(name, "") for name in FILTERS}
    cursor = shown["found"]["next_cursor"]
    return render(
        request,
        "channels.html",
        section="registry",
        given=given,
        limits={name: as_local(request, as_instant(request, name, given[name])) for name in PERIOD},
        more=address("/", **given, cursor=cursor) if cursor else None,
        hits=hits,
        **shown,
    )


def _hits(answer: Mapping[str, Any]) -> dict[str, tuple[str, list[Part]]]:
    """For each channel its best message: the id, and the words of it that were searched for."""
    words = answer.get("understood", {}).get("words", [])
    hits = answer.get("hits", {})
    return {channel: (message["id"], snippet(message["text"], words)) for channel, message in hits.items()}


@router.get("/suggestions/{kind}")
async def suggestions(
    request: Request, registry: Stored, kind: Literal["project", "tag"], words: Annotated[str, Query()] = ""
) -> HTMLResponse:
    """Projects or tags there are that contain the words, to choose from while typing."""
    find = SUGGESTIONS[kind]
    found = await registry.read(lambda tx: find(tx, words, SUGGESTED))
    return render(request, "suggestions.html", found=found)
