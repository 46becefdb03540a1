"""`ctxr mcp` with the tools and the project one wants."""

import os
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from tests.cli.conftest import CTXR, bare_ctxr

MESSAGES = [{"role": "user", "text": "hello"}]


@pytest.mark.anyio
async def test_the_options_choose_tools_and_project(tmp_path: Path) -> None:
    command = ["mcp", "--toolsets", "default,history", "--project", str(tmp_path / "shop")]
    server = StdioServerParameters(command=CTXR, args=command, env=dict(os.environ), cwd=str(tmp_path))
    async with Client(server) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"conversation_log", "export_session", "list_sessions"} <= tools
        meta = {"project": str(tmp_path / "shop")}
        await client.call_tool("conversation_log", {"channel": "here", "messages": MESSAGES, "meta": meta})
        await client.call_tool(
            "conversation_log", {"channel": "there", "messages": MESSAGES, "meta": {"project": "/elsewhere"}}
        )
        found = (await client.call_tool("list_sessions", {"full": True})).structured_content
    assert found is not None
    assert [session["channel"] for session in found["result"]["sessions"]] == ["here"]


@pytest.mark.parametrize("named", ["nope", "default,nope", ","])
def test_an_unknown_toolset_is_refused_with_the_known_ones(named: str) -> None:
    failed = bare_ctxr("mcp", "--toolsets", named)
    assert failed.exit_code == 2
    assert "allowed: default, history, all" in failed.stderr
