"""Test `ctxr serve`, `ctxr up` and `ctxr mcp` as separate processes."""

import json
import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import anyio
import httpx
import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated

from backoffice import admission
from cli.connect.snippets import launcher_file
from cli.main import cli
from cli.running.serve import build_app
from registry.settings import Settings, read_settings
from tests.cli.conftest import CTXR, FIBONACCI, Ctxr, bare_ctxr, heaps_of, program
from tests.conformance.servers import free_port
from tests.pages.conftest import served
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write

pytestmark = pytest.mark.timeout(240)

START_SECONDS = 100
"""Long enough for a busy machine."""


@contextmanager
def running(*words: str, port: int, **options: Any) -> Iterator["subprocess.Popen[str]"]:
    """Run a server until it answers; end it in any case."""
    process = program(*words, "--port", str(port), **options)
    try:
        wait_for(process, port)
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(process: "subprocess.Popen[str]", port: int) -> None:
    """Wait until the server accepts connections."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    process.kill()
    raise AssertionError(process.communicate()[1])


def startup_error(*words: str) -> str:
    """Return the output of a command that fails at start, run in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cli.running.serving.set_up_logging", lambda *_, **__: None)  # keep pytest's own logging
        result = bare_ctxr(*words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert isinstance(result.exception, SystemExit)
    return result.stderr


@pytest.mark.anyio
async def test_mcp_the_api_chat_windows_and_listeners_share_one_process_that_stops_on_request(
    ctxr: Ctxr, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"registry://channels/{FIBONACCI['channel']}"
    later = {"channel": FIBONACCI["channel"], "messages": [{"role": "user", "text": "And without recursion?"}]}
    monkeypatch.setenv("CTXR_SHARED", "on")
    with running("serve", port=port) as server:
        for mode in ("auto", "legacy"):
            async with Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client:
                assert {tool.name for tool in (await client.list_tools()).tools} >= {"conversation_log", "extract"}
                answer = await client.call_tool("conversation_log", FIBONACCI)
                assert not answer.is_error
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=START_SECONDS) as browser:
            assert (await browser.get("/health")).status_code == 200
            assert (await browser.get("/bo/channels")).json()["total"] == 1
            unknown = await browser.get("/nonsense")
        async with Client(StdioServerParameters(command=CTXR, args=["mcp"], env=dict(os.environ))) as window:
            found = await window.call_tool("extract", {"query": {"text": "피보나치"}})
            assert found.structured_content is not None
            assert found.structured_content["result"]["channel"] == FIBONACCI["channel"]
        assert local_processes() == [server.pid]
        assert unknown.status_code == 404
        assert unknown.json()["error"]["code"] == "NOT_FOUND"
        async with (
            Client(f"http://127.0.0.1:{port}/mcp") as client,
            client.listen(resource_subscriptions=[uri]) as news,
        ):
            await anyio.to_thread.run_sync(lambda: ctxr("log", "-", given=later))
            with anyio.fail_after(START_SECONDS):
                assert await anext(aiter(news)) == ResourceUpdated(uri)
            with httpx.stream("GET", f"http://127.0.0.1:{port}/bo/events", timeout=START_SECONDS) as stream:
                assert stream.status_code == 200
                server.terminate()
                _, said = await anyio.to_thread.run_sync(lambda: server.communicate(timeout=START_SECONDS))
    assert server.returncode == 0
    assert said == f"Context Registry at http://127.0.0.1:{port}, MCP at /mcp. Ctrl-C ends it.\n"


def local_processes() -> list[int]:
    """Return the ids of the local processes of the test's home."""
    return [int(lock.read_text()) for lock in Path(os.environ["CTXR_HOME"]).glob("local/*.lock")]


def test_the_first_start_makes_the_registry_shows_how_to_connect_imports_new_messages_and_sleeps(
    empty_home: Path, port: int
) -> None:
    write(empty_home / ".claude", question("Where is the basket?", 1))
    with running("up", port=port) as server:
        assert httpx.get(f"http://127.0.0.1:{port}/ready", timeout=START_SECONDS).status_code == 200
        *_, last = lines = list(lines_until(server, "Open the dashboard"))
        write(empty_home / ".claude", question("Is it kept?", 2))
        assert channels_of(port, 2) == ["claude-code", "claude-code"]
        if Path("/proc/self/task").exists():
            assert_idle(server.pid)
            assert heaps_of(server.pid) <= 2  # freed memory goes back to the system
        again = startup_error("up", "--port", str(port))
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=START_SECONDS)
    assert (empty_home / "ctxr" / "registry.db").exists()
    assert last == f"Open the dashboard: http://127.0.0.1:{port}/\n"
    shown = "".join(lines)
    imported = shown.index("1 session read, 1 new message, from 1 client")
    assert imported < shown.index(f"http://127.0.0.1:{port}/mcp") < shown.index(json.dumps(str(launcher_file())))
    assert f"Context Registry runs already at http://127.0.0.1:{port}" in again
    assert (server.returncode, "Traceback" in said) == (130, False)


