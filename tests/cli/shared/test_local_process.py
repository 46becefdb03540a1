"""Test the local process that chat windows and commands share, and its failures."""

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
from socket import SHUT_WR
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
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
INVALID = (
    {"id": 5, "method": "tools/call", "params": {"name": ["export_session"]}},
    {"method": "notifications/cancelled", "params": {"requestId": {}}},
    {"id": [6], "method": "initialize", "params": {}},
    {"method": "resources/subscribe", "params": {"uri": "conversation://c"}},
)
PATIENT = 60
LATER = "2026-03-01T09:05:00Z"
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
        """Return the id of the local process."""
        return int(Path(self.handle.path("lock")).read_text())

    def end(self) -> None:
        """End the local process."""
        if Path(self.handle.path("lock")).exists():
            self.handle.end_hung()

    def server(self, *words: str) -> StdioServerParameters:
        """Return the parameters with which a client starts the server."""
        return StdioServerParameters(command=CTXR, args=["mcp", *words], env=self.env, cwd=str(self.folder / "shop"))

    def run(self, *words: str, **env: str) -> tuple[int, str, str]:
        """Run a command; return its exit status, stdout and stderr."""
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
        self.receive()
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

    def descendants(self) -> set[int]:
        """Return the ids of the processes that the program started, and of those that they started."""
        found, parents = set[int](), [self._process.pid]
        while parents:
            children = Path(f"/proc/{parents[0]}/task/{parents.pop(0)}/children").read_text().split()
            parents += map(int, children)
            found.update(map(int, children))
        return found

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
        """Return the tools, prompts and resources."""
        found: dict[str, Any] = {}
        for what in ("tools", "prompts", "resources"):
            self.ask(f"{what}/list", {}, 100)
            found[what] = self.receive()["result"][what]
        return found

    def receive(self) -> dict[str, Any]:
        """Return the next message."""
        assert self._process.stdout is not None
        heard: dict[str, Any] = json.loads(self._process.stdout.readline())
        return heard

    def wait_until_idle(self) -> None:
        """Wait until the program has read everything it was sent, and sleeps again."""
        assert self._process.stdin is not None
        stat = Path(f"/proc/{self._process.pid}/stat")
        while any(fcntl.ioctl(self._process.stdin, termios.FIONREAD, bytes(4))) or ") S " not in stat.read_text():
            time.sleep(0.005)

    def send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


