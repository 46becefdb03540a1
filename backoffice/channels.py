"""/bo/channels: the channels of the registry, their names and tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query

from backoffice.dependencies import SOURCE, Asking, without_parameters
from backoffice.queries import ChannelsQuery, DeletionQuery
from backoffice.schemas import CHANNEL, ChannelItem, DeletedChannel, ItemPage, ShownChannel
from orchestrator.operations.tag import TagQuery
from orchestrator.requests.field_types import ChannelName
from orchestrator.views import conversations as views

router = APIRouter(prefix="/bo/channels", tags=["channels"])

# Free-form names may contain slashes.
Name = Annotated[ChannelName, Path(description="the channel's name", examples=[CHANNEL])]
NAMING = {
    "a nickname and tags": {"value": {"nickname": "fib", "tags": ["python", "recursion"]}},
    "no title any more": {"value": {"title": None}},
}


@router.get("", response_model=ItemPage[ChannelItem])
async def show_channels(client: Asking, query: Annotated[ChannelsQuery, Query()]) -> dict[str, Any]:
    """Channels by last activity; with words, those that speak of it or are called so."""
    if query.q is None:
        return await client.view(views.list_channels, query.filters, query.page)
    found = await client.run({"operation": "list", "query": query.as_query(), "source": SOURCE})
    return page_of_channels(found)


def page_of_channels(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the orchestrator's list in the shape of every list."""
    place = found["pagination"]
    return {"items": found["sessions"], "total": place["total"], "next_cursor": place["next_cursor"]}


@router.get(
    "/{channel:path}",
    response_model=ShownChannel,
    response_model_exclude_unset=True,
    dependencies=[without_parameters],
)
async def show_channel(client: Asking, channel: Name) -> dict[str, Any]:
    """Return one channel."""
    return await client.view(views.show_channel, channel)


@router.patch("/{channel:path}", response_model=ChannelItem, dependencies=[without_parameters])
async def name_channel(
    client: Asking, channel: Name, names: Annotated[TagQuery, Body(openapi_examples=NAMING)]
) -> dict[str, Any]:
    """Set title, nickname or tags; what is not given stays, `null` clears."""
    given = names.model_dump(exclude_unset=True)
    if given.get("tags", ...) is None:
        given["tags"] = []
    answer = await client.run({"operation": "tag", "channel": channel, "query": given, "source": SOURCE})
    named: dict[str, Any] = answer["channel"]
    return named


@router.delete("/{channel:path}", response_model=DeletedChannel)
async def delete_channel(client: Asking, channel: Name, query: Annotated[DeletionQuery, Query()]) -> dict[str, Any]:
    """Delete a channel with all its messages; softly, the messages can be restored one by one."""
    answer = await client.run(
        {"operation": "delete", "channel": channel, "query": {"soft": query.soft}, "source": SOURCE}
    )
    deleted: dict[str, Any] = answer["channel"]
    return deleted
