"""/problems: errors that come back, in several conversations and projects."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from backoffice.dependencies import Asking, without_parameters
from backoffice.pages.rendering import render
from orchestrator.views import figures

router = APIRouter(default_response_class=HTMLResponse)


@router.get("/problems", dependencies=[without_parameters])
async def problems_page(request: Request, client: Asking) -> HTMLResponse:
    """Show errors that occurred in at least two conversations."""
    found = await client.view(figures.recurring_problems)
    return await asyncio.to_thread(render, request, "problems.html", section="registry", found=found)
