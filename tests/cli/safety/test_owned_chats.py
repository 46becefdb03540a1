"""What the terminal of a shared registry does with the conversations of one person."""

from __future__ import annotations

import asyncio
import json

import pytest

from orchestrator.service import Orchestrator
from registry.access import Access, Level
from registry.registry import Registry
from tests.cli.conftest import Ctxr, bare_ctxr


@pytest.fixture
def ctxr(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Ctxr:
    """Commands over a registry where kim and lee each have two chats, the second one of lee's shared with all."""
    monkeypatch.setenv("CTXR_DATABASE_URL", database_url)

    async def fill(orchestrator: Orchestrator) -> None:
        for owner in ("kim", "lee"):
            access = Access(owner, Level.WRITE, owner=owner)
            for number in (1, 2):
                said = [{"role": "user", "text": f"{owner} asked {number}"}, {"role": "assistant", "text": "yes"}]
                about = {"source": "codex", "metadata": {"project": "/srv/shop", "title": f"Of {owner}"}}
                given = {"operation": "conversation_log", "channel": f"{owner}_{number}", "messages": said, **about}
                assert (await orchestrator.run(given, access=access))["success"]
        shared = {"operation": "share", "channel": "lee_2", "query": {"with": "team"}}
        assert (await orchestrator.run(shared))["success"]

    registry = Registry(database_url)
    asyncio.run(fill(Orchestrator(registry)))
    registry.close()
    return bare_ctxr


def channels(ctxr: Ctxr) -> list[str]:
    return sorted(one["channel"] for one in json.loads(ctxr("list", "--json").stdout)["sessions"])


def test_all_chats_of_one_person_are_forgotten_after_a_preview(ctxr: Ctxr) -> None:
    would = ctxr("forget", "--owner", "kim", "--dry-run")
    assert would.stdout == "Would forget 4 messages (2 whole conversations).\n"
    assert len(channels(ctxr)) == 4
    assert "Forgotten: 4 messages (2 whole conversations)" in ctxr("forget", "--owner", "kim", "--yes").stdout
    assert channels(ctxr) == ["lee_1", "lee_2"]
    assert ctxr("forget", "--owner", "kim", "--yes").exit_code == 3
    refused = ctxr("forget", "--owner", "lee", "--matching", "asked", "--yes")
    assert (refused.exit_code, "either owner or matching" in refused.output) == (2, True)