def assert_idle(pid: int) -> None:
    """Fail if an unused server keeps waking up; Linux counts each thread's waits."""
    deadline, a_second = time.monotonic() + START_SECONDS, 99
    while a_second > 20 and time.monotonic() < deadline:  # until the imports of the start are done
        before = waits_of(pid)
        time.sleep(1)
        a_second = waits_of(pid) - before
    assert a_second <= 20  # uvicorn checks for a signal ten times a second, the watcher for changes three times


def waits_of(pid: int) -> int:
    """Count how often the threads of a process went to sleep."""
    states = [task.joinpath("status").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    return sum(int(line.split()[1]) for state in states for line in state.splitlines() if line.startswith("voluntary"))


def lines_until(server: "subprocess.Popen[str]", end: str) -> Iterator[str]:
    """Yield the lines of a program's output up to the one that contains `end`."""
    assert server.stdout is not None
    for line in server.stdout:
        yield line
        if end in line:
            return


def question(text: str, number: int) -> Dialogue:
    """Return a transcript of Claude Code."""
    talk = Dialogue(session_id(number))
    talk.user(text)
    return talk


def channels_of(port: int, count: int) -> list[str]:
    """Return the names of the channels as soon as there are `count`."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        found = httpx.get(f"http://127.0.0.1:{port}/bo/channels", timeout=START_SECONDS).json()
        if found["total"] >= count:
            return [channel["source"] for channel in found["items"]]
        time.sleep(0.05)
    raise AssertionError(found)


def test_a_taken_port_is_one_line_of_error(ctxr: Ctxr, taken_port: int) -> None:
    complaint = startup_error("serve", "--port", str(taken_port))
    assert complaint.startswith(
        f"error: CANNOT_LISTEN: Cannot listen on 127.0.0.1 port {taken_port}: Address already in use\n"
    )
    assert "--port" in complaint.splitlines()[1]


def test_a_folder_that_cannot_be_made_is_one_line_of_error(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CTXR_HOME", str(tmp_path / "file" / "ctxr"))
    complaint = startup_error("up", "--port", str(port))
    assert complaint.startswith("error: STORAGE_ERROR: The folder ")
    assert "CTXR_HOME" in complaint


def test_an_unreachable_database_is_one_line_of_error(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXR_DATABASE_URL", "postgresql://me:secret@127.0.0.1:1/registry")
    complaint = startup_error("serve", "--port", str(port))
    assert complaint.startswith("error: STORAGE_ERROR: Could not open the registry.\n")
    assert "secret" not in complaint


def test_serving_other_machines_needs_a_token_and_tls(ctxr: Ctxr) -> None:
    complaint = startup_error("serve", "--host", "0.0.0.0")
    assert complaint.startswith("error: UNSAFE: Not started: 0.0.0.0 can be reached from other machines.")
    assert "ctxr token create" in complaint
    assert "CTXR_TLS_CERT" in complaint
    ctxr("token", "create", "--name", "phone")
    complaint = startup_error("serve", "--host", "0.0.0.0")
    assert complaint.startswith("error: UNSAFE: ")
    assert "ctxr token create" not in complaint


def test_behind_a_proxy_a_token_is_enough(ctxr: Ctxr) -> None:
    ctxr("token", "create", "--name", "phone")
    app = build_app(read_settings(host="0.0.0.0", public_url="https://memory.example.org"))
    with served(app) as address:
        for host in ("127.0.0.1", "memory.example.org"):
            assert httpx.get(f"{address}/bo/channels", headers={"host": host}).status_code == 401


@pytest.mark.anyio
async def test_a_message_of_many_megabytes_is_accepted(ctxr: Ctxr, empty_home: Path) -> None:
    large = {"channel": "c", "messages": [{"role": "user", "text": "x" * 5_000_000}]}
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "conversation_log", "arguments": large},
    }
    app = build_app(Settings(home=empty_home / "ctxr"))
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=httpx.ASGITransport(app)) as http:
        headers = {"accept": "application/json, text/event-stream"}
        answer = await http.post("http://127.0.0.1:8765/mcp", json=call, headers=headers)
    assert answer.json()["result"]["structuredContent"]["ok"]


def test_an_open_mcp_stream_lasts_as_long_as_its_token(
    ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(admission, "RECHECK_S", 0.1)
    headers = {"accept": "text/event-stream"}
    headers["authorization"] = (
        f"Bearer {json.loads(ctxr('token', 'create', '--name', 'phone', '--json').stdout)['token']}"
    )
    with served(build_app(read_settings())) as address:
        opened = httpx.stream("GET", f"{address}/mcp", headers=headers, timeout=1)
        with pytest.raises(httpx.ReadTimeout), opened as stream:  # a busy machine may begin to answer later
            next(stream.iter_lines())
        assert not caplog.records
        with httpx.stream("GET", f"{address}/mcp", headers=headers, timeout=START_SECONDS) as stream:
            ctxr("token", "revoke", "phone")
            with suppress(httpx.RemoteProtocolError):  # cut off
                assert not list(stream.iter_lines())


def test_the_owner_opens_the_pages_by_a_link_if_a_token_is_needed(ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("click.launch", opened.append)
    ctxr("log", "-", given=FIBONACCI)
    ctxr("token", "create", "--name", "phone")
    monkeypatch.setenv("CTXR_PORT", str(free_port()))
    assert ctxr("open").stderr.startswith("error: NOT_RUNNING: ")
    with (
        served(build_app(read_settings())) as address,
        httpx.Client(base_url=address, timeout=START_SECONDS) as browser,
    ):
        monkeypatch.setenv("CTXR_PORT", str(httpx.URL(address).port))
        assert browser.get("/bo/channels").status_code == 401
        link = ctxr("open", "1").stdout.strip()
        assert opened == [link]
        given = dict(parse_qsl(urlsplit(link).query))
        page = f"/channels/{FIBONACCI['channel']}"
        assert browser.post("/login", data=given).headers["location"] == page
        assert browser.get(page).status_code == 200
        browser.cookies.clear()
        assert browser.post("/login", data=given).status_code == 401


def test_a_closed_pipe_or_an_encoding_without_korean_is_no_failure(ctxr: Ctxr) -> None:
    ctxr("log", "-", given={"channel": "c", "messages": [{"role": "user", "text": "피보나치 " * 10_000}]})
    command = f"LC_ALL=C PYTHONIOENCODING=ascii {shlex.quote(CTXR)} extract c '' | head -c 1"
    shown = subprocess.run(command, shell=True, capture_output=True, timeout=START_SECONDS, check=True)  # noqa: S602
    assert (shown.stdout, shown.stderr) == (b"c", b"")
    printed = CliRunner(charset="ascii").invoke(cli, ["extract", "--json", "피보나치"]).stdout
    assert "피보나치" in json.loads(printed)["messages"][0]["text"]
