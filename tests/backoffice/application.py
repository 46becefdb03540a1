"""The backoffice over an orchestrator, without working its routes and their document out anew for every test.

FastAPI works a route out when it is first asked for: 0.1 s for all of ours, and in each application again; to describe
them takes a second. They hold nothing of the application they belong to.
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
    """The application, with the routes that are worked out and described already; what was added to them stays."""
    app.router.routes[: len(_routes())] = _routes()
    app.openapi = _document  # type: ignore[method-assign]
    return app


@cache
def _known() -> FastAPI:
    return create_app(Settings())


def _routes() -> list[BaseRoute]:
    return _known().router.routes


@cache
def _document() -> dict[str, Any]:
    return _known().openapi()
