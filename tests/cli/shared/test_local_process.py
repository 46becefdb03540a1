"""The one local process of all chat windows and commands: what clients and terminals see of it, and when it fails."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated
from mcp.types import Tool

from cli.shared import process as local_process
from cli.shared.process import LocalProcess
from cli.shared.process_handle import ProcessHandle
from cli.shared.recorded_lists import read_lists
from cli.shared.window import NOT_REPEATED
from tests.cli.conftest import CTXR, bare_ctxr, heaps_of

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "cursor-vscode", "version": "1"}}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": HELLO["clientInfo"],
    "io.modelcontextprotocol/clientCapabilities": {},
}
HEAVY = ("click", "pydantic", "mcp", "socket", "subprocess", "threading", "asyncio", "sqlalchemy")
PATIENT = 60
ROOT = Path(__file__).parents[3]
VARIABLE = re.compile(r'"([A-Z][A-Z_]+(?:_DIR|_HOME|DATA))"')


class Home:
    """A user's home folder with one local process, ended with it."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.folder = folder
        (folder / "shop").mkdir(parents=True)
        own = {"HOME": str(folder), "CTXR_HOME": str(folder / "ctxr"), "CTXR_SHARED": "on", "CTXR_EMBED_MODEL": "off"}
        self.env = {**os.environ, **own, **env}
        for kind in ("CONFIG", "DATA"):
            self.env[f"XDG_{kind}_HOME"] = str(folder / kind)
        self.handle = ProcessHandle(str(folder / "ctxr"), self.env)

    @property
    def process(self) -> int:
        """The id of the local process."""
        return int(Path(self.handle.path("lock")).read_text())

    def end(self) -> None:
        """No process is left behind."""
        if Path(self.handle.path("lock")).exists():
            self.handle.end_hung()

    def server(self, *words: str) -> StdioServerParameters:
        """What a client is configured with."""
        return StdioServerParameters(command=CTXR, args=["mcp", *words], env=self.env, cwd=str(self.folder / "shop"))

    def run(self, *words: str, **env: str) -> tuple[int, str, str]:
        """Exit status, stdout and stderr of a command."""
        done = subprocess.run(
            [CTXR, *words], env={**self.env, **env}, cwd=self.folder / "shop", capture_output=True, check=False
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()


class Window:
    """A client's end of `ctxr mcp`, message by message."""

    def __init__(self, home: Home, *program: str, revision: str = "2025-11-25", is_late: bool = False) -> None:
        self._process = subprocess.Popen(
            program or (CTXR, "mcp"),
            env=home.env,
            cwd=home.folder / "shop",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._meta = {"_meta": META} if revision > "2026" else {}
        self._number = 1
        while is_late and not self._is_connected():
            time.sleep(0.01)
        if is_late:
            time.sleep(0.1)  # it takes over the connection within 2 ms
        if self._meta:
            self.ask("server/discover", {})
        else:
            self.ask("initialize", {**HELLO, "protocolVersion": revision})
        self.hear()
        if not self._meta:
            self.say("notifications/initialized", {})

    def __enter__(self) -> Window:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=PATIENT)

    def _is_connected(self) -> bool:
        """Return True if the program has a socket open."""
        with suppress(FileNotFoundError):  # it closes files meanwhile
            return any("socket" in os.readlink(file) for file in Path(f"/proc/{self._process.pid}/fd").iterdir())
        return False

    def ask(self, method: str, params: dict[str, Any], number: int = 0) -> None:
        """Send a request."""
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, **self._meta}})

    def call(self, tool: str, **arguments: Any) -> None:
        """Send a tool call."""
        self._number += 1
        self.ask("tools/call", {"name": tool, "arguments": arguments}, self._number)

    def say(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def lists(self) -> dict[str, Any]:
        """The tools, prompts and resources."""
        found: dict[str, Any] = {}
        for what in ("tools", "prompts", "resources"):
            self.ask(f"{what}/list", {}, 100)
            found[what] = self.hear()["result"][what]
        return found

    def hear(self) -> dict[str, Any]:
        """The next message."""
        assert self._process.stdout is not None
        heard: dict[str, Any] = json.loads(self._process.stdout.readline())
        return heard

    def pass_on(self) -> None:
        """Wait until the program has read all it was sent, and sleeps again."""
        assert self._process.stdin is not None
        stat = Path(f"/proc/{self._process.pid}/stat")
        while any(fcntl.ioctl(self._process.stdin, termios.FIONREAD, bytes(4))) or ") S " not in stat.read_text():
            time.sleep(0.005)

    def send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "text": text}]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """One for all tests of this module: each uses channels of its own."""
    home = Home(tmp_path_factory.mktemp("local"))
    yield home
    home.end()


