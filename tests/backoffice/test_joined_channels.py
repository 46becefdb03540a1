"""Test channels that were merged, or may be the same: both are found under every name and id they had."""

from __future__ import annotations

import pytest
from httpx import AsyncClient

from orchestrator.operations.conversation_log import HookRequest
from orchestrator.service import Orchestrator
from registry.domain import Message, Role, Session

pytestmark = [pytest.mark.anyio, pytest.mark.both_databases]

QUESTIONS = ("Why does the basket lose its items after login?", "And what about guests who never log in at all?")
ANSWERS = ("It makes a new list each time the session is renewed.", "They keep theirs in a cookie until they log in.")
NAME = "cursor_session_20260504_0900"


async def hear(orchestrator: Orchestrator, *texts: str) -> None:
    roles = (Role.USER, Role.ASSISTANT)
    messages = [Message(roles[at % 2], text, more={"native_id": f"hook:{at}:{text}"}) for at, text in enumerate(texts)]
    session = Session("c-1", tuple(messages), project="/home/ann/shop")
    assert (await orchestrator.run(HookRequest(source="cursor", session=session)))["success"]


async def log(http: AsyncClient, *texts: str) -> list[str]:
    messages = [{"role": ("user", "assistant")[at % 2], "text": text} for at, text in enumerate(texts)]
    body = {"channel": NAME, "messages": messages, "meta": {"source": "cursor", "project": "/home/ann/shop"}}
    answer = await http.post("/bo/conversations", json=body)
    assert answer.status_code == 201
    assert answer.json()["channel"] == NAME
    return list(answer.json()["stored_ids"])


async def test_after_a_merge_old_names_ids_and_tags_are_still_found(
    http: AsyncClient, orchestrator: Orchestrator
) -> None:
    first = await log(http, "continue", "Where were we?")
    extracted = await orchestrator.run({"operation": "extract", "channel": NAME, "query": {}})
    await orchestrator.run({"operation": "tag", "channel": NAME, "query": {"nickname": "basket", "tags": ["shop"]}})
    said = ["continue", "Where were we?", QUESTIONS[0], ANSWERS[0], QUESTIONS[1], ANSWERS[1]]
    await hear(orchestrator, *said)
    shown = (await http.get(f"/bo/channels/{NAME}")).json()
    [session_name] = shown["maybe_same_as"]
    assert session_name in (await http.get(f"/channels/{NAME}")).text
    ids = await log(http, *said)

    shown = (await http.get(f"/bo/channels/{NAME}")).json()
    assert (shown["channel"], shown["also_known_as"], shown["session_id"]) == (session_name, [NAME], "c-1")
    assert (shown["nickname"], shown["tags"], shown["message_count"]) == ("basket", ["shop"], 6)
    assert "maybe_same_as" not in shown
    for id_, text in zip([*first, *ids], [*said[:2], *said], strict=True):
        assert (await http.get(f"/bo/conversations/{id_}")).json()["text"] == text
    for path in ("conversations", "extracts", "ao/executions"):
        page = (await http.get(f"/bo/{path}", params={"channel": NAME})).json()
        assert page["total"] > 0, path
        assert {item["channel"] for item in page["items"]} == {session_name}
    again = await orchestrator.run({"operation": "extract", "channel": NAME, "query": {"text": "guests basket"}})
    assert {message["text"] for message in again["messages"]} >= set(said[2:])
    assert (await http.get(f"/channels/{NAME}")).status_code == 200
    assert extracted["success"]


async def test_a_deleted_session_deletes_its_other_names(http: AsyncClient, orchestrator: Orchestrator) -> None:
    said = [text for pair in zip(QUESTIONS, ANSWERS, strict=True) for text in pair]
    await hear(orchestrator, *said)
    [id_, *_] = await log(http, *said)
    await http.delete(f"/bo/channels/{NAME}", params={"soft": "false"})
    assert (await http.get(f"/bo/channels/{NAME}")).status_code == 404
    assert (await http.get(f"/bo/conversations/{id_}")).status_code == 404
