"""Test the instructions of a server started for a client, in both protocol eras."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client

from mcp_server.server import create_server
from sources.clients import find_client

pytestmark = pytest.mark.anyio
MODES = ("auto", "legacy")


async def fail_if_called(*_: object) -> dict[str, Any]:
    raise AssertionError("the handshake asks nothing of the registry")


async def instructions_for(mode: Any, name: str, *, is_captured: bool = False) -> str:
    server = create_server(fail_if_called, client=find_client(name), is_captured=is_captured)
    async with Client(server, mode=mode) as client:
        return client.instructions or ""


async def test_a_client_is_asked_to_log_only_if_nothing_else_captures_its_chats() -> None:
    cases_of_name: list[tuple[str, str]] = [
        ("cursor", "After each turn call conversation_log"),
        ("claude-desktop", "with only the new turns and with the channel that its first answer gave, and only where"),
        ("claude-code", "captured without you: do not log it"),
        ("codex", "captured without you: do not log it"),
        ("gemini-cli", "captured without you: do not log it"),
        ("opencode", "captured without you: do not log it"),
        ("", "Elsewhere, after each turn call conversation_log"),
    ]
    for mode in MODES:
        for name, logs in cases_of_name:
            said = await instructions_for(mode, name)
            assert logs in said
            assert ("conversation_log" in said) == ("do not log it" not in said)
            assert "Add as query.also always 3-4 other wordings of the same question" in said
            assert '"speed up sign-in"' in said


async def test_a_client_whose_hooks_capture_its_chats_is_not_asked_to_log() -> None:
    for mode in MODES:
        said = await instructions_for(mode, "cursor", is_captured=True)
        assert "captured without you: do not log it" in said
        assert "conversation_log" not in said