@pytest.fixture
def own_home(tmp_path: Path) -> Iterator[Callable[..., Home]]:
    """A home of the test's own."""
    homes: list[Home] = []

    def make(**env: str) -> Home:
        homes.append(Home(tmp_path / "own", **env))
        return homes[-1]

    yield make
    for home in homes:
        home.end()


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_windows_share_a_process_and_each_has_its_own_tools_and_project(home: Home, mode: str) -> None:
    project = str(home.folder / "shop")
    async with (
        Client(home.server(), mode=mode) as one,
        Client(home.server("--toolsets", "all", "--project", "/elsewhere"), mode=mode) as other,
    ):
        few, every = (await one.list_tools()).tools, (await other.list_tools()).tools
        assert len(few) < len(every)
        assert {tool.name for tool in every if must_not_be_repeated(tool)} <= NOT_REPEATED
        meta = {"project": project}
        await other.call_tool("conversation_log", {"channel": f"basket-{mode}", "messages": said("hi"), "meta": meta})
        seen = (await one.call_tool("list_sessions", {"full": True})).structured_content
        not_seen = (await other.call_tool("list_sessions", {"full": True})).structured_content
    assert seen is not None
    assert not_seen is not None
    assert f"basket-{mode}" in [session["channel"] for session in seen["result"]["sessions"]]
    assert not_seen["result"]["sessions"] == []


def must_not_be_repeated(tool: Tool) -> bool:
    """What the tool says of itself."""
    assert tool.annotations is not None
    return not (tool.annotations.read_only_hint or tool.annotations.idempotent_hint)


def test_who_is_told_of_other_stores_gets_a_process_of_its_own() -> None:
    read = {name for file in (ROOT / "sources").rglob("*.py") for name in VARIABLE.findall(file.read_text("utf-8"))}
    assert read
    assert {ProcessHandle("/home", {}).name}.isdisjoint(ProcessHandle("/home", {name: "x"}).name for name in read)


@pytest.mark.anyio
async def test_a_window_is_told_what_another_stores_also_after_the_process_was_killed(home: Home) -> None:
    uri, file = "registry://channels/news", home.folder / "window"
    told_its_id = StdioServerParameters(
        command="sh", args=["-c", f"echo $$ > {file}; exec {CTXR} mcp"], env=home.env, cwd=str(home.folder / "shop")
    )
    async with (
        Client(told_its_id) as claude,
        claude.listen(resource_subscriptions=[uri]) as news,
        Client(home.server(), mode="legacy") as cursor,
    ):
        for text in ("before", "after"):
            if text == "after":
                os.kill(int(file.read_text()), signal.SIGSTOP)  # it finds out when all is stored
                os.kill(home.process, signal.SIGKILL)
            await cursor.call_tool("conversation_log", {"channel": "news", "messages": said(text)})
            os.kill(int(file.read_text()), signal.SIGCONT)
            with anyio.fail_after(PATIENT):
                assert await anext(aiter(news)) == ResourceUpdated(uri)


def test_a_killed_process_costs_no_answer_and_no_news_and_nothing_is_done_twice(home: Home) -> None:
    uri = "registry://channels/old"
    with Window(home) as window, Window(home) as subscriber:
        subscriber.ask("resources/subscribe", {"uri": uri}, 7)
        assert subscriber.hear()["id"] == 7
        window.call("conversation_log", channel="killed", messages=said("one"))
        window.hear()
        os.kill(home.process, signal.SIGSTOP)
        window.call("conversation_log", channel="killed", messages=[*said("one"), *said("two")])
        window.call("export_session", session_id="#1", path="chat.md")
        window.call("list_sessions", project="all")
        window.pass_on()
        os.kill(home.process, signal.SIGKILL)
        answers = {answer["id"]: answer for answer in (window.hear() for _ in range(3))}
        assert subscriber.hear()["params"] == {"uri": uri}  # it may have missed something
    logged = answers[3]["result"]["structuredContent"]["result"]
    assert (logged["new_count"], logged["duplicate_count"]) == (1, 1)
    assert "check before you try again" in answers[4]["error"]["message"]
    assert answers[5]["result"]["structuredContent"]["ok"]


def test_a_process_that_hangs_is_replaced_and_no_note_for_a_new_chat_waits_for_it(home: Home) -> None:
    home.run("list")
    talk = {"channel": "cursor_session_1", "messages": said("hello"), "meta": {"project": str(home.folder / "shop")}}
    (home.folder / "talk.json").write_text(json.dumps(talk))
    assert home.run("log", "--json", str(home.folder / "talk.json"))[0] == 0
    by_the_process = home.run("note")
    assert "last asked: hello" in by_the_process[1]
    code = (
        "from cli.shared import process_handle, window; process_handle.ANSWER_TIMEOUT_S = 10.0; window.run_window([])"
    )
    with Window(home, sys.executable, "-c", code) as window:
        hanging = home.process
        os.kill(hanging, signal.SIGSTOP)
        assert home.run("note") == by_the_process
        assert home.process == hanging
        window.call("list_sessions")
        assert window.hear()["result"]["structuredContent"]["ok"]
        assert home.process != hanging


