"""How long each page of a large registry takes in a browser, and what it costs the server."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import Browser, Page

from benchmarks.pages.addresses import open_page
from benchmarks.setup.servers import PRODUCT_HTTP, end, environment, free_port, start_http

AIM_PAINT_MS, AIM_CPU_MS = 1000, 500
HEADS = ("page", "first byte ms", "first paint ms", "server CPU ms", "kB", "")
TICK = os.sysconf("SC_CLK_TCK")

TIMES = """() => new Promise((done) => {
  const told = () => {
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    const page = performance.getEntriesByType("navigation")[0];
    if (paint) done([page.responseStart, paint.startTime, page.decodedBodySize]); else requestAnimationFrame(told);
  };
  told();
})"""
LOADED = '() => !document.querySelector(".htmx-request, .activity[hx-get]")'


@dataclass(frozen=True)
class Visit:
    """One page, opened once by a browser that has the styles and scripts already."""

    name: str
    first_byte_ms: float
    paint_ms: float
    cpu_ms: float
    size: float

    def row(self) -> tuple[str, ...]:
        """The visit as a line of a table."""
        is_quick = self.paint_ms <= AIM_PAINT_MS and self.cpu_ms <= AIM_CPU_MS
        figures = (self.first_byte_ms, self.paint_ms, self.cpu_ms, self.size / 1000)
        return (self.name, *(f"{figure:.0f}" for figure in figures), "" if is_quick else "MISSED")


@dataclass(frozen=True)
class Served:
    """A server that runs, and what it has spent."""

    url: str
    pid: int

    def cpu_ms(self) -> float:
        """Of all its threads, so far."""
        told = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        return 1000 * (int(told[11]) + int(told[12])) / TICK


@contextmanager
def serving(home: Path) -> Iterator[Served]:
    """`ctxr serve` over the registry in that folder, by words alone."""
    port = free_port()
    process = start_http(PRODUCT_HTTP, home, port, environment(home) | {"CTXR_EMBED_MODEL": "off"})
    try:
        yield Served(f"http://127.0.0.1:{port}", process.pid)
    finally:
        end(process)


@asynccontextmanager
async def window(browser: Browser) -> AsyncIterator[Page]:
    """A browser window of a reader in Seoul."""
    context = await browser.new_context(viewport={"width": 1440, "height": 900}, timezone_id="Asia/Seoul")
    yield await context.new_page()
    await context.close()


async def measure(browser: Browser, server: Served, addresses: Mapping[str, str]) -> AsyncIterator[Visit]:
    """Open every page twice in one window; the second time counts: the first one warms the caches of both."""
    async with window(browser) as page:
        page.set_default_timeout(120_000)
        for name, address in addresses.items():
            await _visit(page, server, name, address)
            yield await _visit(page, server, name, address)


async def _visit(page: Page, server: Served, name: str, address: str) -> Visit:
    before = server.cpu_ms()
    await open_page(page, server.url, name, address)
    first_byte, paint, size = await page.evaluate(TIMES)
    await page.wait_for_function(LOADED)
    spent = server.cpu_ms() - before
    await page.goto("about:blank")
    return Visit(name, first_byte, paint, spent, size)
