"""A sync with nothing new is answered without loading what a sync needs, and never wrongly."""

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


def reports_of_a_quick_check() -> list[StoreReport] | None:
    return nothing_new(READERS, Paths(Path.home(), {}))


def basket(*more: str) -> Dialogue:
    talk = Dialogue(session_id(1))
    for question in ("Where is the basket?", *more):
        talk.user(question)
    return talk


@pytest.fixture
def stores(empty_home: Path) -> Path:
    """A transcript with damage in it, and one conversation of Cursor's."""
    file = write(empty_home / ".claude", basket())
    file.write_bytes(file.read_bytes() + b"{torn\n")
    (file.parent / "folder.jsonl").mkdir()
    cursor = CursorFiles(empty_home / ".config" / "Cursor" / "User")
    cursor.conversation("c-1", asked("b-1", "How do I memoize fibonacci?"))
    return empty_home


async def test_it_reports_what_a_sync_would_report(stores: Path) -> None:
    await synced()
    again = await synced()
    assert {report.source: report.skipped_count for report in again} == {"claude-code": 2, "cursor": 0}
    assert reports_of_a_quick_check() == again


async def test_whatever_is_new_needs_a_sync(stores: Path) -> None:
    assert reports_of_a_quick_check() is None
    await synced()
    assert reports_of_a_quick_check() is not None
    write(stores / ".claude", basket("And the prices?"))
    assert reports_of_a_quick_check() is None
    await synced()
    assert reports_of_a_quick_check() is not None
    spool.append(str(stores / "ctxr"), {"source": "cursor"})
    assert reports_of_a_quick_check() is None


async def test_a_store_that_goes_away_is_nothing_new_and_one_that_is_there_first_is(stores: Path) -> None:
    await synced()
    (stores / ".claude").rename(stores / "away")
    assert [report.source for report in reports_of_a_quick_check() or ()] == ["cursor"]
    write(stores / ".config" / "claude", basket())
    assert reports_of_a_quick_check() is None


async def test_trouble_of_any_kind_is_left_to_the_sync(stores: Path) -> None:
    await synced()
    registry = stores / "ctxr" / "registry.db"
    registry.write_bytes(b"no database" * 1000)
    assert reports_of_a_quick_check() is None


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
def test_the_file_is_the_one_that_the_settings_name(
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


def test_it_loads_nothing_that_takes_time() -> None:
    code = "import sys, cli.main, cli.incoming.sync; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"asyncio", "pydantic", "sqlalchemy", "langgraph", "watchfiles"} & set(modules)
