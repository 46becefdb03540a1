"""An engine of each database, for tests that write in their own transactions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from registry.storage.connections import create_database_engine


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    opened = create_database_engine(database_url)
    yield opened.execution_options(write=True)
    opened.dispose()