def user_messages(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "text": text}]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Return one home for all tests of this module, each of which uses its own channels."""
    home = Home(tmp_path_factory.mktemp("local"))
    yield home
    home.end()


@pytest.fixture
def own_home(tmp_path: Path) -> Iterator[Callable[..., Home]]:
    """Return a function that makes a home for this test."""
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
        await other.call_tool(
            "conversation_log", {"channel": f"basket-{mode}", "messages": user_messages("hi"), "meta": meta}
        )
        seen = (await one.call_tool("list_sessions", {"full": True})).structured_content
        not_seen = (await other.call_tool("list_sessions", {"full": True})).structured_content
    assert seen is not None
    assert not_seen is not None
    assert f"basket-{mode}" in [session["channel"] for session in seen["result"]["sessions"]]
    assert not_seen["result"]["sessions"] == []


def must_not_be_repeated(tool: Tool) -> bool:
    """Return whether a repeated call of the tool would do harm, by its annotations."""
    assert tool.annotations is not None
    return not (tool.annotations.read_only_hint or tool.annotations.idempotent_hint)


def test_a_client_subscribed_to_other_stores_gets_its_own_process() -> None:
    read = {name for file in (ROOT / "sources").rglob("*.py") for name in VARIABLE.findall(file.read_text("utf-8"))}
    assert read
    assert {ProcessHandle("/home", {}).name}.isdisjoint(ProcessHandle("/home", {name: "x"}).name for name in read)


def test_a_killed_process_loses_no_answer_or_notification_and_repeats_no_write(home: Home) -> None:
    uri = "registry://channels/news"
    with Window(home) as window, Window(home) as subscriber, Window(home, revision="2026-07-28") as listener:
        subscriber.ask("resources/subscribe", {"uri": uri}, 7)
        assert subscriber.receive()["id"] == 7
        listener.ask("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}}, 7)
        assert listener.receive()["method"] == "notifications/subscriptions/acknowledged"
        window.call("conversation_log", channel="news", messages=user_messages("from another window"))
        window.receive()
        assert [each.receive()["params"]["uri"] for each in (subscriber, listener)] == [uri, uri]
        window.call("conversation_log", channel="killed", messages=user_messages("one"))
        window.receive()
        os.kill(home.process, signal.SIGSTOP)
        window.call("conversation_log", channel="killed", messages=[*user_messages("one"), *user_messages("two")])
        window.call("export_session", session_id="#1", path="chat.md")
        window.call("list_sessions", project="all")
        window.wait_until_idle()
        for wrong in INVALID:
            subscriber.send({"jsonrpc": "2.0", **wrong})
        subscriber.call("list_sessions", project="all")
        os.kill(home.process, signal.SIGKILL)
        answers = {answer["id"]: answer for answer in (window.receive() for _ in range(3))}
        assert listener.receive()["params"]["uri"] == uri  # it may have missed a notification
        heard: list[dict[str, Any]] = []
        while not {2, 5} <= {one.get("id") for one in heard} or all(one.get("params") != {"uri": uri} for one in heard):
            heard.append(subscriber.receive())  # a notification may come twice
    logged = answers[4]["result"]["structuredContent"]["result"]
    assert (logged["new_count"], logged["duplicate_count"]) == (1, 1)
    assert "check before you try again" in answers[5]["error"]["message"]
    assert answers[6]["result"]["structuredContent"]["ok"]
    assert [one["result"]["structuredContent"]["ok"] for one in heard if one.get("id") == 2] == [True]
    assert [one["id"] for one in heard if "error" in one] == [5]


def test_a_hanging_process_is_replaced_and_no_note_waits_for_it(home: Home) -> None:
    home.run("list")
    talk = {
        "channel": "cursor_session_1",
        "messages": user_messages("hello"),
        "meta": {"project": str(home.folder / "shop")},
    }
    (home.folder / "talk.json").write_text(json.dumps(talk))
    assert home.run("log", "--json", str(home.folder / "talk.json"))[0] == 0
    by_the_process = home.run("note")
    assert "last asked: hello" in by_the_process[1]
    code = (
        "from cli.shared import process_handle, window;"
        "process_handle.ANSWER_TIMEOUT_S, window.ANSWER_TIMEOUT_S = 5.0, 1.0; window.run_window([])"
    )
    with Window(home, sys.executable, "-c", code) as window:
        window.call("list_sessions")
        window.receive()  # it is connected
        hanging = home.process
        os.kill(hanging, signal.SIGSTOP)
        assert home.run("note") == by_the_process
        assert home.process == hanging
        window.call("list_sessions")
        assert window.receive()["result"]["structuredContent"]["ok"]
        assert home.process != hanging


def test_a_client_that_ends_all_descendants_of_its_window_leaves_the_process_to_others(
    own_home: Callable[..., Home],
) -> None:
    home = own_home()
    with Window(home) as window:
        window.call("list_sessions")
        window.receive()
        assert home.process not in window.descendants()


def test_a_hint_that_its_hook_did_not_wait_for_is_given_at_the_next_prompt(home: Home) -> None:
    fix = user_messages("The mirador importer fails with quotaExceeded at midnight: raise the limit of the dawn batch.")
    answered = {"role": "assistant", "text": "Raised the quota of mirador's dawn batch to 900.", "timestamp": LATER}
    talk = {"channel": "codex_session_1", "messages": [*fix, answered], "meta": {"source": "codex"}}
    (home.folder / "talk.json").write_text(json.dumps(talk))
    assert home.run("log", "--json", str(home.folder / "talk.json"))[0] == 0
    words = [
        "note",
        "--session",
        "s-1",
        "--prompt",
        "mirador importer: quotaExceeded in the dawn batch at midnight again",
    ]
    home.run("list")
    told = {"want": "command", "words": words, "folder": "", "columns": 80, "is_utf8": True}
    connection = home.handle.connect()
    assert connection
    connection.settimeout(PATIENT)
    connection.sendall(json.dumps({**told, "are_terminals": [False, False]}).encode())
    connection.shutdown(SHUT_WR)  # also ends the line, so the command begins when its caller has left
    while connection.recv(100):
        pass  # until the process has given up the hint
    connection.close()
    assert "to 900" in home.run(*words)[1]


def test_changed_settings_start_a_new_process_for_all_windows(home: Home) -> None:
    with Window(home) as window:
        window.call("list_sessions", project="all")
        window.receive()
        old = home.process
        wait_for_lists(home)
        assert read_lists(home.handle, [])
        window.call("conversation_log", channel="moved", messages=user_messages("on the way"))
        (home.folder / "ctxr" / "config.toml").write_text("timeout_s = 31\n")
        assert not read_lists(home.handle, [])
        with Window(home):
            assert home.process != old
            window.call(
                "conversation_log", channel="moved", messages=[*user_messages("on the way"), *user_messages("hello")]
            )
            logged = [window.receive()["result"]["structuredContent"]["result"] for _ in range(2)]
    assert [(one["new_count"], one["duplicate_count"]) for one in logged] == [(1, 0), (1, 1)]


def test_commands_print_the_same_as_in_their_own_process(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_window_and_a_command_import_almost_nothing() -> None:
    code = (
        "import sys; import cli.entry, cli.shared.window, cli.shared.command;"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


@pytest.mark.skipif(sys.platform != "linux", reason="reads memory from /proc")
def test_the_process_uses_little_memory(home: Home) -> None:
    with Window(home) as window:
        window.call("extract", query={"text": "baskets"})
        window.receive()
        parts = Path(f"/proc/{home.process}/smaps_rollup").read_text().splitlines()
        own = sum(int(line.split()[1]) for line in parts if line.startswith("Private"))
        heaps = heaps_of(home.process)
    assert own < 125_000  # kB, without a model
    assert heaps <= 2  # memory of a dropped model is returned


def test_a_window_lists_its_tools_while_the_process_starts(home: Home) -> None:
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
        assert cold[0].receive()["result"]["structuredContent"]["ok"]
    for lists in listed:
        assert [tool["name"] for tool in lists["tools"]] == [tool["name"] for tool in by_the_process["tools"]]
        assert len(lists["prompts"]) == 6
        assert len(lists["resources"]) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads connections from /proc")
def test_a_client_that_introduces_itself_after_the_connection_is_known_by_its_name(home: Home) -> None:
    with Window(home):
        wait_for_lists(home)
    with Window(home, is_late=True) as window:
        window.call("conversation_log", messages=user_messages("hi"))
        channel = window.receive()["result"]["structuredContent"]["result"]["channel"]
    assert channel.startswith("cursor_session_")


def wait_for_lists(home: Home) -> None:
    """Wait until a process has cached its lists for windows that open while the next one starts."""
    while not list(Path(home.handle.folder).glob("*.lists")):
        time.sleep(0.01)


def test_a_window_without_a_local_process_works_by_itself(own_home: Callable[..., Home]) -> None:
    home = own_home()
    (home.folder / "ctxr").mkdir()
    (home.folder / "ctxr" / "local").touch()
    here = str(home.folder / "shop")
    with Window(home, CTXR, "mcp", "--toolsets", "default,history", "--project", here) as window:
        assert {"conversation_log", "export_session"} <= {tool["name"] for tool in window.lists()["tools"]}
        for channel, project in (("here", here), ("there", "/elsewhere")):
            window.call("conversation_log", channel=channel, messages=user_messages("hello"), meta={"project": project})
            window.receive()
        window.call("list_sessions", full=True)
        found = window.receive()["result"]["structuredContent"]["result"]
        uri = "registry://channels/here"
        window.ask("resources/subscribe", {"uri": uri}, 50)
        window.receive()
        window.call("conversation_log", channel="here", messages=user_messages("more"), meta={"project": here})
        assert {"uri": uri} in [window.receive().get("params") for _ in range(2)]
    assert [session["channel"] for session in found["sessions"]] == ["here"]


def test_an_unknown_toolset_is_refused_with_the_known_ones() -> None:
    for named in ["nope", "default,nope", ","]:
        failed = bare_ctxr("mcp", "--toolsets", named)
        assert failed.exit_code == 2
        assert "allowed: default, history, all" in failed.stderr


@pytest.mark.parametrize("hindrance", ["a file in its place", "open to others"])
def test_if_nothing_can_be_shared_no_process_is_started(own_home: Callable[..., Home], hindrance: str) -> None:
    home = own_home()
    (home.folder / "ctxr").mkdir()
    if hindrance == "open to others":
        (home.folder / "ctxr" / "local").mkdir(mode=0o755)
    else:
        (home.folder / "ctxr" / "local").touch()
    assert home.handle.reach({"want": "ping"}) is None
    assert not Path(home.handle.path("lock")).exists()


def test_without_sockets_a_port_and_a_secret_are_used(own_home: Callable[..., Home]) -> None:
    home = own_home(CTXR_SHARED="loopback")
    with Window(home) as window:
        window.call("conversation_log", channel="c", messages=user_messages("hello " * 50_000))
        assert window.receive()["result"]["structuredContent"]["ok"]
        window.call("fetch_session_by_id", session_id="#1")
        assert len(window.receive()["result"]["content"][0]["text"]) > 4_000
    file = Path(home.handle.path("port"))
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text(f"{file.read_text().split()[0]} guessed")
    stranger = home.handle.connect()
    assert stranger is not None
    stranger.sendall(b'{"want": "ping"}\n')
    assert stranger.recv(100) == b""
    stranger.close()


def test_the_socket_and_its_folder_are_private(home: Home) -> None:
    home.run("list")
    assert {Path(folder).stat().st_mode & 0o777 for folder in (home.handle.home, home.handle.folder)} == {0o700}
    assert Path(home.handle.path("sock")).stat().st_mode & 0o777 == 0o600


@pytest.mark.anyio
async def test_an_unused_process_ends_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
async def test_a_process_stays_while_a_client_is_connected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    raise AssertionError("unexpected call")


async def no_news(_: object) -> AsyncIterator[set[str]]:
    for _ in range(0):
        yield set()
