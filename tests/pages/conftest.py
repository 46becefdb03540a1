"""A real server over seeded conversations, and a real browser in front of it."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from playwright.async_api import Browser, Page, async_playwright

from backoffice.app import create_app
from cli.connect.connections import connections_from
from registry.registry import Registry
from registry.settings import Settings
from tests.databases import TEMPLATE, PostgresServer, SpareDatabases
from tests.pages.seeds import seed

CHROMIUM = shutil.which("chromium")


@contextmanager
def serving(database_url: str) -> Iterator[str]:
    """The backoffice on a free port, in a thread; its address."""
    app = create_app(Settings(database_url=database_url), connections=connections_from(Path.home()))
    config = uvicorn.Config(app, port=0, log_config=None, http="h11", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    started = threading.Event()
    startup = server.startup

    async def announce(*args: object, **kwargs: object) -> None:
        await startup(*args, **kwargs)  # type: ignore[arg-type]
        started.set()

    server.startup = announce  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert started.wait(20), "the server did not start"
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="session")
def seeded_file(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the seeds in it, made once."""
    file = Path(shutil.copy(sqlite_template, tmp_path_factory.mktemp("seeded") / "registry.db"))
    registry = Registry(f"sqlite:///{file}")
    asyncio.run(seed(registry))
    registry.close()
    return file


@pytest.fixture(scope="session")
def seeded_databases(postgres_server: PostgresServer, postgres_databases: SpareDatabases) -> SpareDatabases:
    """PostgreSQL databases with the seeds in them, which were put in once."""
    postgres_server.execute("CREATE DATABASE seeded TEMPLATE {}", TEMPLATE)
    registry = Registry(postgres_server.url("seeded"))
    asyncio.run(seed(registry))
    registry.close()
    return SpareDatabases(postgres_server, "seeded")


@pytest.fixture
def seeded_postgres_url(seeded_databases: SpareDatabases) -> Iterator[str]:
    """A seeded PostgreSQL database of this test alone."""
    with seeded_databases.database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def seeded_database_url(request: pytest.FixtureRequest) -> str:
    """The seeds on each of the two databases in turn."""
    name = {"sqlite": "seeded_url", "postgresql": "seeded_postgres_url"}[request.param]
    return str(request.getfixturevalue(name))


@pytest.fixture
def seeded_url(seeded_file: Path, tmp_path: Path) -> str:
    """A copy of the seeded registry, of this test alone."""
    return f"sqlite:///{shutil.copy(seeded_file, tmp_path / 'seeded.db')}"


@pytest.fixture
def server(seeded_url: str) -> Iterator[str]:
    """The address of a server over the seeds."""
    with serving(seeded_url) as address:
        yield address


@pytest.fixture
def empty_server(sqlite_url: str) -> Iterator[str]:
    """The address of a server over an empty registry."""
    with serving(sqlite_url) as address:
        yield address


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Debian's Chromium, started once for each test process."""
    if CHROMIUM is None:
        pytest.skip("needs chromium (Debian's package) on the PATH")
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        await chromium.close()


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A fresh browser window: English, UTC+9, no cookies. What goes wrong in it fails the test."""
    context = await browser.new_context(
        locale="en-US",
        timezone_id="Asia/Seoul",
        viewport={"width": 1280, "height": 800},
        permissions=["clipboard-read", "clipboard-write"],
    )
    window = await context.new_page()
    problems: list[str] = []
    window.on("pageerror", lambda error: problems.append(str(error)))
    window.on("console", lambda line: problems.append(line.text) if "Content Security" in line.text else None)
    window.set_default_timeout(10_000)
    yield window
    await context.close()
    assert not problems
