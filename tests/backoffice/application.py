"""The backoffice over an orchestrator, without working its routes out anew for every test.

FastAPI works a route out when it is first asked for: 0.1 s for all of ours, and in each application again. They hold
nothing of the application they belong to.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import FastAPI
from starlette.routing import BaseRoute

from backoffice.app import create_app, create_app_over
from orchestrator.service import Orchestrator
from registry.settings import Settings


def application(orchestrator: Orchestrator, **options: Any) -> FastAPI:
    """The backoffice over an orchestrator that is open already and stays open."""
    return with_known_routes(create_app_over(orchestrator, **options))


def with_known_routes(app: FastAPI) -> FastAPI:
    """The application, with the routes that are worked out already."""
    assert len(app.router.routes) == len(_routes())
    app.router.routes[:] = _routes()
    return app


@cache
def _routes() -> list[BaseRoute]:
    return create_app(Settings()).router.routes
