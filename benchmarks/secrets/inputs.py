"""The three inputs: a client's hooks, its tool calls, and its files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from benchmarks.secrets.kinds import FILES, HOOK_PLACES, KINDS, PLACES, text_in
from benchmarks.secrets.on_disk import Registry
from benchmarks.setup import servers
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write


def from_hooks(registry: Registry, kind: str, number: int) -> None:
    """Send events of Cursor's hooks: a question with an attachment, and its answer."""
    made = registry.plant("hook", kind, HOOK_PLACES)
    about = {"conversation_id": f"c-{number}", "generation_id": f"g-{number}", "cursor_version": "3.16.2"}
    asked = "\n\n".join(made[place].text for place in ("sentence", "Korean sentence"))
    attached = [{"type": "file", "file_path": text_in(made, "attachment")}]
    answered = "\n\n".join(made[place].text for place in ("code", "JSON", "JSON in JSON"))
    for event, said in (
        ("beforeSubmitPrompt", {"prompt": asked, "attachments": attached}),
        ("afterAgentResponse", {"text": answered}),
    ):
        registry.run("hook", "cursor", event, given=json.dumps({**about, **said}))


async def from_tool(client: Client, registry: Registry, kind: str, number: int) -> None:
    """Log a conversation with `conversation_log`."""
    made = registry.plant("tool", kind, list(PLACES))
    asked: list[dict[str, Any]] = [
        {"role": "user", "text": made[place].text} for place in HOOK_PLACES if place not in FILES
    ]
    asked[0]["attachments"] = [{"name": text_in(made, "attachment")}]
    asked[1]["context"] = {"file": text_in(made, "file path")}
    answered = {
        "role": "assistant",
        "text": f"I see.\n{made['tool answer'].text}",
        "tool": {"name": "Bash", "params": {"command": made["tool"].text, "env": {"x": made["tool"].text}}},
    }
    meta = {"title": made["title"].text}
    arguments = {"channel": f"claude_session_{number}", "messages": [*asked, answered], "meta": meta}
    answer = await client.call_tool("conversation_log", arguments)
    if answer.is_error:
        raise RuntimeError(f"not logged: {answer.content}")


def from_files(registry: Registry, kind: str, number: int) -> None:
    """Write a session in Claude Code's format."""
    made = registry.plant("reader", kind, list(PLACES))
    talk = Dialogue(session_id(number), cwd=str(registry.user))
    talk.aside("custom-title", customTitle=made["title"].text, sessionId=talk.session_id)
    for place in ("sentence", "Korean sentence", "code", "JSON in JSON"):
        talk.user(made[place].text, promptSource="typed")
    talk.user(
        [{"type": "text", "text": made["JSON"].text}, {"type": "text", "text": f"@{text_in(made, 'attachment')}"}]
    )
    talk.calls("Read", {"file_path": text_in(made, "file path")}, "toolu_1", "msg_1")
    talk.calls("Bash", {"command": made["tool"].text}, "toolu_2", "msg_1")
    talk.result("toolu_2", made["tool answer"].text)
    talk.says("Done.", "msg_2")
    write(registry.user / ".claude", talk, project=str(registry.user))


async def _search_for_secrets(client: Client, registry: Registry) -> None:
    """Search for some of the secrets, because queries are stored too."""
    for each in registry.planted[::7]:
        await client.call_tool("extract", {"query": {"text": each.text[:2000]}})


async def log_and_search(registry: Registry) -> None:
    command = StdioServerParameters(command=servers.CTXR, args=["mcp"], env=registry.env, cwd=registry.user)
    async with Client(command) as client:
        for number, kind in enumerate(KINDS):
            await from_tool(client, registry, kind, number)
        await _search_for_secrets(client, registry)


def from_tool_killed(registry: Registry) -> None:
    """Kill the server (-9) during its last call, so that its WAL remains."""
    messages = []
    for number, kind in enumerate(KINDS):
        made = registry.plant("tool, killed", kind, ["sentence"])["sentence"]
        messages.append({"role": "user", "text": f"{number}: {made.text}"})
    arguments = {"channel": "claude_session_killed", "messages": messages}
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "killed", "version": "1"}}
    calls: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": opening},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "conversation_log", "arguments": arguments}},
        {"id": 3, "method": "tools/call", "params": {"name": "conversation_log", "arguments": arguments}},
    ]
    server = subprocess.Popen(
        [servers.CTXR, "mcp"], env=registry.env, cwd=registry.user, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    if server.stdin is None or server.stdout is None:
        raise RuntimeError("the server has no pipes")
    for call in calls:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **call}).encode() + b"\n")
        server.stdin.flush()
    while b'"id":2' not in server.stdout.readline():
        pass
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
