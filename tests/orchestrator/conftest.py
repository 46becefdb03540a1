"""Fixtures: an orchestrator over an empty registry, on each database in turn."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from orchestrator import graph, service
from orchestrator.service import Orchestrator
from registry.registry import Registry


@pytest.fixture
async def orchestrator(database_url: str) -> AsyncIterator[Orchestrator]:
    registry = Registry(database_url)
    yield Orchestrator(registry)
    registry.close()


@pytest.fixture
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry external actions without pauses."""
    monkeypatch.setattr(graph, "OUTSIDE_RETRY", graph.OUTSIDE_RETRY._replace(initial_interval=0.01, jitter=False))
    monkeypatch.setattr(service, "build_graph", graph.build_graph.__wrapped__)  # the cached graph keeps its pauses
