"""Test the prompts that a user picks: each tells the AI which tool to call and how."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.types import INVALID_PARAMS, TextContent

from mcp_server.server import create_server

pytestmark = pytest.mark.anyio


async def fail_if_called(*_: object) -> dict[str, Any]:
    raise AssertionError("a prompt asks nothing of the registry")


@pytest.fixture(params=["auto", "legacy"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    async with Client(create_server(fail_if_called), mode=request.param) as connected:
        yield connected


async def text_of(client: Client, name: str, arguments: Mapping[str, str]) -> str:
    [message] = (await client.get_prompt(name, dict(arguments))).messages
    assert message.role == "user"
    assert isinstance(message.content, TextContent)
    return message.content.text


async def test_there_are_six_prompts_with_descriptions(client: Client) -> None:
    prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
    assert list(prompts) == ["continue", "recent", "search", "load", "tag", "briefing"]
    assert all(prompt.title and prompt.description for prompt in prompts.values())
    required = {name: [a.name for a in p.arguments or () if a.required] for name, p in prompts.items()}
    assert required == {
        "continue": ["text"],
        "recent": [],
        "search": ["query"],
        "load": ["nickname"],
        "tag": ["nickname"],
        "briefing": [],
    }


async def test_a_prompt_names_the_tool_to_call(client: Client) -> None:
    cases: list[tuple[str, dict[str, str], str, str]] = [
        ("continue", {"text": 'the "인증" chat'}, "extract", r'{"query": {"text": "the \"인증\" chat"}}'),
        ("recent", {}, "list_sessions", '{"project": "all", "limit": 10}'),
        ("search", {"query": "cors"}, "search_sessions", '{"query": "cors", "project": "all"}'),
        ("load", {"nickname": "auth-design"}, "fetch_session_by_id", '{"session_id": "auth-design"}'),
        (
            "tag",
            {"nickname": "auth", "tags": "api, 설계,"},
            "tag_current_session",
            '{"nickname": "auth", "tags": ["api", "설계"]}',
        ),
        ("tag", {"nickname": "auth"}, "tag_current_session", '{"nickname": "auth"}'),
        ("briefing", {"date": "2026-01-31"}, "list_sessions", '"2026-01-31"'),
        ("briefing", {}, "list_sessions", '"today"'),
    ]
    for name, arguments, tool, given in cases:
        text = await text_of(client, name, arguments)
        assert f"Call the tool {tool} of the MCP server context-registry" in text
        assert given in text
        assert ("always 3-4 other wordings" in text) == (name in ("continue", "search"))
        assert tool in {published.name for published in (await client.list_tools()).tools}


async def test_a_prompt_with_wrong_arguments_is_an_invalid_request(client: Client) -> None:
    cases: list[tuple[str, dict[str, str], str]] = [
        ("nope", {}, "Unknown prompt: nope"),
        ("continue", {}, "text"),
        ("load", {"nickname": "a", "x": "b"}, "load"),
    ]
    for name, arguments, said in cases:
        with pytest.raises(MCPError, match=said) as failed:
            await client.get_prompt(name, arguments)
        assert failed.value.code == INVALID_PARAMS
