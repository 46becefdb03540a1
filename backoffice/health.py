"""/health, /ready, /metrics: for those who watch the server."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from backoffice.dependencies import Stored, for_everything
from backoffice.metrics import Metrics
from backoffice.schemas import State
from registry.storage.change_feed import newest_place

router = APIRouter(tags=["health"])


@router.get("/health")
async def health() -> State:
    """The server is alive; says nothing of the database."""
    return State(status="ok")


@router.get("/ready")
async def ready(registry: Stored) -> State:
    """The registry can be read; STORAGE_ERROR if not."""
    await registry.read(newest_place)
    return State(status="ready")


@router.get(
    "/metrics",
    response_class=Response,
    dependencies=[for_everything],
    responses={200: {"content": {"text/plain": {}}}},
)
async def metrics(request: Request) -> Response:
    """What this process has done, in Prometheus' text format."""
    counted: Metrics = request.app.state.metrics
    return Response(counted.text(), media_type=CONTENT_TYPE_LATEST)
