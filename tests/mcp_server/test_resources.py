"""Test channels as resources that a user attaches to a chat."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, TextResourceContents

from mcp_server.resources import uri_of
from mcp_server.server import create_server
from orchestrator.requests.calls import QUOTED
from orchestrator.service import Orchestrator
from registry.registry import Registry
from tests.seeded import Seeded

pytestmark = pytest.mark.anyio

NAMES = ["plain", "/home/ann/../shop 100%", "인증 대화?#1"]
TURN = [
    {"role": "user", "text": "How do I cache this?"},
    {"role": "assistant", "text": "With redis. It is fast."},
    {"role": "tool", "text": "noise " * 100},
]


async def three_chats(orchestrator: Orchestrator) -> None:
    for name in NAMES:
        await orchestrator.run({"operation": "save", "channel": name, "messages": TURN})


@pytest.fixture
async def orchestrator(seeded_file: Seeded) -> AsyncIterator[Orchestrator]:
    registry = Registry(await seeded_file(three_chats))
    yield Orchestrator(registry)
    registry.close()


@pytest.fixture(params=["auto", "legacy"])
async def client(request: pytest.FixtureRequest, orchestrator: Orchestrator) -> AsyncIterator[Client]:
    async with Client(create_server(orchestrator.run), mode=request.param) as connected:
        yield connected


async def read(client: Client, uri: str) -> str:
    [content] = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    return content.text


async def test_channels_are_listed_with_their_resources(client: Client) -> None:
    assert [str(one.uri) for one in (await client.list_resources()).resources] == ["registry://channels"]
    listed = json.loads(await read(client, "registry://channels"))
    assert listed["total"] == 3
    assert {item["channel"]: item["uri"] for item in listed["channels"]} == {name: uri_of(name) for name in NAMES}


async def test_a_channel_with_any_name_is_read(client: Client) -> None:
    for name in NAMES:
        found = json.loads(await read(client, uri_of(name)))
        assert found["session"]["channel"] == name
        assert [message["text"] for message in found["messages"][:2]] == [turn["text"] for turn in TURN[:2]]
        assert len(found["messages"][2]["text"]) == 200


async def test_the_summary_of_a_channel_is_read(client: Client) -> None:
    for name in NAMES:
        assert (
            await read(client, f"{uri_of(name)}/summary")
            == f"{QUOTED}\n\nAsked: How do I cache this?\nAnswered: With redis. · It is fast."
        )


async def test_invisible_characters_in_a_resource_are_shown_and_its_text_is_marked_as_quoted(client: Client) -> None:
    messages = [{"role": "user", "text": "before\u202eafter \U000e0041"}]
    await client.call_tool("conversation_log", {"channel": "h", "messages": messages, "meta": {"title": "a\u202eb"}})
    read_at = [await read(client, uri) for uri in ("registry://channels", uri_of("h"), f"{uri_of('h')}/summary")]
    assert [name for text in read_at for name in ("\u202e", "\U000e0041") if name in text] == []
    assert "before⟦U+202E⟧after" in read_at[1]
    assert all("Quoted from earlier conversations" in text for text in read_at[1:])


async def test_times_of_a_resource_are_those_of_the_tools(client: Client) -> None:
    told = await client.call_tool("fetch_session_by_id", {"session_id": NAMES[0]})
    assert told.structured_content
    by_tool = told.structured_content["result"]
    found = json.loads(await read(client, uri_of(NAMES[0])))
    assert found["session"]["updated_at"] == by_tool["session"]["updated_at"]
    assert [one["timestamp"] for one in found["messages"]] == [one["timestamp"] for one in by_tool["messages"]]
    listed = json.loads(await read(client, "registry://channels"))["channels"]
    assert found["session"]["updated_at"] in [one["updated_at"] for one in listed]


async def test_there_are_templates_for_a_channel_and_its_summary(client: Client) -> None:
    templates = (await client.list_resource_templates()).resource_templates
    assert [template.uri_template for template in templates] == [
        "registry://channels/{channel}",
        "registry://channels/{channel}/summary",
    ]


async def test_an_unknown_resource_is_an_invalid_request(client: Client) -> None:
    cases: list[str] = ["registry://channels/none", "registry://channels/none/summary", "registry://nothing"]
    for uri in cases:
        with pytest.raises(MCPError) as failed:
            await client.read_resource(uri)
        assert failed.value.code == INVALID_PARAMS
    with pytest.raises(MCPError, match=r"^NOT_FOUND: No such session\. No session, .*\.$"):
        await client.read_resource(cases[0])


async def test_an_unreadable_registry_is_an_internal_error() -> None:
    async def broken(*_: object, **__: object) -> dict[str, Any]:
        return {"success": False, "error": {"code": "STORAGE_ERROR", "message": "The disk is full.", "details": ""}}

    async with Client(create_server(broken)) as client:
        for uri in ("registry://channels", "registry://channels/c"):
            with pytest.raises(MCPError, match="The disk is full") as failed:
                await client.read_resource(uri)
            assert failed.value.code == INTERNAL_ERROR
