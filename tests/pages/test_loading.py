"""Test pages that load piece by piece, as over a slow line: visible parts do not move."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.pages.conftest import assert_still, serving, watch_movement, window
from tests.pages.seeds import AGENT, LONG, seed
from tests.pages.test_flow import last_extract
from tests.seeded import SeededFiles

pytestmark = pytest.mark.anyio
PIECES = re.compile(rb"(?=<(?:header|nav|main|form|label|section|article|div (?:id|class)|p|ol)\b)")
MOST_PIECES = 40
SHOWN_S = 0.01  # two of them in a frame
PATHS = (
    ("/", 1280),
    (f"/channels/{AGENT.replace('/', '%2F')}", 1280),
    (f"/channels/{LONG}?q=cache", 390),
    ("/flow", 390),
    ("/today", 390),
    ("/insights", 1280),
    ("/settings", 390),
)
"""A page of each layout."""


def in_pieces(app: ASGIApp) -> ASGIApp:
    """Wrap an application: its pages are sent in pieces, with time to show each before the next."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def slowly(message: Message) -> None:
            page = message.get("body", b"")
            if page.startswith(b"<!doctype"):
                *pieces, page = PIECES.split(page, MOST_PIECES)
                for piece in pieces:
                    await send({**message, "body": piece, "more_body": True})
                    await asyncio.sleep(SHOWN_S)
                message["body"] = page
            await send(message)

        plain = [(name, value) for name, value in scope.get("headers", []) if name != b"accept-encoding"]
        await app({**scope, "headers": plain}, receive, slowly)

    return answer


@pytest.fixture(scope="module")
async def slow_server(seeded_files: SeededFiles, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    with serving(await seeded_files.copy(seed, tmp_path_factory.mktemp("slow")), in_pieces) as address:
        yield address


async def test_visible_parts_stay_in_place_while_the_rest_of_the_page_loads(slow_server: str, browser: Browser) -> None:
    async with window(browser) as page:
        await watch_movement(page)
        for path, width in (*PATHS, (f"/flow/{await last_extract(slow_server)}", 390)):
            await page.set_viewport_size({"width": width, "height": 844})
            await page.goto(slow_server + path)
            await assert_still(page, 0.002)
