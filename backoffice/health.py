"""/health, /ready and /metrics (Prometheus)."""

from importlib.metadata import version

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backoffice.dependencies import API, SOURCE, CurrentClient, for_everything
from backoffice.errors import failure
from backoffice.middleware import HttpMiddleware
from backoffice.schemas import Failure, State
from orchestrator.service import Execution
from orchestrator.views.events import check_readable
from registry.errors import OperationTimeout, RegistryError
from sources.clients import CLIENTS

NAME = "context-registry"
# Values of the label `source`, and `other`: callers may name a source freely, a label must stay small.
SOURCES = frozenset({client.source for client in CLIENTS} | {SOURCE, API, "ctxr", "eval", "unknown"})


class Metrics:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        Info("ctxr_build", "The program's version.", registry=self._registry).info({"version": version(NAME)})
        self.running = Gauge("ctxr_operations_running", "Operations that have not ended.", registry=self._registry)
        self._operations = Counter(
            "ctxr_operations",
            "Operations run, by outcome: succeeded, or the error's code.",
            ["operation", "outcome", "source", "door"],
            registry=self._registry,
        )
        self._durations = Histogram(
            "ctxr_operation_duration_seconds",
            "How long operations took.",
            ["operation", "door"],
            buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
            registry=self._registry,
        )
        self.requests = Counter(
            "ctxr_http_requests", "HTTP requests answered.", ["route", "status"], registry=self._registry
        )

    def count_operation(self, run: Execution) -> None:
        source = run.source if run.source in SOURCES else "other"
        self._operations.labels(run.operation, run.outcome, source, run.door).inc()
        self._durations.labels(run.operation, run.door).observe(run.duration_ms / 1000)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class RequestCounter(HttpMiddleware):
    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        super().__init__(app)
        self._metrics = metrics

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        status = 500

        async def send_and_note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_note_status)
        finally:
            self._metrics.requests.labels(getattr(scope.get("route"), "path", "other"), str(status)).inc()


router = APIRouter(tags=["health"])


@router.get("/health")
async def health() -> State:
    """Report that the server runs, independently of the database."""
    return State(status="ok")


@router.get(
    "/ready",
    response_model=State,
    responses={503: {"model": Failure, "description": "the registry cannot be read now"}},
)
async def ready(client: CurrentClient) -> State | Response:
    """Return whether the registry can be read; 503 if not."""
    try:
        await check_readable(client.registry)
    except RegistryError as exc:
        # No credential is needed here, so the database's address stays in the log.
        details = exc.details if isinstance(exc, OperationTimeout) else "The server's log says why."
        return failure({**exc.as_dict(), "details": details}, 503)
    return State(status="ready")


@router.get(
    "/metrics", response_class=Response, dependencies=[for_everything], responses={200: {"content": {"text/plain": {}}}}
)
async def metrics(request: Request) -> Response:
    """Return this process's counters in Prometheus' text format."""
    counted: Metrics = request.app.state.metrics
    return Response(counted.text(), media_type=CONTENT_TYPE_LATEST)
