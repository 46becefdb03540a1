"""Measure the pages in a browser: python -m benchmarks.pages [--only speed|access|order] [--folder DIR] …

`speed` opens every page of a large registry and measures first byte, first contentful paint and the server's CPU time.
`access` counts the findings of axe-core on every page in 2 languages, 2 themes and 3 widths. `order` compares the
results of the search page with those of the tool. With --folder the registry is kept there and reused.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from playwright.async_api import async_playwright

from benchmarks.pages import access, order, speed
from benchmarks.pages.addresses import pages
from benchmarks.pages.large_registry import fill
from benchmarks.retrieval.question_sets import own_sets
from benchmarks.setup.figures import table
from registry.registry import Registry

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")


def registry_in(folder: Path, options: argparse.Namespace) -> dict[str, str]:
    """Create the registry if the folder has none; return the addresses of its pages, by name."""
    file = folder / "registry.db"
    is_new = not file.exists()
    folder.mkdir(parents=True, exist_ok=True)
    registry = Registry(f"sqlite:///{file}")
    try:
        if is_new:
            started = time.process_time()
            fill(registry, options.channels, options.executions)
            size, spent = file.stat().st_size / 1e6, time.process_time() - started
            print(f"{options.channels} channels, {options.executions} runs, {size:.0f} MB: {spent:.0f} s of CPU")
        chosen = pages(registry).items()
    finally:
        registry.close()
    return {name: address for name, address in chosen if not options.page or options.page in name}


async def measure_in_browser(options: argparse.Namespace, folder: Path) -> None:
    """Measure speed and accessibility on one server, and print the tables."""
    addresses = await asyncio.to_thread(registry_in, folder, options)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with speed.serving(folder) as server:
            if "speed" in options.only:
                visits = [visit.row() async for visit in speed.measure(browser, server, addresses)]
                print(table(speed.HEADS, visits), end="\n\n", flush=True)
            if "access" in options.only:
                views = wrong = 0
                async for view, found in access.findings(browser, server.url, addresses):
                    views, wrong = views + 1, wrong + len(found)
                    print(*(f"{view}: {one}" for one in found), sep="\n", end="\n" if found else "", flush=True)
                print(f"axe-core: {views} views of {len(addresses)} pages, {wrong} findings")
        await browser.close()


async def measure_order(_options: argparse.Namespace, _folder: Path) -> None:
    """Compare the order of results for every set, and print the table."""
    found = [await order.places(one) for one in own_sets()]
    print(table(order.HEADS, [one.row() for one in found]), *(text for one in found for text in one.differ), sep="\n")


PARTS: dict[str, Callable[[argparse.Namespace, Path], Coroutine[Any, Any, None]]] = {
    "speed": measure_in_browser,
    "access": measure_in_browser,
    "order": measure_order,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__)
    parser.add_argument("--only", action="append", choices=PARTS, help="one part; may be repeated")
    parser.add_argument("--folder", type=Path, help="folder that keeps the registry")
    parser.add_argument("--channels", type=int, default=50_000)
    parser.add_argument("--executions", type=int, default=1_000_000)
    parser.add_argument("--page", help="only pages whose names contain this")
    options = parser.parse_args()
    options.only = options.only or list(PARTS)
    with tempfile.TemporaryDirectory() as folder:
        for part in dict.fromkeys(PARTS[name] for name in options.only):
            asyncio.run(part(options, options.folder or Path(folder)))


if __name__ == "__main__":
    main()
