"""/usage: the tokens that models took, by day, client, project and model."""

from __future__ import annotations

from datetime import UTC, timedelta

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, ConfigDict, Field

from backoffice.dependencies import Asking
from backoffice.pages.reader import reader_now, utc_offset_minutes
from backoffice.pages.rendering import render
from backoffice.pages.viewer.channels import given_query
from orchestrator.views import figures

router = APIRouter(default_response_class=HTMLResponse)

SPANS = (7, 30, 90, 365)
"""Days to choose from."""


class UsageQuery(BaseModel):
    """How many days, today among them."""

    model_config = ConfigDict(extra="forbid")

    days: int = Field(30, ge=1, le=3660)


@router.get("/usage")
async def usage_page(request: Request, client: Asking) -> HTMLResponse:
    """Show the token usage that clients have recorded; not all of them do.

    Those of a year take a while to sum up: the frame is shown meanwhile.
    """
    query = given_query(request, UsageQuery)
    midnight = reader_now(request).replace(hour=0, minute=0, second=0, microsecond=0)
    start = midnight - timedelta(days=query.days - 1)
    offset = utc_offset_minutes(request)

    return render(
        request,
        "usage.html",
        section="registry",
        days=query.days,
        spans=SPANS,
        start=start.date().isoformat(),
        found=await client.view(figures.token_usage, start.astimezone(UTC), offset),
    )
