"""/bo/channels: the channels of the registry, their names and tags."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query

from backoffice.dependencies import CurrentClient, HttpClient, without_parameters
from backoffice.queries import ChannelsQuery, DeletionQuery
from backoffice.schemas import CHANNEL, ChannelItem, DeletedChannel, FoundChannel, ItemPage, ShownChannel
from orchestrator.operations.tag import TagQuery
from orchestrator.requests.field_types import ChannelName
from orchestrator.requests.shapes import MAX_MATCHES
from orchestrator.views import conversations as views

router = APIRouter(prefix="/bo/channels", tags=["channels"])

# Free-form names may contain slashes.
Name = Annotated[ChannelName, Path(description="the channel's name", examples=[CHANNEL])]
NAMING = {
    "a nickname and tags": {"value": {"nickname": "fib", "tags": ["python", "recursion"]}},
    "remove the title": {"value": {"title": None}},
}


@router.get("", response_model=ItemPage[FoundChannel], response_model_exclude_unset=True)
async def show_channels(client: CurrentClient, query: Annotated[ChannelsQuery, Query()]) -> dict[str, Any]:
    """List channels by last activity; with words, the matching channels, best first, with their best passages."""
    return await find_channels(client, query, passages=MAX_MATCHES)


async def find_channels(
    client: HttpClient,
    query: ChannelsQuery,
    utc_offset_minutes: int | None = None,
    *,
    is_recorded: bool = True,
    passages: int = 1,
) -> dict[str, Any]:
    """Return a page of channels; of a search also `understood` and `confidence`.

    `is_recorded`: False for a search while the user types. `passages`: how many of each channel.
    """
    if not query.q or query.deleted:
        return await client.view(views.list_channels, query.filters, query.page)
    search_query = query.as_search(utc_offset_minutes) | {"matches": passages}
    answer = await client.run("search_sessions", search_query, is_recorded=is_recorded)
    pagination, sessions = answer["pagination"], answer["sessions"]
    return {
        "items": [{**session, "passages": session.pop("matches")} for session in sessions],
        "total": pagination["total"],
        "next_cursor": str(pagination["offset"] + len(sessions)) if pagination["has_more"] else None,
        "understood": answer.get("understood", {}),
        "confidence": answer.get("confidence"),
    }


@router.get(
    "/{channel:path}", response_model=ShownChannel, response_model_exclude_unset=True, dependencies=[without_parameters]
)
async def show_channel(client: CurrentClient, channel: Name) -> dict[str, Any]:
    """Return one channel."""
    return await client.view(views.show_channel, channel)


@router.patch(
    "/{channel:path}", response_model=ChannelItem, response_model_exclude_unset=True, dependencies=[without_parameters]
)
async def name_channel(
    client: CurrentClient, channel: Name, names: Annotated[TagQuery, Body(openapi_examples=NAMING)]
) -> Any:
    """Set title, nickname or tags; omitted fields stay, `null` clears a field."""
    given = names.model_dump(exclude_unset=True)
    if given.get("tags", ...) is None:
        given["tags"] = []
    return (await edit_channel(client, "tag", given, channel))["channel"]


async def edit_channel(client: HttpClient, operation: str, query: dict[str, Any], channel: str) -> dict[str, Any]:
    """Run an operation on the channel of exactly this name, which may have been deleted since the page was opened."""
    if client.access is None or client.access.may_name(channel):  # the operation refuses the others
        await client.view(views.show_channel, channel)  # otherwise the name could be read as the beginning of another
    return await client.run(operation, query, channel)


@router.delete("/{channel:path}", response_model=DeletedChannel, response_model_exclude_unset=True)
async def delete_channel(client: CurrentClient, channel: Name, query: Annotated[DeletionQuery, Query()]) -> Any:
    """Delete a channel with all its messages; softly, the messages can be restored one by one."""
    return (await client.run("delete", {"soft": query.soft}, channel))["channel"]
