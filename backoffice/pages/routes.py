"""The pages' routers, and where their files are."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from backoffice.pages import (
    actions,
    backups,
    briefings,
    channels,
    conversation,
    flow,
    flow_sources,
    flow_statistics,
    flow_try,
    forgetting,
    login,
    today,
    usage,
    views,
)
from backoffice.pages.rendering import STATIC

# The monitor's runs last: `/flow/{execution_id}` would take the addresses of its other pages.
ROUTERS = (
    login.router,
    channels.router,
    today.router,
    usage.router,
    views.router,
    backups.router,
    briefings.router,
    conversation.router,
    actions.router,
    forgetting.router,
    flow_statistics.router,
    flow_sources.router,
    flow_try.router,
    flow.router,
)


class Assets(StaticFiles):
    """Files whose address changes with their content (`rendering.asset`), so that browsers keep them."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """The file, to be kept."""
        answer = super().file_response(*args, **kwargs)
        answer.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return answer


def add_pages(app: FastAPI) -> None:
    """Serve the pages beside the API."""
    for router in ROUTERS:
        app.include_router(router, include_in_schema=False)
    app.mount("/static", Assets(directory=STATIC), name="static")
