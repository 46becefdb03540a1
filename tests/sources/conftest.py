"""Tests of readers wait for no locked database as long as a sync does."""

from __future__ import annotations

import pytest

import sources.kit.sqlite_store


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources.kit.sqlite_store, "WAIT_S", 0.05)
