"""The log of acts: who did what, according to the recorded runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from orchestrator.service import Orchestrator
from registry.access import Access, Level
from registry.registry import Registry
from registry.storage.records import acts as records_of_acts
from registry.storage.records.acts import read_acts
from registry.storage.safety.tokens import create_token

pytestmark = [pytest.mark.anyio, pytest.mark.both_databases]


@pytest.fixture
async def orchestrator(database_url: str) -> AsyncIterator[Orchestrator]:
    registry = Registry(database_url)
    await registry.write(lambda tx: create_token(tx, "kim-laptop", Level.WRITE, owner="kim"))
    yield Orchestrator(registry)
    registry.close()


def access(name: str, level: Level = Level.WRITE, owner: str | None = None) -> Access:
    return Access(name, level, owner=owner or name)


async def acts(orchestrator: Orchestrator, who: str | None = None, **wanted: Any) -> list[tuple[Any, ...]]:
    read = partial(read_acts, wanted=wanted, who=who)
    found, cursor = await orchestrator.registry.read(read)
    while cursor:
        more, cursor = await orchestrator.registry.read(partial(read, cursor=cursor))
        found += more
    return [(one["who"], one["operation"], one["channel"], one["details"], one["outcome"]) for one in found]


async def test_acts_name_who_wrote_and_deleted(orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch) -> None:
    kim, boss = access("kim-laptop", owner="kim"), access("boss", Level.ADMIN)
    log = {"messages": [{"role": "user", "text": "the harbour report"}], "source": "cursor"}
    await orchestrator.run({"operation": "conversation_log", "channel": "kims", **log}, access=kim)
    await orchestrator.run({"operation": "share", "channel": "kims", "query": {"with": "team"}}, access=kim)
    await orchestrator.run({"operation": "fetch", "query": {"session_id": "kims"}}, access=access("lee"))
    await orchestrator.run({"operation": "search", "query": {"text": "harbour"}}, access=boss)
    await orchestrator.run({"operation": "list", "query": {}})
    expected = [
        ("kim", "conversation_log", "kims", {}, "succeeded"),
        ("kim", "share", "kims", {"with": "team"}, "succeeded"),
        ("lee", "fetch", "kims", {}, "succeeded"),
        ("boss", "fetch", "kims", {"by": "search"}, "succeeded"),
        ("boss", "search", None, {}, "succeeded"),
        (None, "list", None, {}, "succeeded"),
    ]
    assert sorted(map(str, await acts(orchestrator))) == sorted(map(str, expected))
    monkeypatch.setattr(records_of_acts, "PAGE", 2)
    assert (await acts(orchestrator))[:3] == expected[:3]
    assert await acts(orchestrator, "kim") == await acts(orchestrator, "kim-laptop") == expected[:2]
    assert await acts(orchestrator, operation="share") == expected[1:2]
    assert len(await acts(orchestrator, channel="kims")) == 4
    await orchestrator.run({"operation": "delete", "channel": "kims", "query": {"soft": False}}, access=boss)
    left = [(who, operation, channel) for who, operation, channel, _, _ in await acts(orchestrator)]
    assert ("kim", "share", None) in left
    assert "kims" not in str(left)
    gone = {"soft": False, "dry_run": False}
    assert (await acts(orchestrator, "boss"))[-1][1:] == ("delete", None, gone, "succeeded")
    await orchestrator.run({"operation": "delete", "query": {"soft": False, "matching": "harbour"}}, access=boss)
    assert (await acts(orchestrator, "boss"))[-1][3] == {**gone, "by": ["matching"]}
