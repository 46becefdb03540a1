"""The pages' routers, and where their files are."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from backoffice.pages import login
from backoffice.pages.archive import backups, briefings, forgetting
from backoffice.pages.flow import playground, runs, sources, statistics
from backoffice.pages.rendering import STATIC
from backoffice.pages.viewer import actions, channels, conversation, problems, today, usage, views

# The monitor's runs last: `/flow/{execution_id}` would take the addresses of its other pages.
ROUTERS = (
    login.router,
    channels.router,
    today.router,
    usage.router,
    problems.router,
    views.router,
    backups.router,
    briefings.router,
    conversation.router,
    actions.router,
    forgetting.router,
    statistics.router,
    sources.router,
    playground.router,
    runs.router,
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
