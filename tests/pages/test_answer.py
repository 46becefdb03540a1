"""Test the MCP App in a chat, in a sandbox as hosts run it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, TextResourceContents
from playwright.async_api import Browser

from mcp_server.server import create_server
from orchestrator.service import Orchestrator
from registry.registry import Registry

pytestmark = pytest.mark.anyio

HOST = """([page, answer]) => new Promise((done) => {
  const frame = document.createElement("iframe")
  frame.sandbox = "allow-scripts"
  const send = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*")
  addEventListener("message", ({ data }) => {
    if (data.method === "ui/initialize") send({ id: data.id, result: { hostContext: { locale: "en-GB" } } })
    if (data.method === "ui/notifications/initialized")
      send({ method: "ui/notifications/tool-result", params: answer }), done()
    if (data.method === "ui/message") window.said = data.params.content[0].text
  })
  frame.srcdoc = page
  document.body.append(frame)
})"""


async def app_page_and_answer(folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the app's page, and an answer with two candidates."""
    registry = Registry(f"sqlite:///{folder}/registry.db")
    orchestrator = Orchestrator(registry)
    for place in ("mailer", "printer"):
        said = [
            {"role": "user", "text": f"The queue of the {place} is full. <img src=x onerror=alert(1)>"},
            {"role": "assistant", "text": f"Empty it with the {place}'s own tool."},
        ]
        chat = {"channel": place, "source": "claude", "metadata": {"title": f"Queue of the {place}"}}
        await orchestrator.run({"operation": "save", "messages": said, **chat})
    async with Client(create_server(orchestrator.run)) as client:
        assert client.server_capabilities.extensions == {"io.modelcontextprotocol/ui": {}}
        [tool] = [tool for tool in (await client.list_tools()).tools if tool.meta]
        [page] = (await client.read_resource(tool.meta["ui"]["resourceUri"])).contents  # type: ignore[index]
        answer = await client.call_tool(tool.name, {"query": "how was the full queue solved?"})
    registry.close()
    assert isinstance(page, TextResourceContents)
    assert isinstance(answer, CallToolResult)
    assert page.mime_type == "text/html;profile=mcp-app"
    return page.text, answer.model_dump(mode="json", by_alias=True, exclude_none=True)


async def test_the_app_shows_the_conversation_and_its_candidates_and_asks_for_the_chosen_one(
    browser: Browser, tmp_path: Path
) -> None:
    page, answer = await app_page_and_answer(tmp_path)
    shown = await browser.new_page()
    await shown.evaluate(HOST, [page, answer])
    app = shown.frame_locator("iframe")
    await app.get_by_role("button", name="Continue this one").click()
    text = await app.locator("main").inner_text()
    await shown.wait_for_function("() => window.said")
    other = answer["structuredContent"]["result"]["candidates"][0]["channel"]
    assert await shown.evaluate("window.said") == f"Extract the channel {other}: that is the conversation I mean."
    assert "Queue of the mailer" in text
    assert "Queue of the printer" in text
    assert "<img src=x onerror" in text
    assert await app.locator("img").count() == 0
    await shown.close()
