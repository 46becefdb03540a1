"""Test that pictures and recordings in the results of tools are named, not stored as text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.service import Orchestrator
from orchestrator.sync.sync import sync
from registry.storage.conversations.channels import list_channels
from registry.storage.paging import Page
from sources.base import Paths
from sources.readers import READERS
from tests.sources.cline import cline_files as cline
from tests.sources.codex import codex_files as codex
from tests.sources.copilot import copilot_files as copilot
from tests.sources.kimi import kimi_files as kimi

pytestmark = pytest.mark.anyio

PICTURE = "iVBORw0KGgoAAAANSUhEUg" * 9
URL = f"data:image/png;base64,{PICTURE}"


def write_stores(home: Path) -> None:
    part = {"type": "image_url", "imageUrl": {"url": URL}}
    called = kimi.event("tool.call", toolCallId="c1", name="ReadMediaFile", args={"path": "a.png"})
    kimi.write(home / ".kimi-code", [called, kimi.event("tool.result", toolCallId="c1", result={"output": [part]})])

    seen = json.dumps({"screenshot": URL, "logs": "no errors", "currentUrl": "http://localhost"})
    view = [cline.shown("browser_action_launch", "http://localhost", 1), cline.shown("browser_action_result", seen, 2)]
    cline.write_task(home / ".cline" / "data", view)

    rollout = codex.Rollout(codex.thread_id(1))
    rollout.meta()
    resource = {"type": "resource", "resource": {"uri": "file:///a.bin", "blob": PICTURE}}
    content = [{"type": "audio", "data": PICTURE, "mimeType": "audio/wav"}, resource]
    invocation = {"server": "shop", "tool": "look", "arguments": {}}
    rollout.event("mcp_tool_call_end", call_id="c1", invocation=invocation, result={"Ok": {"content": content}})
    codex.write(home / ".codex", rollout)

    output = [{"type": "embed", "isText": False, "mimeType": "image/png", "value": PICTURE}]
    shown = copilot.tool("c1", "look", "Looking", resultDetails={"input": "{}", "output": output})
    copilot.write_chat(home / ".config" / "Code" / "User", copilot.chat(1, copilot.asked("r1", "Look", shown)))


async def test_pictures_in_results_are_named_and_not_stored(orchestrator: Orchestrator, empty_home: Path) -> None:
    write_stores(empty_home)
    await sync(orchestrator, READERS, Paths(empty_home, {}))
    page = await orchestrator.registry.read(lambda tx: list_channels(tx, {}, Page(limit=10)))
    stored = [await orchestrator.registry.get_conversations(one["channel"]) for one in page["items"]]
    assert PICTURE[:40] not in json.dumps(stored)
    results = {
        one["source"]: one["payload"]["tool"]["result"] for some in stored for one in some if "tool" in one["role"]
    }
    assert results == {
        "kimi-code": "[image]",
        "cline": "http://localhost\nno errors\n[screenshot]",
        "codex": "[audio]\n[file:///a.bin]",
        "copilot-vscode": "[image/png]",
    }
