"""The programs as they run: `ctxr serve`, `ctxr up` and `ctxr mcp` as processes of their own."""

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
from tests.cli.upkeep.test_doctor import make_newer
from tests.conformance.servers import free_port
from tests.pages.conftest import served
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write

pytestmark = pytest.mark.timeout(240)

START_SECONDS = 100
"""Where the machine has other things to do, too."""


@contextmanager
def running(*words: str, port: int, **options: Any) -> Iterator["subprocess.Popen[str]"]:
    """A server that answers, gone at the end whatever happens."""
    process = program(*words, "--port", str(port), **options)
    try:
        wait_for(process, port)
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(process: "subprocess.Popen[str]", port: int) -> None:
    """Return when the server accepts connections."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    process.kill()
    raise AssertionError(process.communicate()[1])


def failure_of(*words: str) -> str:
    """What a command says that fails at start; in this process, as there is nothing to end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cli.running.serving.set_up_logging", lambda *_, **__: None)  # pytest's own stays as it is
        result = bare_ctxr(*words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert isinstance(result.exception, SystemExit)
    return result.stderr


@pytest.mark.anyio
async def test_mcp_the_api_chat_windows_and_listeners_share_one_process_that_ends_when_asked(
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
        assert ctxr_processes() == [server.pid]
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


def ctxr_processes() -> list[int]:
    """The local processes of the test's home."""
    return [int(lock.read_text()) for lock in Path(os.environ["CTXR_HOME"]).glob("local/*.lock")]


def test_the_first_start_makes_the_registry_shows_how_to_connect_brings_in_what_a_client_writes_and_sleeps(
    empty_home: Path, port: int
) -> None:
    write(empty_home / ".claude", question("Where is the basket?", 1))
    with running("up", port=port) as server:
        assert httpx.get(f"http://127.0.0.1:{port}/ready", timeout=START_SECONDS).status_code == 200
        shown = "".join(iter_until(server, "Then say to your AI"))
        write(empty_home / ".claude", question("Is it kept?", 2))
        assert channels_of(port, 2) == ["claude-code", "claude-code"]
        if Path("/proc/self/task").exists():
            assert_asleep(server.pid)
            assert heaps_of(server.pid) <= 2  # what is freed goes back to the system
        again = failure_of("up", "--port", str(port))
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=START_SECONDS)
    assert (empty_home / "ctxr" / "registry.db").exists()
    imported = shown.index("1 session read, 1 new message, from 1 client")
    assert imported < shown.index(f"http://127.0.0.1:{port}/mcp") < shown.index(json.dumps(str(launcher_file())))
    assert f"Context Registry runs already at http://127.0.0.1:{port}" in again
    assert (server.returncode, "Traceback" in said) == (130, False)


def assert_asleep(pid: int) -> None:
    """Fail if a server that nobody asks has something to do; Linux counts each thread's waits."""
    deadline, a_second = time.monotonic() + START_SECONDS, 99.0
    while a_second > 20 and time.monotonic() < deadline:  # after the start has its imports behind it
        before = waits_of(pid)
        time.sleep(2)
        a_second = (waits_of(pid) - before) / 2
    assert a_second <= 20  # uvicorn looks for a signal ten times a second, the watcher for changes three times


def waits_of(pid: int) -> int:
    """How often the threads of a process have gone to sleep."""
    states = [task.joinpath("status").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    return sum(int(line.split()[1]) for state in states for line in state.splitlines() if line.startswith("voluntary"))


def iter_until(server: "subprocess.Popen[str]", end: str) -> Iterator[str]:
    """The lines of a program's output up to the one that has this in it."""
    assert server.stdout is not None
    for line in server.stdout:
        yield line
        if end in line:
            return


def question(text: str, number: int) -> Dialogue:
    """A transcript of Claude Code."""
    talk = Dialogue(session_id(number))
    talk.user(text)
    return talk


def channels_of(port: int, count: int) -> list[str]:
    """The names of the channels, as soon as there are so many."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        found = httpx.get(f"http://127.0.0.1:{port}/bo/channels", timeout=START_SECONDS).json()
        if found["total"] >= count:
            return [channel["source"] for channel in found["items"]]
        time.sleep(0.05)
    raise AssertionError(found)


def test_a_port_that_is_taken_is_one_clear_line(ctxr: Ctxr, taken_port: int) -> None:
    complaint = failure_of("serve", "--port", str(taken_port))
    assert complaint.startswith(
        f"error: CANNOT_LISTEN: Cannot listen on 127.0.0.1 port {taken_port}: Address already in use\n"
    )
    assert "--port" in complaint.splitlines()[1]


def test_a_folder_that_cannot_be_made_is_one_clear_line(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CTXR_HOME", str(tmp_path / "file" / "ctxr"))
    complaint = failure_of("up", "--port", str(port))
    assert complaint.startswith("error: STORAGE_ERROR: The folder ")
    assert "CTXR_HOME" in complaint


def test_a_database_from_a_newer_version_is_one_clear_line(ctxr: Ctxr, empty_home: Path, port: int) -> None:
    make_newer(empty_home / "ctxr" / "registry.db")
    complaint = failure_of("serve", "--port", str(port))
    assert complaint.startswith("error: STORAGE_ERROR: The registry was written by a newer version")


def test_a_database_that_cannot_be_reached_is_one_clear_line(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXR_DATABASE_URL", "postgresql://me:secret@127.0.0.1:1/registry")
    complaint = failure_of("serve", "--port", str(port))
    assert complaint.startswith("error: STORAGE_ERROR: Could not open the registry.\n")
    assert "secret" not in complaint


def test_listening_for_other_machines_takes_a_token_and_tls(ctxr: Ctxr) -> None:
    complaint = failure_of("serve", "--host", "0.0.0.0")
    assert complaint.startswith("error: UNSAFE: Not started: 0.0.0.0 can be reached from other machines.")
    assert "ctxr token create" in complaint
    assert "CTXR_TLS_CERT" in complaint
    ctxr("token", "create", "--name", "phone")
    complaint = failure_of("serve", "--host", "0.0.0.0")
    assert complaint.startswith("error: UNSAFE: ")
    assert "ctxr token create" not in complaint


def test_behind_a_proxy_a_token_is_enough(ctxr: Ctxr) -> None:
    ctxr("token", "create", "--name", "phone")
    app = build_app(read_settings(host="0.0.0.0", public_url="https://memory.example.org"))
    with served(app) as address:
        for host in ("127.0.0.1", "memory.example.org"):
            assert httpx.get(f"{address}/bo/channels", headers={"host": host}).status_code == 401


@pytest.mark.anyio
async def test_a_message_of_many_megabytes_is_taken(ctxr: Ctxr, empty_home: Path) -> None:
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


def test_an_open_mcp_stream_outlasts_checks_of_its_token_and_ends_with_it(
    ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(admission, "RECHECK_S", 0.1)
    headers = {"accept": "text/event-stream"}
    headers["authorization"] = (
        f"Bearer {json.loads(ctxr('token', 'create', '--name', 'phone', '--json').stdout)['token']}"
    )
    with served(build_app(read_settings())) as address:
        opened = httpx.stream("GET", f"{address}/mcp", headers=headers, timeout=1)
        with opened as stream, pytest.raises(httpx.ReadTimeout):
            next(stream.iter_lines())
        assert not caplog.records
        with httpx.stream("GET", f"{address}/mcp", headers=headers, timeout=START_SECONDS) as stream:
            ctxr("token", "revoke", "phone")
            with suppress(httpx.RemoteProtocolError):  # cut off
                assert not list(stream.iter_lines())


def test_the_owner_gets_in_by_a_link_where_a_token_is_needed(ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_reader_that_goes_away_or_has_no_korean_letters_is_no_reason_to_fail(ctxr: Ctxr) -> None:
    ctxr("log", "-", given={"channel": "c", "messages": [{"role": "user", "text": "피보나치 " * 10_000}]})
    command = f"LC_ALL=C PYTHONIOENCODING=ascii {shlex.quote(CTXR)} extract c '' | head -c 1"
    shown = subprocess.run(command, shell=True, capture_output=True, timeout=START_SECONDS, check=True)  # noqa: S602
    assert (shown.stdout, shown.stderr) == (b"c", b"")
    printed = CliRunner(charset="ascii").invoke(cli, ["extract", "--json", "피보나치"]).stdout
    assert "피보나치" in json.loads(printed)["messages"][0]["text"]
