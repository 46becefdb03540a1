"""Shorten waits for locked databases."""

from __future__ import annotations

import pytest

import sources.kit.sqlite_store


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources.kit.sqlite_store, "WAIT_S", 0.05)