def test_a_change_of_the_settings_brings_a_new_process_to_all_windows(home: Home) -> None:
    with Window(home) as window:
        window.call("list_sessions", project="all")
        window.hear()
        old = home.process
        wait_for_lists(home)
        assert read_lists(home.handle, [])
        window.call("conversation_log", channel="moved", messages=said("on the way"))
        (home.folder / "ctxr" / "config.toml").write_text("timeout_s = 31\n")
        assert not read_lists(home.handle, [])
        with Window(home):
            assert home.process != old
            window.call("conversation_log", channel="moved", messages=[*said("on the way"), *said("hello")])
            logged = [window.hear()["result"]["structuredContent"]["result"] for _ in range(2)]
    assert [(one["new_count"], one["duplicate_count"]) for one in logged] == [(1, 0), (1, 1)]


def test_commands_say_the_same_as_in_a_process_of_their_own(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in home.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(home.folder / "shop")
    for words in (
        *(("list",), ("list", "--json", "--project", "."), ("recent", "--days", "3"), ("show", "1"), ("sync",)),
        *(("search", "two"), ("search", "unheard-of"), ("show", "nothing"), ("list", "--limit", "x")),
        *(("extract", "two")),
    ):
        alone = bare_ctxr(*words)
        assert home.run(*words) == (alone.exit_code, alone.stdout, alone.stderr), words


def test_a_window_and_a_command_import_next_to_nothing() -> None:
    code = (
        "import sys; import cli.entry, cli.shared.window, cli.shared.command;"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


@pytest.mark.skipif(sys.platform != "linux", reason="how much is a process's own is read from /proc")
def test_the_process_holds_little_memory_of_its_own(home: Home) -> None:
    with Window(home) as window:
        window.call("extract", query={"text": "baskets"})
        window.hear()
        parts = Path(f"/proc/{home.process}/smaps_rollup").read_text().splitlines()
        own = sum(int(line.split()[1]) for line in parts if line.startswith("Private"))
        heaps = heaps_of(home.process)
    assert own < 125_000  # kB, without a model
    assert heaps <= 2  # what a dropped model held goes back


def test_a_window_lists_its_tools_while_the_process_is_still_starting(home: Home) -> None:
    with Window(home) as window:
        wait_for_lists(home)
        by_the_process = window.lists()
    home.handle.end_hung()
    lock = home.handle.lock()  # no process can start meanwhile
    assert lock
    with ExitStack() as stack:
        cold = [stack.enter_context(Window(home, revision=each)) for each in ("2024-11-05", "2025-11-25", "2026-07-28")]
        listed = [window.lists() for window in cold]
        cold[0].call("list_sessions", project="all")
        os.close(lock)
        assert cold[0].hear()["result"]["structuredContent"]["ok"]
    for lists in listed:
        assert [tool["name"] for tool in lists["tools"]] == [tool["name"] for tool in by_the_process["tools"]]
        assert len(lists["prompts"]) == 6
        assert len(lists["resources"]) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="that a window is connected is read from /proc")
def test_a_client_that_introduces_itself_when_the_window_is_connected_is_known_by_its_name(home: Home) -> None:
    with Window(home):
        wait_for_lists(home)
    with Window(home, is_late=True) as window:
        window.call("conversation_log", messages=said("hi"))
        channel = window.hear()["result"]["structuredContent"]["result"]["channel"]
    assert channel.startswith("cursor_session_")


def test_a_window_outlives_messages_that_are_none(home: Home) -> None:
    with Window(home) as window:
        for wrong in (
            {"id": 5, "method": "tools/call", "params": {"name": ["export_session"]}},
            {"method": "notifications/cancelled", "params": {"requestId": {}}},
            {"id": [6], "method": "initialize", "params": {}},
            {"method": "resources/subscribe", "params": {"uri": "conversation://c"}},
        ):
            window.send({"jsonrpc": "2.0", **wrong})
        home.handle.end_hung()
        window.call("list_sessions", project="all")
        while (heard := window.hear()).get("id") != 2:
            assert "error" in heard, heard
        assert heard["result"]["structuredContent"]["ok"]


def wait_for_lists(home: Home) -> None:
    """Return when a process has noted its lists for the windows that come while the next one starts."""
    while not list(Path(home.handle.folder).glob("*.lists")):
        time.sleep(0.01)


def test_a_window_that_can_share_nothing_works_by_itself(own_home: Callable[..., Home]) -> None:
    home = own_home()
    (home.folder / "ctxr").mkdir()
    (home.folder / "ctxr" / "local").touch()
    here = str(home.folder / "shop")
    with Window(home, CTXR, "mcp", "--toolsets", "default,history", "--project", here) as window:
        assert {"conversation_log", "export_session"} <= {tool["name"] for tool in window.lists()["tools"]}
        for channel, project in (("here", here), ("there", "/elsewhere")):
            window.call("conversation_log", channel=channel, messages=said("hello"), meta={"project": project})
            window.hear()
        window.call("list_sessions", full=True)
        found = window.hear()["result"]["structuredContent"]["result"]
        uri = "registry://channels/here"
        window.ask("resources/subscribe", {"uri": uri}, 50)
        window.hear()
        window.call("conversation_log", channel="here", messages=said("more"), meta={"project": here})
        assert {"uri": uri} in [window.hear().get("params") for _ in range(2)]
    assert [session["channel"] for session in found["sessions"]] == ["here"]


def test_an_unknown_toolset_is_refused_with_the_known_ones() -> None:
    for named in ["nope", "default,nope", ","]:
        failed = bare_ctxr("mcp", "--toolsets", named)
        assert failed.exit_code == 2
        assert "allowed: default, history, all" in failed.stderr


@pytest.mark.parametrize("hindrance", ["a file in its place", "open to others"])
def test_where_nothing_can_be_shared_nothing_is_started(own_home: Callable[..., Home], hindrance: str) -> None:
    home = own_home()
    (home.folder / "ctxr").mkdir()
    if hindrance == "open to others":
        (home.folder / "ctxr" / "local").mkdir(mode=0o755)
    else:
        (home.folder / "ctxr" / "local").touch()
    assert home.handle.reach({"want": "ping"}) is None
    assert not Path(home.handle.path("lock")).exists()


def test_where_there_are_no_sockets_a_port_and_a_secret_do(own_home: Callable[..., Home]) -> None:
    home = own_home(CTXR_SHARED="loopback")
    with Window(home) as window:
        window.call("conversation_log", channel="c", messages=said("hello " * 50_000))
        assert window.hear()["result"]["structuredContent"]["ok"]
        window.call("fetch_session_by_id", session_id="#1")
        assert len(window.hear()["result"]["content"][0]["text"]) > 4_000
    file = Path(home.handle.path("port"))
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text(f"{file.read_text().split()[0]} guessed")
    stranger = home.handle.connect()
    assert stranger is not None
    stranger.sendall(b'{"want": "ping"}\n')
    assert stranger.recv(100) == b""
    stranger.close()


def test_the_socket_and_its_folder_are_the_users_alone(home: Home) -> None:
    home.run("list")
    assert {Path(folder).stat().st_mode & 0o777 for folder in (home.handle.home, home.handle.folder)} == {0o700}
    assert Path(home.handle.path("sock")).stat().st_mode & 0o777 == 0o600


@pytest.mark.anyio
async def test_a_process_ends_when_nobody_has_come_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_process, "CHECK_INTERVAL_S", 0.01)
    monkeypatch.setattr(local_process, "IDLE_TIMEOUT_S", 0.02)
    handle = ProcessHandle(str(tmp_path), {})
    handle.open_folder()
    lock = handle.lock()
    assert lock is not None
    with anyio.fail_after(PATIENT):
        await LocalProcess(handle, no_operation, no_news).serve(lock)
    assert os.listdir(handle.folder) == [f"{handle.name}.lock"]
    assert handle.lock() is not None


@pytest.mark.anyio
async def test_a_process_of_chat_windows_stays_while_a_client_is_connected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bare_ctxr("install", "cursor", "--yes").exit_code == 0
    monkeypatch.setattr(local_process, "CHECK_INTERVAL_S", 0.01)
    monkeypatch.setattr(local_process, "IDLE_TIMEOUT_S", 0.02)
    handle = ProcessHandle(str(tmp_path), {})
    handle.open_folder()
    lock = handle.lock()
    assert lock is not None
    process = LocalProcess(handle, no_operation, no_news)
    process.has_served_window = True
    serving = asyncio.create_task(process.serve(lock))
    await asyncio.wait([serving], timeout=0.3)
    assert not serving.done()
    assert bare_ctxr("uninstall", "cursor", "--yes").exit_code == 0
    with anyio.fail_after(PATIENT):
        await serving


async def no_operation(*_: object) -> dict[str, Any]:
    raise AssertionError("nobody asks")


async def no_news(_: object) -> AsyncIterator[set[str]]:
    for _ in range(0):
        yield set()
