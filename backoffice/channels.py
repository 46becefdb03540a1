"""/bo/channels: the channels of the registry, their names and tags."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Body, Path, Query

from backoffice.dependencies import SOURCE, Asking, Stored, without_parameters
from backoffice.queries import ChannelsQuery, DeletionQuery
from backoffice.schemas import CHANNEL, ChannelItem, DeletedChannel, ItemPage, ShownChannel
from orchestrator.operations.history import related
from orchestrator.relevance import best_channels
from orchestrator.requests import ChannelName, TagQuery
from registry.domain import now
from registry.search.retrieval import Findings, find_messages, within
from registry.storage.channels import ChannelFilter, channel_item, get_channel, list_channels, tags_of
from registry.storage.database import ReadTransaction
from registry.storage.message_index import Scope
from registry.text.syntax import Search, read_search

router = APIRouter(prefix="/bo/channels", tags=["channels"])

# Free-form names may contain slashes.
Name = Annotated[ChannelName, Path(description="the channel's name", examples=[CHANNEL])]
NAMING = {
    "a nickname and tags": {"value": {"nickname": "fib", "tags": ["python", "recursion"]}},
    "no title any more": {"value": {"title": None}},
}


@router.get("", response_model=ItemPage[ChannelItem])
async def show_channels(registry: Stored, query: Annotated[ChannelsQuery, Query()]) -> dict[str, Any]:
    """Channels by last activity."""
    return await registry.read(lambda tx: list_channels(tx, channel_filter(query, asked_for(tx, query)), query.page))


class Asked(NamedTuple):
    """What is asked for in words, as it is understood, and the messages that have to do with it."""

    search: Search
    findings: Findings | None


def asked_for(tx: ReadTransaction, query: ChannelsQuery, moment: datetime | None = None) -> Asked:
    """The words of a query, read and looked up; `moment` is the reader's now."""
    search = read_search(query.q or "", moment or now())
    if not (search.words or search.phrases or search.prefixes or search.excluded):
        return Asked(search, None)
    scope = Scope(source=query.source, project=query.project, tags=[query.tag] if query.tag else [])
    return Asked(search, find_messages(tx, search, within(scope, search)))


def channel_filter(query: ChannelsQuery, asked: Asked) -> ChannelFilter:
    """What the registry is asked for: those of the channels that hold what was found, or are called so."""
    search, findings = asked
    return ChannelFilter(
        source=search.source or query.source,
        project=search.project or query.project,
        tag=query.tag or next(iter(search.tags), None),
        q=query.q if findings else None,
        numbers=[number for number, _ in best_channels(findings)] if findings else [],
        from_=query.from_ or search.from_,
        to=query.to or search.to,
    )


@router.get(
    "/{channel:path}",
    response_model=ShownChannel,
    response_model_exclude_unset=True,
    dependencies=[without_parameters],
)
async def show_channel(registry: Stored, channel: Name) -> dict[str, Any]:
    """One channel."""

    def work(tx: ReadTransaction) -> dict[str, Any]:
        row = get_channel(tx, channel)
        return {**channel_item(row, tags_of(tx, [row.number])[row.number]), **related(tx, row)}

    return await registry.read(work)


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
