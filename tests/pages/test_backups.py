"""Test the page of backups: listed, and restored."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.service import Orchestrator
from orchestrator.state import LocalFiles
from registry.registry import Registry
from sources.base import Paths
from tests.backoffice.application import application, client_of

pytestmark = pytest.mark.anyio


async def test_backups_are_listed_with_their_contents_damaged_ones_named_and_restored(
    sqlite_url: str, tmp_path: Path
) -> None:
    registry = Registry(sqlite_url)
    orchestrator = Orchestrator(
        registry, local_files=LocalFiles(tmp_path / "backups", [], Paths(tmp_path, {}), tmp_path / "resume")
    )
    async with client_of(application(orchestrator), accept="text/html") as http:
        assert "No backups yet" in (await http.get("/settings/backups")).text
        log = {"operation": "conversation_log", "channel": "a", "messages": [{"role": "user", "text": "hi"}]}
        assert (await orchestrator.run(log))["success"]
        assert (await orchestrator.run({"operation": "create_backup", "query": {}}))["success"]
        (tmp_path / "backups" / "torn.zip").write_bytes(b"PK")
        shown = (await http.get("/settings/backups")).text
        assert (await http.get("/bo/backups")).json()["total"] == 2
        [backup] = re.findall(r'action="(/settings/backups/[^"]+/restoration)"', shown)
        assert (await orchestrator.run({**log, "messages": [{"role": "user", "text": "written since"}]}))["success"]
        restored = (await http.post(backup)).text
        assert "Restored from" in restored
        assert "-before-restore" in restored, "the page names the backup made before the restore"
        messages = (await http.get("/bo/conversations", params={"channel": "a"})).json()["items"]
        assert [one["text"] for one in messages] == ["hi"]
        assert (await http.post("/settings/backups/nothing.zip/restoration")).status_code == 404
    registry.close()
    assert "1 conversation" in shown
    assert "1 message" in shown
    assert "damaged" in shown
