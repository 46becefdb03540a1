"""Add the pages, old addresses and static files to the application."""

from typing import Any

from fastapi import Depends, FastAPI, Request
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from backoffice.dependencies import CurrentClient
from backoffice.pages import insights, login
from backoffice.pages.flow import playground, runs
from backoffice.pages.rendering import STATIC, address, channel_url
from backoffice.pages.settings import pages as settings
from backoffice.pages.viewer import actions, channels, conversation, palette, steps, today
from orchestrator.views import conversations

# The monitor's runs last: `/flow/{execution_id}` would take the addresses of its other pages.
ROUTERS = (channels, today, steps, palette, conversation, actions, insights, settings, playground, runs)


MOVED = {
    "/flow/statistics": "/insights",
    "/usage": "/insights",
    "/problems": "/insights",
    "/activity": "/insights",
    "/flow/sources": "/settings",
    "/backups": "/settings/backups",
    "/deleted": "/settings/trash",
    "/forget": "/settings/forget",
    "/related/{channel:path}": "/channels",
    "/commits/{channel:path}": "/channels",
}
"""Addresses of pages that are parts of others now; a bookmark still opens them."""


async def redirect_moved(request: Request) -> Response:
    """Redirect to the page that an old address is a part of."""
    path = MOVED[request.scope["route"].path]
    channel = request.path_params.get("channel")
    return RedirectResponse(channel_url(channel) if channel else address(path, **request.query_params), 301)


class Assets(StaticFiles):
    """Files whose address changes with their content (`rendering.asset`), so that browsers keep them."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        answer = super().file_response(*args, **kwargs)
        answer.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return answer


async def load_rail(request: Request, client: CurrentClient) -> None:
    """Load the content of the sidebar, for whole pages only."""
    is_part = "hx-request" in request.headers or "pane" in request.headers
    if request.method == "GET" and not is_part:
        request.state.rail = await client.view(conversations.rail)


def add_pages(app: FastAPI) -> None:
    app.include_router(login.router, include_in_schema=False)
    for path in MOVED:
        app.add_api_route(path, redirect_moved, include_in_schema=False)
    for page in ROUTERS:
        app.include_router(page.router, include_in_schema=False, dependencies=[Depends(load_rail)])
    app.mount("/static", Assets(directory=STATIC), name="static")
