"""Test retention policies: old conversations are forgotten, and nothing that no policy names."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from orchestrator.operations.retention import applying
from orchestrator.service import Orchestrator
from orchestrator.state import LocalFiles
from orchestrator.views.events import list_edits
from registry.access import Access, Level
from registry.domain import format_time, now
from registry.settings import RetentionPolicy
from registry.storage.records.acts import read_acts
from registry.storage.safety.quiet_channels import find_quiet, lock_quiet
from registry.storage.tables import channel, conversation, execution
from sources.base import Paths
from tests.orchestrator.test_forgetting import run, traces

pytestmark = pytest.mark.anyio


async def say(orchestrator: Orchestrator, name: str, days: float, **more: Any) -> None:
    """Log a conversation whose last message is `days` old."""
    access = Access(more["owner"], Level.WRITE, owner=more["owner"]) if "owner" in more else None
    at = format_time(now() - timedelta(days=days))
    messages = [{"role": "user", "text": f"where does the {name} live?", "timestamp": at}]
    messages += [{"role": "assistant", "text": f"The {name} lives by the river, under a stone.", "timestamp": at}]
    about = {"project": more["project"]} if "project" in more else {}
    given = {"operation": "conversation_log", "channel": name, "messages": messages, "metadata": about}
    answer = await orchestrator.run({**given, "source": more.get("source", "codex")}, access=access)
    assert answer["success"], answer


async def kept(orchestrator: Orchestrator) -> list[str]:
    listed = await orchestrator.run({"operation": "list", "query": {"limit": 100}})
    return sorted(session["channel"] for session in listed["sessions"])


@pytest.mark.both_databases
async def test_old_conversations_go_and_pinned_shared_and_remembered_ones_stay(orchestrator: Orchestrator) -> None:
    for name in ("otter", "pinned", "team", "for_a_while", "was_shared"):
        await say(orchestrator, name, 40)
    await say(orchestrator, "young", 29)
    await say(orchestrator, "note", 400, source="memory-files")
    await say(orchestrator, "remembered", 400, source="remembered")
    await run(orchestrator, "tag", "pinned", pinned=True)
    await run(orchestrator, "share", "team", **{"with": "team"})
    await run(orchestrator, "share", "for_a_while", **{"with": "team", "until": "2100-01-01"})
    await run(orchestrator, "share", "was_shared", **{"with": "team", "until": "2100-01-01"})
    over = update(channel).where(channel.c.name == "was_shared").values(shared_until=now() - timedelta(days=1))
    await orchestrator.registry.write(lambda tx: tx.execute(over))
    would = (await run(orchestrator, "retention", days=30, dry_run=True))["receipt"]
    assert (would["channels"], would["messages"], would["is_dry_run"]) == (3, 6, True)
    assert len(await kept(orchestrator)) == 8
    done = (await run(orchestrator, "retention", days=30))["receipt"]
    assert (done["id"][:4], done["channels"], done["messages"], done["failed"]) == ("pol_", 3, 6, 0)
    assert await kept(orchestrator) == ["for_a_while", "note", "pinned", "remembered", "young"]
    assert traces(orchestrator, "otter lives") == []
    again = await orchestrator.run({"operation": "retention", "query": {"days": 30}})
    assert again["error"]["code"] == "NOT_FOUND"


@pytest.mark.both_databases
async def test_a_policy_applies_only_to_the_projects_and_the_person_it_names(orchestrator: Orchestrator) -> None:
    places = {"in": "/srv/shop/web", "beside": "/srv/blog", "nowhere": None}
    for place, project in places.items():
        for owner in ("kim", "lee"):
            more = {"project": project} if project else {}
            await say(orchestrator, f"{owner}_{place}", 40, owner=owner, **more)
    await say(orchestrator, "ours", 40, project="/srv/shop/web")
    await run(orchestrator, "retention", days=30, project="/srv/shop/*", owner="kim")
    assert "kim_in" not in await kept(orchestrator)
    assert len(await kept(orchestrator)) == 6
    await run(orchestrator, "retention", days=30, project="web")
    assert await kept(orchestrator) == ["kim_beside", "kim_nowhere", "lee_beside", "lee_nowhere"]
    await run(orchestrator, "retention", days=30, owner="lee")
    assert await kept(orchestrator) == ["kim_beside", "kim_nowhere"]


async def test_upkeep_applies_policies_and_records_each_that_found_something(
    orchestrator: Orchestrator,
) -> None:
    await say(orchestrator, "otter", 40)
    await say(orchestrator, "heron", 20)
    policies = [RetentionPolicy(days=30, project="/srv/none"), RetentionPolicy(days=30)]
    async with applying(orchestrator, ()):
        assert len(await kept(orchestrator)) == 2
    async with applying(orchestrator, policies):
        async with asyncio.timeout(20):
            while not (acts := (await orchestrator.view(read_acts, {"operation": "retention"}))[0]):
                pass
    assert [one["details"] for one in acts] == [{"by": "quiet for 30 days", "dry_run": False}]
    assert await kept(orchestrator) == ["heron"]


@pytest.mark.parametrize("is_running", [False, True])
async def test_a_server_whose_clock_is_far_ahead_applies_no_policy(
    orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, is_running: bool
) -> None:
    def jump() -> None:
        ahead = now() + timedelta(days=400)
        for module in (
            "orchestrator.operations.retention",
            "registry.storage.records.executions",
            "registry.storage.safety.quiet_channels",
        ):
            monkeypatch.setattr(f"{module}.now", lambda: ahead)

    monkeypatch.setattr("orchestrator.operations.retention.PAUSE", timedelta(milliseconds=10))
    await say(orchestrator, "heron", 399)
    await say(orchestrator, "otter", 0)
    if not is_running:
        jump()
    async with applying(orchestrator, [RetentionPolicy(days=365)]), asyncio.timeout(20):
        if is_running:
            while await kept(orchestrator) != ["otter"]:
                pass
            jump()
        while "by this clock nothing happened" not in caplog.text:
            assert "otter" in await kept(orchestrator)
    assert "otter" in await kept(orchestrator)


@pytest.mark.both_databases
async def test_a_server_that_restarts_with_a_clock_far_ahead_applies_a_policy_only_after_one_by_command(
    orchestrator: Orchestrator, caplog: pytest.LogCaptureFixture
) -> None:
    await say(orchestrator, "otter", 0)
    jump = timedelta(days=400)  # the clock is ahead by this from now on
    await orchestrator.registry.write(
        lambda tx: [
            tx.execute(update(channel).values(updated_at=now() - jump)),
            tx.execute(update(conversation).values(timestamp=now() - jump, received_at=now() - jump)),
            tx.execute(update(execution).values(started_at=now() - jump)),
        ]
    )
    await say(orchestrator, "heron", 0)  # a record with the wrong time
    async with applying(orchestrator, [RetentionPolicy(days=365)]), asyncio.timeout(20):
        while "by this clock nothing happened for 30 days" not in caplog.text:
            assert await kept(orchestrator) == ["heron", "otter"]
    await run(orchestrator, "retention", days=365, dry_run=True)
    of_preview = update(execution).where(execution.c.operation == "retention")
    await orchestrator.registry.write(lambda tx: tx.execute(of_preview.values(request={"forgotten": True})))
    await run(orchestrator, "retention", days=365, dry_run=True)
    async with applying(orchestrator, [RetentionPolicy(days=365)]), asyncio.timeout(20):
        while caplog.text.count("by this clock nothing happened for 30 days") < 2:
            assert await kept(orchestrator) == ["heron", "otter"]
    assert (await run(orchestrator, "retention", days=365))["receipt"]["channels"] == 1
    await say(orchestrator, "stork", 400)
    async with applying(orchestrator, [RetentionPolicy(days=365)]), asyncio.timeout(20):
        while await kept(orchestrator) != ["heron"]:
            pass


async def test_a_conversation_that_gets_a_message_meanwhile_is_kept(orchestrator: Orchestrator) -> None:
    await say(orchestrator, "otter", 40)
    policy = RetentionPolicy(days=30)
    found = await orchestrator.registry.read(lambda tx: find_quiet(tx, policy))
    assert len(found) == 1
    await say(orchestrator, "otter", 0)
    assert await orchestrator.registry.write(lambda tx: lock_quiet(tx, policy, list(found))) == []


async def test_an_expired_conversation_is_not_forgotten_elsewhere_and_no_backup_brings_it_back(
    orchestrator: Orchestrator, tmp_path: Path
) -> None:
    local_files = LocalFiles(tmp_path / "backups", [], Paths(tmp_path, {}), tmp_path / "resume")
    shelved = Orchestrator(orchestrator.registry, local_files=local_files)
    await say(shelved, "otter", 40)
    await say(shelved, "heron", 40, project="/srv/blog")
    backup = await run(shelved, "create_backup", stores=False)
    done = (await run(shelved, "retention", days=30, project="blog"))["receipt"]
    assert done["backups"] == [Path(backup["path"]).name]
    await say(shelved, "heron", 40, project="/srv/blog")  # its client sends it again
    assert await kept(shelved) == ["otter"]
    await run(shelved, "restore_backup", path=backup["path"])
    assert await kept(shelved) == ["otter"]
    assert (await shelved.view(list_edits, 0))["items"] == []


async def test_a_new_conversation_is_stored_although_expired_ones_together_had_its_words(
    orchestrator: Orchestrator,
) -> None:
    await say(orchestrator, "otter", 40)
    await say(orchestrator, "heron", 40)
    await run(orchestrator, "retention", days=30)
    asked = ["where does the otter live?", "where does the heron live?"]
    messages = [{"role": "user", "text": text} for text in asked]
    messages.append({"role": "assistant", "text": "The heron lives by the river, under a stone."})
    await orchestrator.run({"operation": "conversation_log", "channel": "new", "messages": messages, "source": "codex"})
    assert await kept(orchestrator) == ["new"]


async def test_only_an_admin_may_apply_a_policy(orchestrator: Orchestrator) -> None:
    await say(orchestrator, "otter", 40, owner="kim")
    tokens = [
        Access("kim", Level.WRITE, owner="kim"),
        Access("boss", Level.ADMIN, ("o*",), owner="boss"),
    ]
    for access in tokens:
        for query in ({"days": 30}, {"days": 30, "owner": "kim"}, {"days": 30, "dry_run": True}):
            refused = await orchestrator.run({"operation": "retention", "query": query}, access=access)
            assert refused["error"]["code"] == "UNAUTHORIZED"
    assert await kept(orchestrator) == ["otter"]
