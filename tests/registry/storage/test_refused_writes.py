"""After a refused write, the next writes of all processes are stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from registry.access import Level
from registry.errors import RegistryError, StorageError
from registry.registry import Registry
from registry.storage.conversations.belonging import drop_view
from registry.storage.conversations.channels import get_channel
from registry.storage.conversations.messages import delete_message, message_position, restore_channel, restore_message
from registry.storage.conversations.references import edit_channel, existing_channel, resolve_session
from registry.storage.database import WriteTransaction
from registry.storage.paging import Page
from registry.storage.records.executions import (
    drop_expectation,
    get_execution,
    keep_expectation,
    list_executions,
    rate_execution,
)
from registry.storage.records.extract_results import get_result
from registry.storage.safety.forgetting import ForgetSelection, affected_by
from registry.storage.safety.tokens import create_token, revoke_token

pytestmark = pytest.mark.anyio

REFUSED: list[Callable[[WriteTransaction], Any]] = [
    lambda tx: edit_channel(tx, "channel b", {"nickname": "NICK A"}, None),
    lambda tx: edit_channel(tx, "channel b", {"nickname": "#3"}, None),
    lambda tx: edit_channel(tx, "none", {"title": "x"}, None),
    lambda tx: get_channel(tx, "none"),
    lambda tx: existing_channel(tx, "none"),
    lambda tx: resolve_session(tx, "channel"),
    lambda tx: resolve_session(tx, "#99"),
    lambda tx: message_position(tx, 1, 99),
    lambda tx: delete_message(tx, "conv_none"),
    lambda tx: restore_message(tx, "conv_none"),
    lambda tx: restore_channel(tx, "none"),
    lambda tx: affected_by(tx, ForgetSelection(channel="none")),
    lambda tx: drop_view(tx, "none"),
    lambda tx: get_execution(tx, "none"),
    lambda tx: list_executions(tx, {}, Page(cursor="none")),
    lambda tx: get_result(tx, "none"),
    lambda tx: rate_execution(tx, "none", useful=True),
    lambda tx: keep_expectation(tx, {}, "conv_none"),
    lambda tx: drop_expectation(tx, "none"),
    lambda tx: create_token(tx, "ci", Level.READ),
    lambda tx: revoke_token(tx, "none"),
]


@pytest.fixture
async def windows(sqlite_url: str) -> AsyncIterator[list[Registry]]:
    """Four connections to one registry with a few nicknamed channels."""
    opened = [Registry(sqlite_url) for _ in range(4)]
    for name in "abcd":
        await opened[0].save_conversation(f"channel {name}", [{"role": "user", "text": f"hello {name}"}], "cursor")
    for name in "acd":
        named = {"nickname": f"nick {name}"}
        await opened[0].write(lambda tx, named=named: edit_channel(tx, f"channel {named['nickname'][-1]}", named, None))  # type: ignore[misc]
    await opened[0].write(lambda tx: create_token(tx, "ci", Level.READ))
    yield opened
    for registry in opened:
        registry.close()


async def refuse_all(registry: Registry) -> list[BaseException]:
    """Run every refused operation three times, and return the exceptions, which keep their frames alive."""
    refusals: list[BaseException] = []
    for at, work in enumerate(REFUSED * 3):
        try:
            await registry.write(work)
        except (RegistryError, AttributeError) as exc:
            refusals.append(exc)
        else:
            pytest.fail(f"not refused: {at}")
    return refusals


def write(registry: Registry, window: int) -> None:
    for turn in range(8):
        asyncio.run(
            registry.save_conversation(f"window {window}", [{"role": "user", "text": f"turn {turn}"}], "cursor")
        )


async def test_four_processes_can_write_after_refused_writes(windows: list[Registry]) -> None:
    refusals = await refuse_all(windows[0])
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, windows, range(4)))
    assert len(refusals) == 3 * len(REFUSED)
    for window in range(4):
        assert len(await windows[0].get_conversations(f"window {window}")) == 8


class Unconfirmed:
    """The driver's error if the server goes away during a commit."""

    sqlstate = None

    def __str__(self) -> str:
        return "server closed the connection unexpectedly"


async def test_an_unconfirmed_commit_is_reported_as_possibly_stored(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry(postgres_url)

    def lost(_connection: object) -> None:
        raise OperationalError("COMMIT", {}, Unconfirmed())  # type: ignore[arg-type]

    try:
        await registry.save_conversation("c", [{"role": "user", "text": "one"}], "cursor")
        monkeypatch.setattr(registry.engine.dialect, "do_commit", lost)
        with pytest.raises(StorageError) as refusal:
            await registry.save_conversation("c", [{"role": "user", "text": "two"}], "cursor")
        assert "it may have been stored; sending it again is safe" in refusal.value.details
        monkeypatch.undo()
        await registry.save_conversation("c", [{"role": "user", "text": "two"}], "cursor")
        assert [one["text"] for one in await registry.get_conversations("c")] == ["one", "two"]
    finally:
        registry.close()
