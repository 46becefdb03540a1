"""A registry on each database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from registry.registry import Registry


@pytest.fixture
def registry(database_url: str) -> Iterator[Registry]:
    opened = Registry(database_url)
    yield opened
    opened.close()
