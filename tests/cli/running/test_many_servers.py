"""Test servers that share only a database: each sends events of what the others store."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from cli.running.serve import build_app
from orchestrator.sync import spool
from registry.settings import Settings
from tests.cli.conftest import program
from tests.cli.running.test_serve import channels_of, question, wait_for
from tests.conformance.servers import free_port
from tests.pages.conftest import served
from tests.sources.claude_code.claude_code_files import write

pytestmark = pytest.mark.timeout(240)

MESSAGE = {"role": "user", "text": "Why does the basket lose items?"}


def read_event(stream: httpx.Response, kind: str) -> dict[str, object]:
    lines = stream.iter_lines()
    assert next(line for line in lines if line == f"event: {kind}")
    return dict(json.loads(next(lines).removeprefix("data: ")))


def test_two_servers_on_one_database_act_as_one(empty_home: Path, postgres_url: str) -> None:
    write(empty_home / ".claude", question("Where is the basket?", 1))  # of one person, not shared
    port, env = free_port(), {"CTXR_DATABASE_URL": postgres_url, "CTXR_HOME": str(empty_home / "0")}
    with ExitStack() as stack:
        process = stack.enter_context(program("serve", "--port", str(port), env=env))
        stack.callback(process.kill)
        here = stack.enter_context(served(build_app(Settings(home=empty_home / "1", database_url=postgres_url))))
        wait_for(process, port)
        one, two = (
            stack.enter_context(httpx.Client(base_url=address, timeout=60))
            for address in (f"http://127.0.0.1:{port}", here)
        )
        with two.stream("GET", "/bo/events") as stream:
            one.post("/bo/conversations", json={"channel": "basket", "messages": [MESSAGE]}).raise_for_status()
            assert read_event(stream, "message")["channel"] == "basket"
        assert two.get("/bo/search", params={"q": "basket"}).json()["items"][0]["text"] == MESSAGE["text"]
        payload = {"conversation_id": "c-1", "prompt": "Is it kept?"}
        told = {"source": "cursor", "event": "beforeSubmitPrompt", "at": 1.0, "payload": payload}
        spool.append(str(empty_home / "0"), told)
        assert "claude-code" not in channels_of(port, 2)
