"""An orchestrator over a fresh registry, on each database in turn."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from orchestrator.service import Orchestrator
from registry.registry import Registry


@pytest.fixture
async def orchestrator(database_url: str) -> AsyncIterator[Orchestrator]:
    registry = Registry(database_url)
    yield Orchestrator(registry)
    registry.close()
