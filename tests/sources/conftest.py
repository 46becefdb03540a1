"""Tests of readers wait for no locked database as long as a sync does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sources.kit.sqlite_store


@pytest.fixture(autouse=True, scope="session")
def impatience() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources.kit.sqlite_store, "WAIT_S", 0.05)
        yield
