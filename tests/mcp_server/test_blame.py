"""Test `list_sessions` with a file or commit: the conversations in which a line or commit was made."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import Implementation

from mcp_server.server import create_server
from orchestrator.service import Orchestrator
from registry.access import Access, Level
from tests.mcp_server.calls import call

pytestmark = pytest.mark.anyio

LINE = "    return sum(row.price for row in basket if row.is_kept) or DEFAULT_TOTAL"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with one line in one commit."""
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "basket.py").write_text(f"def total(basket):\n{LINE}\n", encoding="utf-8")
    when = {"GIT_AUTHOR_DATE": "1772442000 +0000", "GIT_COMMITTER_DATE": "1772442000 +0000"}
    env = {**os.environ, **when, "GIT_CONFIG_GLOBAL": os.devnull}
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "Add the total")):
        subprocess.run(["git", *who, "-C", str(shop), *words], env=env, check=True, capture_output=True)
    return shop


async def ask(orchestrator: Orchestrator, shop: Path, **arguments: Any) -> dict[str, Any]:
    """Call `list_sessions` from a client in that folder."""
    server = create_server(orchestrator.run, project=str(shop))
    async with Client(server, client_info=Implementation(name="cursor-vscode", version="1.0")) as client:
        return await call(client, "list_sessions", **arguments)


async def log(orchestrator: Orchestrator, shop: Path, channel: str, text: str) -> None:
    messages = [
        {"role": "user", "text": "Write the total of a basket.", "timestamp": "2026-03-02T08:40:00Z"},
        {"role": "assistant", "text": text, "timestamp": "2026-03-02T08:41:00Z"},
    ]
    meta = {"source": "codex", "project": str(shop), "title": channel}
    logged = {"operation": "conversation_log", "channel": channel, "messages": messages, "meta": meta}
    assert (await orchestrator.run(logged))["success"]


async def test_the_conversation_in_which_a_line_or_commit_was_made_is_first(
    orchestrator: Orchestrator, shop: Path
) -> None:
    await log(orchestrator, shop, "wrote it", f"```python\ndef total(basket):\n{LINE}\n```")
    await log(orchestrator, shop, "speaks of it", "A basket needs a total, I think.")
    for asked in ({"file": "basket.py:2"}, {"file": "basket.py"}, {"commit": "HEAD"}):
        answer = await ask(orchestrator, shop, **asked)
        first = answer["result"]["sessions"][0]
        assert (first["title"], first["confidence"]) == ("wrote it", "high")
        assert first["commit"]["summary"] == "Add the total"
        assert first["message_id"].startswith("conv_")
        count = len(answer["result"]["sessions"])
        assert answer["result"]["pagination"] == {"total": count, "limit": count, "offset": 0, "has_more": False}


async def test_a_file_unknown_to_git_is_not_found(orchestrator: Orchestrator, shop: Path) -> None:
    assert (await ask(orchestrator, shop, file="nowhere.py"))["error"]["code"] == "NOT_FOUND"
    both = await ask(orchestrator, shop, file="basket.py", commit="HEAD")
    assert both["error"]["code"] == "INVALID_REQUEST"


async def test_a_caller_who_may_not_run_git_on_the_server_is_told_what_to_do(
    orchestrator: Orchestrator, shop: Path
) -> None:
    await log(orchestrator, shop, "a_wrote_it", f"```python\ndef total(basket):\n{LINE}\n```")
    asked = {"operation": "blame", "query": {"file": "basket.py", "folder": str(shop)}}
    for access, expected in (
        (Access("phone", Level.READ), "run ctxr blame on the machine where the repository is"),
        (Access("desk", Level.ADMIN, ("a_*",)), "needed: scope admin, for all"),
    ):
        refused = (await orchestrator.run(asked, access=access))["error"]
        assert refused["code"] == "UNAUTHORIZED"
        assert expected in refused["details"]
    assert (await orchestrator.run(asked, access=Access("house", Level.ADMIN)))["success"]
