"""Test the quick check before a sync: if nothing is new it reports so, without loading a sync's modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.opening import open_orchestrator
from orchestrator.sync import spool
from orchestrator.sync.store_report import StoreReport, nothing_new
from orchestrator.sync.sync import sync
from registry.settings import Settings
from registry.storage.file_probe import embedded_file
from sources.base import Paths
from sources.readers import READERS
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write
from tests.sources.cursor.cursor_files import CursorFiles, asked

pytestmark = pytest.mark.anyio


async def synced() -> list[StoreReport]:
    settings = Settings()
    async with open_orchestrator(settings) as orchestrator:
        return await sync(orchestrator, READERS, Paths(Path.home(), {}))


def quick_check() -> list[StoreReport] | None:
    return nothing_new(READERS, Paths(Path.home(), {}))


def basket(*more: str) -> Dialogue:
    talk = Dialogue(session_id(1))
    for question in ("Where is the basket?", *more):
        talk.user(question)
    return talk


@pytest.fixture
def stores(migrated_home: Path) -> Path:
    """Return a home with a damaged transcript and a conversation of Cursor."""
    file = write(migrated_home / ".claude", basket())
    file.write_bytes(file.read_bytes() + b"{torn\n")
    (file.parent / "folder.jsonl").mkdir()
    cursor = CursorFiles(migrated_home / ".config" / "Cursor" / "User")
    cursor.conversation("c-1", asked("b-1", "How do I memoize fibonacci?"))
    return migrated_home


async def test_the_quick_check_reports_what_a_sync_would(stores: Path) -> None:
    await synced()
    again = await synced()
    assert {report.source: report.skipped_count for report in again} == {"claude-code": 2, "cursor": 0}
    assert quick_check() == again


async def test_new_messages_or_events_need_a_sync(stores: Path) -> None:
    assert quick_check() is None
    await synced()
    assert quick_check() is not None
    write(stores / ".claude", basket("And the prices?"))
    assert quick_check() is None
    await synced()
    assert quick_check() is not None
    spool.append(str(stores / "ctxr"), {"source": "cursor"})
    assert quick_check() is None


async def test_a_store_that_is_gone_needs_no_sync_and_a_new_one_does(stores: Path) -> None:
    await synced()
    (stores / ".claude").rename(stores / "away")
    assert [report.source for report in quick_check() or ()] == ["cursor"]
    write(stores / ".config" / "claude", basket())
    assert quick_check() is None


async def test_a_damaged_registry_is_left_to_the_sync(stores: Path) -> None:
    await synced()
    registry = stores / "ctxr" / "registry.db"
    registry.write_bytes(b"no database" * 1000)
    assert quick_check() is None


@pytest.mark.parametrize(
    ("environment", "config", "is_embedded"),
    [
        ({}, "", True),
        ({"CTXR_DATABASE_URL": ""}, "port = 9000", True),
        ({"CTXR_DATABASE_URL": "postgresql://localhost/x"}, "", False),
        ({"ctxr_database_url": "postgresql://localhost/x"}, "", False),
        ({}, 'database_url = "postgresql://localhost/x"', False),
    ],
)
def test_the_quick_check_finds_the_database_that_the_settings_name(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], config: str, is_embedded: bool
) -> None:
    home = empty_home / "ctxr"
    home.mkdir()
    (home / "config.toml").write_text(config, encoding="utf-8")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    url = Settings().url
    assert url.startswith("sqlite:") is is_embedded
    file = embedded_file(home, environment)
    assert (f"sqlite:///{file}" == url) is is_embedded


def test_the_quick_check_loads_no_slow_module() -> None:
    code = "import sys, cli.main, cli.incoming.sync; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"asyncio", "pydantic", "sqlalchemy", "langgraph", "watchfiles"} & set(modules)
