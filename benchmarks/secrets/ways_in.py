"""The three ways in: a client's hooks, its tool calls, and the files that it keeps."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from benchmarks.secrets.kinds import FILES, KINDS, OF_A_HOOK, PLACES, said_in
from benchmarks.secrets.on_disk import Registry
from benchmarks.setup import servers
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write


def from_hooks(registry: Registry, kind: str, number: int) -> None:
    """What Cursor's hooks tell: a question with a file, and the answer to it."""
    made = registry.plant("hook", kind, OF_A_HOOK)
    about = {"conversation_id": f"c-{number}", "generation_id": f"g-{number}", "cursor_version": "3.16.2"}
    asked = "\n\n".join(made[place].said for place in ("sentence", "Korean sentence"))
    attached = [{"type": "file", "file_path": said_in(made, "attachment")}]
    answered = "\n\n".join(made[place].said for place in ("code", "JSON", "JSON in JSON"))
    for event, said in (
        ("beforeSubmitPrompt", {"prompt": asked, "attachments": attached}),
        ("afterAgentResponse", {"text": answered}),
    ):
        registry.run("hook", "cursor", event, given=json.dumps({**about, **said}))


async def from_tool(client: Client, registry: Registry, kind: str, number: int) -> None:
    """What an MCP client logs."""
    made = registry.plant("tool", kind, list(PLACES))
    asked: list[dict[str, Any]] = [
        {"role": "user", "text": made[place].said} for place in OF_A_HOOK if place not in FILES
    ]
    asked[0]["attachments"] = [{"name": said_in(made, "attachment")}]
    asked[1]["context"] = {"file": said_in(made, "file path")}
    answered = {
        "role": "assistant",
        "text": f"I see.\n{made['tool answer'].said}",
        "tool": {"name": "Bash", "params": {"command": made["tool"].said, "env": {"x": made["tool"].said}}},
    }
    meta = {"title": made["title"].said}
    told = {"channel": f"claude_session_{number}", "messages": [*asked, answered], "meta": meta}
    answer = await client.call_tool("conversation_log", told)
    if answer.is_error:
        raise RuntimeError(f"not logged: {answer.content}")


def from_files(registry: Registry, kind: str, number: int) -> None:
    """What Claude Code keeps of a session."""
    made = registry.plant("reader", kind, list(PLACES))
    talk = Dialogue(session_id(number), cwd=str(registry.user))
    talk.aside("custom-title", customTitle=made["title"].said, sessionId=talk.session_id)
    for place in ("sentence", "Korean sentence", "code", "JSON in JSON"):
        talk.user(made[place].said, promptSource="typed")
    talk.user(
        [{"type": "text", "text": made["JSON"].said}, {"type": "text", "text": f"@{said_in(made, 'attachment')}"}]
    )
    talk.calls("Read", {"file_path": said_in(made, "file path")}, "toolu_1", "msg_1")
    talk.calls("Bash", {"command": made["tool"].said}, "toolu_2", "msg_1")
    talk.result("toolu_2", made["tool answer"].said)
    talk.says("Done.", "msg_2")
    write(registry.user / ".claude", talk, project=str(registry.user))


async def _ask(client: Client, registry: Registry) -> None:
    """Questions with the secrets themselves in them: what was asked is kept, too."""
    for each in registry.planted[::7]:
        await client.call_tool("extract", {"query": {"text": each.said[:2000]}})


async def talk(registry: Registry) -> None:
    command = StdioServerParameters(command=servers.CTXR, args=["mcp"], env=registry.env, cwd=registry.user)
    async with Client(command) as client:
        for number, kind in enumerate(KINDS):
            await from_tool(client, registry, kind, number)
        await _ask(client, registry)


def talk_and_be_killed(registry: Registry) -> None:
    """The last call's server is killed (-9) in the middle of its work, with what it wrote beside the file."""
    messages = []
    for number, kind in enumerate(KINDS):
        made = registry.plant("tool, killed", kind, ["sentence"])["sentence"]
        messages.append({"role": "user", "text": f"{number}: {made.said}"})
    told = {"channel": "claude_session_killed", "messages": messages}
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "killed", "version": "1"}}
    calls: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": opening},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "conversation_log", "arguments": told}},
        {"id": 3, "method": "tools/call", "params": {"name": "conversation_log", "arguments": told}},
    ]
    server = subprocess.Popen(
        [servers.CTXR, "mcp"], env=registry.env, cwd=registry.user, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    if server.stdin is None or server.stdout is None:
        raise RuntimeError("it has no pipes")
    for call in calls:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **call}).encode() + b"\n")
        server.stdin.flush()
    while b'"id":2' not in server.stdout.readline():
        pass
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
