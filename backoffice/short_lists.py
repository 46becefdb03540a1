"""/bo/pins, /bo/views, /bo/briefings, /bo/cases, /bo/backups: short lists of records that are not conversations."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict

from backoffice.dependencies import CurrentClient, without_parameters
from backoffice.schemas import ChannelItem, ItemPage
from orchestrator.views import conversations as views
from orchestrator.views.runs import list_expectations

router = APIRouter(prefix="/bo", tags=["lists"], dependencies=[without_parameters])

MAX_ITEMS = 1000  # items of one list; they are few, so there are no pages


class ShortListItem(BaseModel):
    """A pin, view, briefing, case or backup, with its own fields."""

    model_config = ConfigDict(extra="allow")


def _whole_list(items: Sequence[Any]) -> dict[str, Any]:
    return {"items": items, "total": len(items), "next_cursor": None}


@router.get("/pins", response_model=ItemPage[ChannelItem], response_model_exclude_unset=True)
async def show_pins(client: CurrentClient) -> dict[str, Any]:
    """List the pinned channels, those pinned last first."""
    return _whole_list(await client.view(views.pinned_channels, MAX_ITEMS))


@router.get("/views", response_model=ItemPage[ShortListItem])
async def show_views(client: CurrentClient) -> dict[str, Any]:
    """List the saved views: each a name and the address of a page."""
    return _whole_list(await client.view(views.list_views))


@router.get("/briefings", response_model=ItemPage[ShortListItem])
async def show_briefings(client: CurrentClient) -> dict[str, Any]:
    """List the briefings, the latest day first."""
    return _whole_list(await client.view(views.latest_briefings, MAX_ITEMS))


@router.get("/cases", response_model=ItemPage[ShortListItem])
async def show_cases(client: CurrentClient) -> dict[str, Any]:
    """List the test cases: questions with the message each should find."""
    return _whole_list(await client.view(list_expectations))


@router.get("/backups", response_model=ItemPage[ShortListItem])
async def show_backups(client: CurrentClient) -> dict[str, Any]:
    """List the backups in this registry's folder, newest first."""
    answer = await client.run("list_backups", {}, is_recorded=False)
    return _whole_list(answer["backups"])
