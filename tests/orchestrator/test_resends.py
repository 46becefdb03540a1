"""A long conversation that is sent again with a new end costs its end, and is stored as any other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from orchestrator.requests.shapes import ImportRequest
from orchestrator.service import Orchestrator
from registry.domain import Message, Role, Session
from registry.ingest.from_tool import ingest_from_tool
from registry.registry import Registry
from sources.base import FoundSession

pytestmark = pytest.mark.anyio

Messages = list[dict[str, Any]]


@pytest.fixture
async def other(database_url: str) -> AsyncIterator[Orchestrator]:
    """Another process over the same registry."""
    registry = Registry(database_url)
    yield Orchestrator(registry)
    registry.close()


@pytest.fixture
def recognised(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many messages of each call were looked at one by one."""
    seen: list[int] = []

    def counted(tx: Any, name: str, messages: Any, **more: Any) -> Any:
        seen.append(len(messages))
        return ingest_from_tool(tx, name, messages, **more)

    monkeypatch.setattr("orchestrator.operations.log.ingest_from_tool", counted)
    return seen


def talk(turns: int) -> Messages:
    return [
        {"role": role, "text": f"{said} {number}", "timestamp": f"2026-05-04T09:{number:02}:0{at}Z"}
        for number in range(turns)
        for at, (role, said) in enumerate((("user", "Question"), ("assistant", "Answer")))
    ]


async def send(orchestrator: Orchestrator, messages: Messages, **more: Any) -> dict[str, Any]:
    request = {"operation": "conversation_log", "channel": "long", "source": "cursor", "messages": messages, **more}
    answer = await orchestrator.run(request)
    assert answer["success"], answer
    return answer


async def texts(orchestrator: Orchestrator) -> list[str]:
    return [message["text"] for message in await orchestrator.registry.get_conversations("long", limit=1000)]


async def test_only_the_new_end_is_looked_at(orchestrator: Orchestrator, recognised: list[int]) -> None:
    ids = (await send(orchestrator, talk(20)))["stored_ids"]
    for turns in (21, 22, 23):
        answer = await send(orchestrator, talk(turns))
        assert (answer["message_count"], answer["new_count"], answer["duplicate_count"]) == (
            2 * turns,
            2,
            2 * turns - 2,
        )
        assert answer["stored_ids"][:-2] == ids
        ids = answer["stored_ids"]
    assert recognised == [40, 2, 2, 2]
    assert await texts(orchestrator) == [message["text"] for message in talk(23)]
    assert len(set(ids)) == 46


async def test_the_same_again_adds_nothing(orchestrator: Orchestrator) -> None:
    first = await send(orchestrator, talk(20))
    assert (await send(orchestrator, talk(20)))["stored_ids"] == first["stored_ids"]
    assert (await send(orchestrator, talk(21)))["new_count"] == 2
    assert (await send(orchestrator, talk(21)))["new_count"] == 0
    assert (await send(orchestrator, talk(20)))["stored_ids"] == first["stored_ids"]


async def test_the_words_of_the_end_may_have_been_said_before(orchestrator: Orchestrator) -> None:
    said = [*talk(20), {"role": "user", "text": "continue"}]
    for count in range(3):
        assert (await send(orchestrator, said))["new_count"] == (41 if count == 0 else 2)
        said = [*said, {"role": "assistant", "text": "Answer 3"}, {"role": "user", "text": "continue"}]
    assert (await texts(orchestrator)).count("continue") == 3


async def test_a_turn_that_another_process_has_stored_meanwhile_is_recognised(
    orchestrator: Orchestrator, other: Orchestrator, recognised: list[int]
) -> None:
    await send(orchestrator, talk(20))
    theirs = await send(other, talk(21))
    ours = await send(orchestrator, talk(22))
    assert (ours["new_count"], ours["stored_ids"][:42]) == (2, theirs["stored_ids"])
    assert recognised == [40, 42, 44]
    assert len(await texts(orchestrator)) == 44


async def test_a_channel_that_was_forgotten_meanwhile_stays_so(orchestrator: Orchestrator) -> None:
    await send(orchestrator, talk(20))
    await orchestrator.run({"operation": "delete", "channel": "long", "query": {"soft": False}})
    answer = await send(orchestrator, talk(21))
    assert (answer["new_count"], answer["stored_ids"]) == (0, [])
    assert await orchestrator.registry.get_conversations("long") == []


async def test_what_the_clients_store_has_brought_meanwhile_is_recognised(orchestrator: Orchestrator) -> None:
    await send(orchestrator, talk(20), metadata={"session_id": "s"})
    said = tuple(
        Message(Role(one["role"]), one["text"], more={"native_id": f"m{at}"}) for at, one in enumerate(talk(21))
    )
    found = FoundSession("s", "1", Session("s", said))
    await orchestrator.run(ImportRequest(source="cursor", store="/s", found=[found]))
    assert (await send(orchestrator, talk(21), metadata={"session_id": "s"}))["new_count"] == 0
    assert (await send(orchestrator, talk(22), metadata={"session_id": "s"}))["new_count"] == 2


async def test_a_changed_beginning_is_looked_at_as_a_whole(orchestrator: Orchestrator, recognised: list[int]) -> None:
    await send(orchestrator, talk(20))
    changed = talk(21)
    changed[3]["text"] = "Another answer"
    assert (await send(orchestrator, changed))["new_count"] == 3
    assert recognised == [40, 42]


async def test_a_wrong_end_is_refused_in_the_usual_words(orchestrator: Orchestrator) -> None:
    await send(orchestrator, talk(20))
    wrong = {"operation": "save", "channel": "long", "source": "cursor", "messages": [*talk(20), {"role": "x"}]}
    answer = await orchestrator.run(wrong)
    assert answer["error"]["code"] == "INVALID_REQUEST"
    assert "role: given" in answer["error"]["details"]


async def test_of_many_conversations_those_that_go_on_stay_known(
    orchestrator: Orchestrator, recognised: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.requests.resends.MOST", 2)
    for channel, turns in (("goes on", 20), ("left", 20), ("goes on", 21), ("new", 20), ("goes on", 22)):
        await send(orchestrator, talk(turns), channel=channel)
    assert recognised == [40, 40, 2, 40, 2]
