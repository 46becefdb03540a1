"""Test that images of the clients' messages are stored, shown and forgotten with their messages."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Page

from orchestrator.service import Orchestrator
from orchestrator.state import LocalFiles
from orchestrator.sync.sync import sync
from registry.access import Access, Level
from registry.registry import Registry
from registry.storage.conversations.images import count_images
from sources.base import Paths
from sources.readers import READERS
from tests.backoffice.application import application, client_of
from tests.pages.conftest import serving
from tests.pages.test_markdown import PIXEL
from tests.sources.claude_code import claude_code_files as claude
from tests.sources.codex import codex_files as codex
from tests.sources.gemini import gemini_files as gemini

pytestmark = [pytest.mark.anyio, pytest.mark.both_databases]

PNG, GIF = b"\x89PNG\r\n\x1a\n a chart", b"GIF89a a cat"
SVG = b"<svg onload='alert(1)'/>"
LARGE = PNG + b"\0" * 5 * 2**20


@pytest.fixture
async def orchestrator(database_url: str, tmp_path: Path) -> AsyncIterator[Orchestrator]:
    """Return an orchestrator over an empty registry."""
    registry = Registry(database_url)
    files = LocalFiles(tmp_path / "backups", [], Paths(tmp_path, {}), tmp_path / "resume")
    yield Orchestrator(registry, local_files=files)
    registry.close()


def block(content: bytes) -> dict[str, Any]:
    """Return an image as Claude Code writes it."""
    data = b64encode(content).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


@dataclass
class Reader:
    """A user who talks to Claude Code and reads the pages."""

    orchestrator: Orchestrator
    home: Path
    http: httpx.AsyncClient
    talk: claude.Dialogue = field(default_factory=lambda: claude.Dialogue(claude.session_id(1)))

    async def import_histories(self) -> str:
        """Import what the clients have written; return the page of the only conversation."""
        claude.write(self.home / ".claude", self.talk)
        await sync(self.orchestrator, READERS, Paths(self.home, {}))
        return await self.page()

    async def page(self) -> str:
        listed = (await self.orchestrator.run({"operation": "list", "query": {}}))["sessions"]
        return (await self.http.get(f"/channels/{listed[0]['channel']}")).text

    async def stored(self) -> int:
        return (await self.orchestrator.registry.read(count_images))[0]


@pytest.fixture
async def reader(orchestrator: Orchestrator, empty_home: Path) -> AsyncIterator[Reader]:
    """Return a reader of an empty registry."""
    async with client_of(application(orchestrator), Accept="text/html") as http:
        yield Reader(orchestrator, empty_home, http)


def shown_in(page: str) -> list[str]:
    """Return the addresses of the images on a page."""
    return re.findall(r'<img src="(/messages/\w+/attachments/\d+)"', page)


async def test_images_of_a_message_are_shown_and_what_is_not_stored_is_named(reader: Reader) -> None:
    document = {"type": "document", "title": "plan.pdf"}
    contents = [document, block(PNG), block(SVG), block(LARGE), block(GIF)]
    reader.talk.user([{"type": "text", "text": "What is wrong here?"}, *contents])
    page = await reader.import_histories()
    png, gif = shown_in(page)
    assert "3 attachments, not stored: plan.pdf, image/png, image/png" in page
    for address, content, kind in ((png, PNG, "image/png"), (gif, GIF, "image/gif")):
        answer = await reader.http.get(address)
        assert (answer.content, answer.headers["content-type"]) == (content, kind)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert (await reader.http.get(png.replace("/1", "/0"))).status_code == 404


async def test_a_message_that_is_only_an_image_and_a_tools_screenshot_are_shown(reader: Reader) -> None:
    reader.talk.user([block(PNG)])
    reader.talk.calls("screenshot", {}, "toolu_1", "msg_1")
    reader.talk.result("toolu_1", [{"type": "text", "text": "taken"}, block(GIF)])
    page = await reader.import_histories()
    assert len(shown_in(page)) == 2
    assert "<p>[image/png]</p>" not in page


async def test_one_image_in_two_messages_is_stored_once_and_forgotten_with_the_second(reader: Reader) -> None:
    reader.talk.user([{"type": "text", "text": "Before"}, block(PNG)])
    reader.talk.says("A chart.", "msg_1")
    reader.talk.user([{"type": "text", "text": "The same again"}, block(PNG)])
    first, second = shown_in(await reader.import_histories())
    assert await reader.stored() == 1
    for address, left in ((first, 1), (second, 0)):
        forgetting = {"operation": "delete", "query": {"id": address.split("/")[2], "soft": False}}
        assert (await reader.orchestrator.run(forgetting))["success"]
        assert (await reader.http.get(address)).status_code == 404
        assert await reader.stored() == left
    reader.talk.says("Go on.", "msg_2")
    assert shown_in(await reader.import_histories()) == []
    assert await reader.stored() == 0


async def test_a_forgotten_conversation_leaves_no_image(reader: Reader) -> None:
    reader.talk.user([{"type": "text", "text": "What is wrong here?"}, block(PNG)])
    await reader.import_histories()
    channel = (await reader.orchestrator.run({"operation": "list", "query": {}}))["sessions"][0]["channel"]
    await reader.orchestrator.run({"operation": "delete", "channel": channel, "query": {"soft": False}})
    assert await reader.stored() == 0


async def test_an_image_beside_private_text_is_not_stored(reader: Reader) -> None:
    reader.talk.user([{"type": "text", "text": "Look <private>at my diary</private>"}, block(PNG)])
    assert "1 attachment, not stored" in await reader.import_histories()
    assert await reader.stored() == 0


async def test_a_prompt_that_a_hook_kept_gets_its_image_from_the_history(reader: Reader) -> None:
    about = {"source": "claude-code", "metadata": {"session_id": reader.talk.session_id}}
    sent = [{"role": "user", "text": "What is wrong here?", "timestamp": claude.BEGIN.isoformat()}]
    await reader.orchestrator.run({"operation": "conversation_log", "messages": sent, **about})
    reader.talk.user([{"type": "text", "text": "What is wrong here?"}, block(PNG)])
    assert len(shown_in(await reader.import_histories())) == 1
    assert len((await reader.orchestrator.run({"operation": "list", "query": {}}))["sessions"]) == 1


async def test_images_of_codex_and_gemini_are_shown(reader: Reader) -> None:
    url = f"data:image/png;base64,{b64encode(PNG).decode()}"
    rollout = codex.Rollout(codex.thread_id(1))
    rollout.meta()
    rollout.turn("t1")
    content = [{"type": "input_text", "text": "Codex, look"}, {"type": "input_image", "image_url": url}]
    rollout.add("response_item", type="message", role="user", content=content)
    rollout.event("user_message", message="Codex, look", images=[], local_images=["/tmp/pasted.png"])
    codex.write(reader.home / ".codex", rollout)
    assert len(shown_in(await reader.import_histories())) == 1
    chat = gemini.Chat()
    part = {"inlineData": {"mimeType": "image/gif", "data": b64encode(GIF).decode()}}
    chat.add("user", [{"text": "Gemini, look"}, part, part])
    gemini.write(reader.home / ".gemini", chat)
    assert len(shown_in(await reader.import_histories())) == 2


async def test_a_reader_without_access_to_the_conversation_gets_no_image(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.talk.user([{"type": "text", "text": "What is wrong here?"}, block(PNG)])
    [address] = shown_in(await reader.import_histories())
    for projects, status in ((("/home/ann/shop",), 200), (("/home/ann/other",), 404)):
        access = Access("limited", Level.READ, projects=projects)
        monkeypatch.setattr("backoffice.dependencies._access", lambda _request, access=access: access)
        assert (await reader.http.get(address)).status_code == status


async def test_a_backup_has_the_images(reader: Reader) -> None:
    reader.talk.user([{"type": "text", "text": "What is wrong here?"}, block(PNG)])
    [address] = shown_in(await reader.import_histories())
    backup = await reader.orchestrator.run({"operation": "create_backup", "query": {"stores": False}})
    forgetting = {"operation": "delete", "query": {"soft": True, "id": address.split("/")[2]}}
    await reader.orchestrator.run(forgetting)
    restored = await reader.orchestrator.run({"operation": "restore_backup", "query": {"path": backup["path"]}})
    assert restored["success"], restored
    assert (await reader.http.get(address)).content == PNG


async def test_a_browser_shows_the_image_under_the_pages_policy(sqlite_url: str, empty_home: Path, page: Page) -> None:
    talk = claude.Dialogue(claude.session_id(1))
    talk.user([{"type": "text", "text": "What is wrong here?"}, block(b64decode(PIXEL.partition(",")[2]))])
    claude.write(empty_home / ".claude", talk)
    registry = Registry(sqlite_url)
    await sync(Orchestrator(registry), READERS, Paths(empty_home, {}))
    registry.close()
    with serving(sqlite_url) as address:
        await page.goto(address)
        await page.locator("#rows [data-main]").first.click()
        image = page.locator(".pictures img")
        await image.scroll_into_view_if_needed()
        await page.wait_for_function("() => document.querySelector('.pictures img').complete")
        assert await image.evaluate("(one) => one.naturalWidth") == 1
