"""The backoffice over an orchestrator, without building its routes and OpenAPI document for every test.

FastAPI resolves each route at its first request, in each application again: 0.1 s for all routes. Describing them takes
a second, adding them 20 ms. Routes hold no state of their application.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any
from unittest.mock import patch

import httpx
from fastapi import FastAPI
from starlette.routing import BaseRoute

from backoffice.admission import ON_LOOPBACK, AdmissionRules
from backoffice.app import assemble, create_app, use_orchestrator
from orchestrator.service import Orchestrator
from registry.settings import Settings


def application(
    orchestrator: Orchestrator, *, host: str = "127.0.0.1", rules: AdmissionRules = ON_LOOPBACK, **options: Any
) -> FastAPI:
    """Return the backoffice over an orchestrator that is open already and stays open."""
    app = with_known_routes(lambda: assemble(host, rules))
    use_orchestrator(app, orchestrator, **options)
    return app


def client_of(app: FastAPI, **headers: str) -> httpx.AsyncClient:
    """Return a client of an application; an unexpected exception is answered as in production."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765", headers=headers)


def with_known_routes(make: Callable[[], FastAPI]) -> FastAPI:
    """Return the application that `make` builds, with routes and a document that are built once."""
    known = _routes()
    with patch.multiple(FastAPI, include_router=_add_nothing, add_api_route=_add_nothing, mount=_add_nothing):
        app = make()
    app.router.routes[:0] = known
    app.openapi = _document  # type: ignore[method-assign]
    return app


def _add_nothing(*_: object, **__: object) -> None:
    """Skip a route that the application has already."""


@cache
def _known() -> FastAPI:
    return create_app(Settings())


def _routes() -> list[BaseRoute]:
    return _known().router.routes


@cache
def _document() -> dict[str, Any]:
    return _known().openapi()
