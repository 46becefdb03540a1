"""Assemble the backoffice as one ASGI application."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware

from backoffice import channels, conversations, events, executions, health, reference, short_lists, spending
from backoffice.admission import ON_LOOPBACK, Admission, AdmissionRules, Gate
from backoffice.connections import Connections
from backoffice.errors import add_error_handlers
from backoffice.health import NAME, Metrics, RequestCounter
from backoffice.machine import Machine
from backoffice.middleware import Guard, Gunzip, ResponseHeaders
from backoffice.pages.rendering import add_page_errors
from backoffice.pages.routes import add_pages
from backoffice.schemas import Failure
from orchestrator.opening import open_orchestrator
from orchestrator.service import Orchestrator
from registry.settings import Settings

FAILURES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": Failure, "description": "refused: INVALID_REQUEST, UNAUTHORIZED or NOT_FOUND"},
    "5XX": {"model": Failure, "description": "failed: STORAGE_ERROR, TIMEOUT or INTERNAL_ERROR"},
}
ServerContext = Callable[[], AbstractAsyncContextManager[object]]


class Backoffice(FastAPI):
    """FastAPI whose OpenAPI document describes bearer tokens."""

    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}, {}]  # a local server without tokens needs none
        return document


def create_app(
    settings: Settings,
    *,
    server_context: ServerContext = nullcontext,
    connections: Connections | None = None,
    rules: AdmissionRules = ON_LOOPBACK,
) -> FastAPI:
    """Return the backoffice over the configured registry, which is opened and closed with the server.

    `server_context`: a context entered for the lifetime of the server. `connections`: reads the clients' settings.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_orchestrator(settings) as orchestrator:
            use_orchestrator(app, orchestrator, connections)
            try:
                async with server_context():
                    yield
            finally:
                await app.state.machine.close()

    return assemble(settings.host, rules, lifespan)


def use_orchestrator(app: FastAPI, orchestrator: Orchestrator, connections: Connections | None = None) -> None:
    app.state.orchestrator = orchestrator
    app.state.machine = Machine(orchestrator, connections)
    metrics: Metrics = app.state.metrics
    orchestrator.observers.append(metrics.count_operation)
    metrics.running.set_function(lambda: len(orchestrator.running()))


def assemble(
    host: str, rules: AdmissionRules, lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None
) -> FastAPI:
    """Return the application with its routes and middleware, but without an orchestrator."""
    app = Backoffice(
        title="Context Registry backoffice",
        version=version(NAME),
        description="The registry's channels and messages, and what the orchestrator did with them.",
        lifespan=lifespan,
        responses=FAILURES,
        docs_url=None,  # FastAPI's pages load scripts from elsewhere; `reference` is ours
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        telemetry={"operation_spans": False},
    )
    app.state.metrics = Metrics()
    for part in (channels, conversations, executions, spending, short_lists, events, health, reference):
        app.include_router(part.router)
    add_pages(app)
    add_error_handlers(app)
    add_page_errors(app)
    app.state.gate = Gate(rules)
    # The last one added is the outermost: refused requests are counted too, and only admitted bodies are unpacked.
    app.add_middleware(Gunzip)
    app.add_middleware(Admission, gate=app.state.gate)
    if rules.origins:
        # Outside of admission: a browser's preflight request carries no token. Cookies are never sent.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=rules.origins,
            allow_methods=("GET", "POST", "PATCH", "DELETE"),
            allow_headers=("Authorization", "Content-Type", "Last-Event-ID"),
            allow_private_network=True,
        )
    app.add_middleware(GZipMiddleware, minimum_size=1024, compresslevel=4)  # 1 ms for 100 kB
    app.add_middleware(ResponseHeaders)
    app.add_middleware(Guard, host=host, known_as=rules.known_as, origins=rules.origins)
    app.add_middleware(RequestCounter, metrics=app.state.metrics)
    return app
