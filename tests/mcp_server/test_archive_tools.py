"""Test the archive and admin toolsets: both are off by default, and say how to switch them on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp import Client

from mcp_server.server import create_server, tools_of
from orchestrator.service import Orchestrator
from orchestrator.state import LocalFiles
from registry.registry import Registry
from sources.base import Paths
from tests.mcp_server.calls import call

pytestmark = pytest.mark.anyio


@pytest.fixture
async def orchestrator(sqlite_url: str, tmp_path: Path) -> AsyncIterator[Orchestrator]:
    registry = Registry(sqlite_url)
    yield Orchestrator(
        registry, local_files=LocalFiles(tmp_path / "backups", [], Paths(tmp_path, {}), tmp_path / "resume")
    )
    registry.close()


async def test_an_archive_tool_in_no_toolset_says_how_to_switch_it_on(orchestrator: Orchestrator) -> None:
    for tool in tools_of("archive"):
        async with Client(create_server(orchestrator.run, ("default", "history"))) as client:
            assert tool not in {one.name for one in (await client.list_tools()).tools}
            answer = await call(client, tool, path="x")
        assert answer["error"]["code"] == "INVALID_REQUEST"
        assert "--toolsets default,archive" in answer["error"]["details"]


async def test_a_model_creates_checks_and_restores_a_backup(orchestrator: Orchestrator) -> None:
    async with Client(create_server(orchestrator.run, ("default", "archive"), is_local=True)) as client:
        await call(client, "conversation_log", channel="auth", messages=[{"role": "user", "text": "JWT?"}])
        made = (await call(client, "create_backup"))["result"]
        assert made["manifest"]["stats"]["messageCount"] == 1
        assert [one["path"] for one in (await call(client, "list_backups"))["result"]["backups"]] == [made["path"]]
        assert (await call(client, "validate_backup", path=made["path"]))["result"]["valid"] is True
        await call(client, "conversation_log", channel="later", messages=[{"role": "user", "text": "after"}])
        back = (await call(client, "restore_backup", path=made["path"]))["result"]
        assert (back["sessionsRestored"], back["messagesRestored"]) == (1, 1)
        assert "before-restore" in back["safety_copy"]
        assert (await call(client, "list_sessions", full=True, project="all"))["result"]["pagination"]["total"] == 1


async def test_a_server_for_other_machines_accepts_no_path_for_backups(
    orchestrator: Orchestrator, tmp_path: Path
) -> None:
    async with Client(create_server(orchestrator.run, ("archive",))) as client:
        for tool in ("create_backup", "validate_backup", "restore_backup"):
            answer = await call(client, tool, path=str(tmp_path / "x.zip"))
            assert answer["error"]["code"] == "INVALID_REQUEST"
        name = Path((await call(client, "create_backup"))["result"]["path"]).name
        assert (await call(client, "restore_backup", path=name, dry_run=True))["ok"]


async def test_the_forget_tool_in_no_toolset_says_how_to_switch_it_on(orchestrator: Orchestrator) -> None:
    async with Client(create_server(orchestrator.run, ("default", "history", "archive"))) as client:
        assert "forget" not in {one.name for one in (await client.list_tools()).tools}
        answer = await call(client, "forget", channel="auth")
    assert "--toolsets default,admin" in answer["error"]["details"]


async def test_forget_previews_what_it_would_delete(orchestrator: Orchestrator) -> None:
    async with Client(create_server(orchestrator.run, ("default", "admin"))) as client:
        await call(client, "conversation_log", channel="auth", messages=[{"role": "user", "text": "JWT?"}])
        preview = (await call(client, "forget", channel="auth"))["result"]["receipt"]
        assert (preview["messages"], preview["is_dry_run"]) == (1, True)
        done = (await call(client, "forget", channel="auth", dry_run=False))["result"]
        assert (done["receipt"]["channels"], done["receipt"]["backups"]) == (1, [])
        assert done.keys() == {"receipt"}
        assert (await call(client, "extract", query={"text": "JWT?"}))["error"]["code"] == "NOT_FOUND"
        assert (await call(client, "forget"))["error"]["code"] == "INVALID_REQUEST"
