"""Check the accessibility of each page with axe-core, in both languages and themes, at three widths."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from itertools import product
from typing import Literal

from playwright.async_api import Browser

from benchmarks.pages.addresses import FRAGMENTS, open_page
from tests.pages.axe import axe_script, violations

LOCALES = ("en-US", "ko-KR")
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTHS = (390, 800, 1440)
# Opens all menus at once. Rows behind an open menu are hidden, because they cannot be used while it is open.
OPEN = """() => {
  document.querySelectorAll("details:not(.about)").forEach((one) => (one.open = true));
  const menus = [...document.querySelectorAll(".menu > .pop")].map((one) => one.getBoundingClientRect());
  for (const row of document.querySelectorAll("[data-row]")) {
    const at = row.getBoundingClientRect();
    const isUnder = (menu) =>
      menu.top < at.bottom && at.top < menu.bottom && menu.left < at.right && at.left < menu.right;
    if (menus.some(isUnder)) row.style.visibility = "hidden";
  }
}"""


async def findings(browser: Browser, url: str, addresses: Mapping[str, str]) -> AsyncIterator[tuple[str, list[str]]]:
    """Yield each view with its findings: those of axe-core, and a page wider than the window."""
    script = axe_script()
    for locale, theme, width in product(LOCALES, THEMES, WIDTHS):
        context = await browser.new_context(
            locale=locale, color_scheme=theme, viewport={"width": width, "height": 900}, timezone_id="Asia/Seoul"
        )
        page = await context.new_page()
        page.set_default_timeout(120_000)
        for name, address in ((one, at) for one, at in addresses.items() if one not in FRAGMENTS):
            await open_page(page, url, name, address)
            await page.evaluate(OPEN)
            found = await violations(page, script)
            wide = await page.evaluate("document.documentElement.scrollWidth")
            if wide > width:
                found.append(f"wider than its window: {wide}")
            yield f"{name}, {locale[:2]}, {theme}, {width}", found
        await context.close()
