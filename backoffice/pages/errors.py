"""Failures as pages, for who looks at them in a browser; the API keeps its envelope."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from backoffice.errors import wants_page
from backoffice.pages.rendering import render
from registry.errors import StorageError

Handler = Callable[[Request, Any], Awaitable[Response]]

INTO_NOTICE = {"HX-Retarget": "#notice", "HX-Reswap": "innerHTML", "HX-Reselect": "#problem"}
"""A part of a page that failed must not take the place of what the reader is looking at."""


def add_page_errors(app: FastAPI) -> None:
    """Show what the handlers so far answer as a page where a browser asks for one."""
    for kind, handler in list(app.exception_handlers.items()):
        app.add_exception_handler(kind, _as_page(handler))


def _as_page(handler: Any) -> Handler:
    async def answer(request: Request, exc: Any) -> Response:
        envelope: Response = await handler(request, exc)
        return _page(request, envelope, exc) if wants_page(request.headers, request.url.path) else envelope

    return answer


def _page(request: Request, envelope: Response, exc: Exception) -> Response:
    error = json.loads(bytes(envelope.body))["error"]
    if "hx-request" in request.headers:
        return render(request, "problem.html", status=envelope.status_code, headers=INTO_NOTICE, error=error)
    heals = request.method == "GET" and isinstance(exc, StorageError)
    return render(request, "error.html", status=envelope.status_code, error=error, heals=heals)
