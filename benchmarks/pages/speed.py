"""Time each page of a large registry in a browser, and measure the server's CPU time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import Browser, Page

from benchmarks.pages.addresses import open_page
from benchmarks.setup.servers import PRODUCT_HTTP, cpu_seconds, environment, free_port, kill, start_http

AIM_PAINT_MS, AIM_CPU_MS = 1000, 500
HEADS = ("page", "first byte ms", "first paint ms", "server CPU ms", "kB", "")

TIMES = """() => new Promise((done) => {
  const report = () => {
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    const page = performance.getEntriesByType("navigation")[0];
    if (paint) done([page.responseStart, paint.startTime, page.decodedBodySize]); else requestAnimationFrame(report);
  };
  report();
})"""
LOADED = '() => !document.querySelector(".htmx-request, .activity[hx-get]")'


@dataclass(frozen=True)
class Visit:
    """Figures of a page opened with a warm browser cache; `size` is in bytes."""

    name: str
    first_byte_ms: float
    paint_ms: float
    cpu_ms: float
    size: float

    def row(self) -> tuple[str, ...]:
        is_quick = self.paint_ms <= AIM_PAINT_MS and self.cpu_ms <= AIM_CPU_MS
        figures = (self.first_byte_ms, self.paint_ms, self.cpu_ms, self.size / 1000)
        return (self.name, *(f"{figure:.0f}" for figure in figures), "" if is_quick else "MISSED")


@dataclass(frozen=True)
class Served:
    """A running server."""

    url: str
    pid: int


@contextmanager
def serving(home: Path) -> Iterator[Served]:
    """Run `ctxr serve` with the registry in that folder, without a model."""
    port = free_port()
    process = start_http(PRODUCT_HTTP, home, port, environment(home) | {"CTXR_EMBED_MODEL": "off"})
    try:
        yield Served(f"http://127.0.0.1:{port}", process.pid)
    finally:
        kill(process)


@asynccontextmanager
async def window(browser: Browser) -> AsyncIterator[Page]:
    """Open a browser window in the time zone of Seoul."""
    context = await browser.new_context(viewport={"width": 1440, "height": 900}, timezone_id="Asia/Seoul")
    yield await context.new_page()
    await context.close()


async def measure(browser: Browser, server: Served, addresses: Mapping[str, str]) -> AsyncIterator[Visit]:
    """Open every page twice in one window and yield the second visit; the first one fills the caches."""
    async with window(browser) as page:
        page.set_default_timeout(120_000)
        for name, address in addresses.items():
            await _visit(page, server, name, address)
            yield await _visit(page, server, name, address)


async def _visit(page: Page, server: Served, name: str, address: str) -> Visit:
    before = cpu_seconds(server.pid)
    await open_page(page, server.url, name, address)
    first_byte, paint, size = await page.evaluate(TIMES)
    await page.wait_for_function(LOADED)
    cpu_ms = 1000 * (cpu_seconds(server.pid) - before)
    await page.goto("about:blank")
    return Visit(name, first_byte, paint, cpu_ms, size)
