"""Fixtures: a real server over seeded conversations, and a real browser."""

from __future__ import annotations

import shutil
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from unittest.mock import patch

import httpx
import pytest
import uvicorn
from playwright.async_api import Browser, Page, async_playwright, expect
from starlette.types import ASGIApp

from backoffice.app import create_app
from cli.connect.connections import connections_from
from orchestrator.service import Orchestrator
from registry.registry import Registry
from registry.settings import Settings
from registry.storage.exchange import change_feed
from tests.backoffice.application import application, client_of, with_known_routes
from tests.conformance.node import Unavailable
from tests.pages.axe import axe_script
from tests.pages.seeds import seed
from tests.seeded import Seeded, SeededFiles

expect.set_options(timeout=60_000)  # a test must not depend on a fast machine

# The headless shell costs a third of the full browser.
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")


Wrapped = Callable[[ASGIApp], ASGIApp]


@contextmanager
def serving(database_url: str, wrapped: Wrapped = lambda app: app) -> Iterator[str]:
    """Serve the backoffice over a registry; yield its address."""
    settings, connections = Settings(database_url=database_url), connections_from(Path.home())
    app = with_known_routes(lambda: create_app(settings, connections=connections))
    with served(wrapped(app)) as address, patch.object(change_feed, "POLL_S", 0.05):
        yield address


@contextmanager
def served(app: ASGIApp, port: int = 0) -> Iterator[str]:
    """Serve an application in a thread, by default on a free port; yield its address."""
    config = uvicorn.Config(app, port=port, log_config=None, http="h11", ws="none", timeout_graceful_shutdown=1)
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
        assert started.wait(60), "the server did not start"
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
async def orchestrator(seeded: Seeded) -> AsyncIterator[Orchestrator]:
    """Return an orchestrator over the seeds, on each database in turn."""
    registry = Registry(await seeded(seed))
    yield Orchestrator(registry)
    registry.close()


@pytest.fixture
async def http(orchestrator: Orchestrator) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client without scripts."""
    async with client_of(application(orchestrator), **{"Accept": "text/html", "User-Agent": "test"}) as client:
        yield client


@pytest.fixture
async def server(seeded_file: Seeded) -> AsyncIterator[str]:
    """Return the address of a server over the seeds."""
    with serving(await seeded_file(seed)) as address:
        yield address


@pytest.fixture
def empty_server(sqlite_url: str) -> Iterator[str]:
    """Return the address of a server over an empty registry."""
    with serving(sqlite_url) as address:
        yield address


@pytest.fixture(scope="module")
async def server_to_read(seeded_files: SeededFiles, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """Return the address of a server over the seeds, for tests that only read."""
    with serving(await seeded_files.copy(seed, tmp_path_factory.mktemp("to-read"))) as address:
        yield address


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the script of axe-core."""
    try:
        return axe_script()
    except Unavailable as exc:
        pytest.skip(str(exc))


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Start Debian's Chromium once for each test process."""
    if CHROMIUM is None:
        pytest.skip("needs chromium-headless-shell or chromium (Debian's packages) on the PATH")
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        await chromium.close()


HURRY = """for (const name of ["setTimeout", "setInterval"]) {
  const wait = window[name]; window[name] = (act, ms, ...more) => wait(act, ms > 600 ? ms / 10 : ms, ...more) }"""
"""Let pages poll and update after tenths of a second instead of seconds."""


@asynccontextmanager
async def window(browser: Browser, script: str = HURRY) -> AsyncIterator[Page]:
    """Open a browser window in English and UTC+9, known to the server. Errors in it fail the test.

    A page reloads when it first reports its zone, which would lose earlier input.
    """
    context = await browser.new_context(
        locale="en-US",
        timezone_id="Asia/Seoul",
        viewport={"width": 1280, "height": 800},
        permissions=["clipboard-read", "clipboard-write"],
    )
    await context.add_cookies([{"name": "zone", "value": "Asia/Seoul", "domain": "127.0.0.1", "path": "/"}])
    await context.add_init_script(script)
    page = await context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda line: problems.append(line.text) if "Content Security" in line.text else None)
    page.set_default_timeout(60_000)
    yield page
    await context.close()
    assert not problems


async def copied(page: Page, beginning: str) -> str:
    """Return the clipboard's text as soon as it begins with `beginning`."""
    await page.wait_for_function(
        "async (text) => (await navigator.clipboard.readText()).startsWith(text)", arg=beginning
    )
    return str(await page.evaluate("navigator.clipboard.readText()"))


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """Open a browser window for this test."""
    async with window(browser) as opened:
        yield opened


WATCH = """window.moved = []; new PerformanceObserver((list) => list.getEntries().forEach((one) =>
  moved.push([one.value, ...one.sources.map(({ node }) => node?.outerHTML?.slice(0, 200))])
)).observe({ type: "layout-shift", buffered: true })"""
SHOWN = "new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(moved))))"


async def watch_movement(page: Page) -> None:
    """Record on each page that is opened from now on how far its parts move without input."""
    await page.add_init_script(WATCH)


async def assert_still(page: Page, below: float = 0.01) -> None:
    """Check the layout shift so far: the share of the window that moved, times the share of the distance."""
    moved = await page.evaluate(SHOWN)
    assert sum(share for share, *_ in moved) < below, (page.url, moved)
