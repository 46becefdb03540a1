"""Fixture: an orchestrator over an empty registry."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from orchestrator.service import Orchestrator
from registry.registry import Registry


@pytest.fixture
async def orchestrator(sqlite_url: str) -> AsyncIterator[Orchestrator]:
    registry = Registry(sqlite_url)
    yield Orchestrator(registry)
    registry.close()
