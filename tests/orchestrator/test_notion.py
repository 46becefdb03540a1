"""Test Notion's pages: read through its MCP server, stored as snapshots, and listed in the briefing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.server import MCPServer

from orchestrator.outside import tools
from orchestrator.outside.notion import Notion
from orchestrator.service import Orchestrator
from orchestrator.sync.store_report import StoreReport
from orchestrator.sync.sync import sync
from registry.settings import McpServerSettings
from sources.base import Paths

pytestmark = pytest.mark.anyio

DAY = "2026-01-05"
SERVER = McpServerSettings(command=["notion"])


class Workspace:
    """Notion's own server: answers and refusals of its API as text."""

    def __init__(self) -> None:
        self.pages: dict[str, dict[str, Any]] = {}
        self.read: list[str] = []
        self.refusal: dict[str, Any] | None = None
        self.server = MCPServer("Notion API")
        self.server.tool(name="API-get-self")(self.get_self)
        self.server.tool(name="API-post-search")(self.post_search)
        self.server.tool(name="API-retrieve-page-markdown")(self.retrieve_page)

    def write(self, name: str, text: str, edited: str, by: str = "me") -> None:
        self.pages[name] = {"text": text, "edited": f"{edited}.000Z", "by": by}

    def get_self(self) -> str:
        return json.dumps(self.refusal or {"object": "user", "id": "bot"})

    def post_search(self, filter: dict[str, Any], sort: dict[str, Any], page_size: int, start_cursor: str = "0") -> str:
        at = int(start_cursor)
        names = sorted(self.pages, key=lambda name: self.pages[name]["edited"], reverse=True)
        found = {"results": [self.found(name) for name in names[at : at + 1]], "has_more": at + 1 < len(names)}
        return json.dumps(found | {"next_cursor": str(at + 1)})

    def found(self, name: str) -> dict[str, Any]:
        page = self.pages[name]
        title = {"title": {"type": "title", "title": [{"plain_text": f"Page {name}"}]}}
        about = {"id": name, "last_edited_time": page["edited"], "created_by": {"id": page["by"]}}
        return about | {"properties": title, "in_trash": False}

    def retrieve_page(self, page_id: str) -> str:
        self.read.append(page_id)
        return json.dumps({"object": "page_markdown", "markdown": self.pages[page_id]["text"]})


@pytest.fixture
def workspace(monkeypatch: pytest.MonkeyPatch) -> Workspace:
    workspace = Workspace()
    monkeypatch.setattr(tools, "_target", lambda *_: workspace.server)
    workspace.write("plans", "We decided to ship in March.", f"{DAY}T10:00:00")
    workspace.write("roads", "TODO: the timetable.", f"{DAY}T11:00:00")
    return workspace


async def sync_notion(orchestrator: Orchestrator, tmp_path: Path) -> StoreReport:
    [report] = await sync(orchestrator, [Notion(SERVER)], Paths(tmp_path, {}))
    return report


async def messages(orchestrator: Orchestrator, page: str) -> list[dict[str, Any]]:
    query = {"session_id": page, "message_limit": 10}
    answer = await orchestrator.run({"operation": "fetch", "query": query})
    found: list[dict[str, Any]] = answer["messages"]
    return found


async def test_each_state_of_a_page_is_a_snapshot_and_only_edited_pages_are_read(
    orchestrator: Orchestrator, workspace: Workspace, tmp_path: Path
) -> None:
    assert (await sync_notion(orchestrator, tmp_path)).new_messages == 2
    assert (await sync_notion(orchestrator, tmp_path)).new_messages == 0
    workspace.write("plans", "We decided to ship in April.", f"{DAY}T12:00:00")
    assert (await sync_notion(orchestrator, tmp_path)).new_messages == 1
    assert workspace.read == ["roads", "plans", "plans"]
    kept = await messages(orchestrator, "plans")
    assert [one["text"] for one in kept] == ["We decided to ship in March.", "We decided to ship in April."]
    assert all(one["id"].startswith("snap_") for one in kept)


async def test_pages_made_by_the_product_are_not_imported(
    orchestrator: Orchestrator, workspace: Workspace, tmp_path: Path
) -> None:
    workspace.write("briefing", "Decided: March.", f"{DAY}T13:00:00", by="bot")
    assert (await sync_notion(orchestrator, tmp_path)).new_messages == 2
    assert "briefing" not in workspace.read


async def test_a_refusal_of_notion_is_reported_and_stored_snapshots_stay(
    orchestrator: Orchestrator, workspace: Workspace, tmp_path: Path
) -> None:
    await sync_notion(orchestrator, tmp_path)
    workspace.refusal = {"object": "error", "status": 401, "message": "API token is invalid."}
    report = await sync_notion(orchestrator, tmp_path)
    assert not report.is_complete
    assert "API token is invalid." in report.skipped[0].why
    assert len(await messages(orchestrator, "plans")) == 1


async def test_a_briefing_covers_the_kinds_of_data_that_are_asked_for(
    orchestrator: Orchestrator, workspace: Workspace, tmp_path: Path
) -> None:
    await sync_notion(orchestrator, tmp_path)
    said = [{"role": "assistant", "text": "Let's go with Redis.", "timestamp": f"{DAY}T09:00:00Z"}]
    await orchestrator.run({"operation": "save", "channel": "shop", "messages": said})
    texts = {"notion_snapshots": "We decided to ship in March.", "conversation_summaries": "Let's go with Redis."}
    for kinds in (list(texts), ["notion_snapshots"], ["conversation_summaries"]):
        asked = {"operation": "daily_briefing", "query": {"date": DAY, "data_types": kinds}, "source": "backoffice"}
        text = (await orchestrator.run(asked))["briefing"]["text"]
        assert [kind for kind, words in texts.items() if words in text] == kinds
