"""Fixtures: a registry in the home folder, which `open_orchestrator` opens without migrating it first."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def migrated_home(empty_home: Path, sqlite_template: Path) -> Path:
    (empty_home / "ctxr").mkdir()
    shutil.copy(sqlite_template, empty_home / "ctxr" / "registry.db")
    return empty_home
