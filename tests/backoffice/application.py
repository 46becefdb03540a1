"""The backoffice over an orchestrator, without working its routes and their document out anew for every test.

FastAPI works a route out when it is first asked for: 0.1 s for all of ours, and in each application again; to describe
them takes a second. They hold nothing of the application they belong to.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import FastAPI
from starlette.routing import BaseRoute

from backoffice.admission import ON_LOOPBACK, Rules
from backoffice.app import assemble, create_app, use_orchestrator
from orchestrator.service import Orchestrator
from registry.settings import Settings


def application(
    orchestrator: Orchestrator, *, host: str = "127.0.0.1", rules: Rules = ON_LOOPBACK, **options: Any
) -> FastAPI:
    """Return the backoffice over an orchestrator that is open already and stays open."""
    app = assemble(host, rules)
    use_orchestrator(app, orchestrator, **options)
    return with_known_routes(app)


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
