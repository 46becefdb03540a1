"""Test that the registry's files are readable only by their user, even in a world-readable folder."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Ctxr

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def open_home(ctxr: Ctxr, empty_home: Path) -> Path:
    home = empty_home / "ctxr"
    home.chmod(0o755)
    return home


def log(ctxr: Ctxr, tmp_path: Path) -> None:
    chat = tmp_path / "chat.json"
    chat.write_text(json.dumps({"channel": "c", "messages": [{"role": "user", "text": "Hello?"}]}))
    assert ctxr("log", str(chat)).exit_code == 0


def test_a_new_registry_in_an_open_folder_is_private(ctxr: Ctxr, open_home: Path, tmp_path: Path) -> None:
    (open_home / "registry.db").unlink()
    before = os.umask(0o022)
    try:
        log(ctxr, tmp_path)
    finally:
        os.umask(before)
    assert set(modes(open_home).values()) == {0o600}
    assert "registry.db" in modes(open_home)


def test_an_open_registry_is_made_private(ctxr: Ctxr, open_home: Path, tmp_path: Path) -> None:
    log(ctxr, tmp_path)
    (open_home / "config.toml").write_text('embed_api_key = "k"')
    (open_home / "spool").mkdir()
    (open_home / "spool" / "taken-1.jsonl").write_text("")
    for path in open_home.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    log(ctxr, tmp_path)
    assert set(modes(open_home).values()) == {0o600}
    assert stat.S_IMODE((open_home / "spool").stat().st_mode) == 0o700
