"""The files that each operation runs through, in order, traced.

docs/architecture.md shows them, so that its drawings are the roads that the program takes and not those it once took.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import anyio
import httpx
from click.testing import CliRunner
from mcp import Client

ROOT = Path(__file__).parent.parent
LOADED = ("cli.main", "cli.running.serve", "cli.shared.window", "mcp_server.transport.stdio", "orchestrator.graph")
"""What the roads import."""
LAYERS = {"cli": 0, "mcp_server": 0, "backoffice": 0, "orchestrator": 1, "sources": 2, "registry": 2}
NOT_DRAWN = (
    "registry/domain.py",
    "registry/errors.py",
    "registry/log.py",
    "registry/settings.py",
    "registry/tracing.py",
    "cli/main.py",
)
"""Entered on every road, deciding nothing."""

CHANNEL = "cursor_session_20250929_1430"
TURN = [
    {"role": "user", "text": "How do I make the fibonacci function faster?", "timestamp": "2025-09-29T14:30:15.123Z"},
    {
        "role": "assistant",
        "text": "Memoize it: with functools.cache it is O(n).",
        "timestamp": "2025-09-29T14:30:18.456Z",
    },
]

Call = Callable[[str, dict[str, Any]], Awaitable[Any]]
Ask = Callable[[str], Awaitable[httpx.Response]]
Seen = dict[str, None]


class Tracer:
    """Notes the files of ours whose functions run, in every thread, by first entry. Set up before any thread starts.

    Of the thread it belongs to only the road is traced: what comes before is the longer part.
    """

    def __init__(self) -> None:
        self._names: dict[CodeType, str | None] = {}
        self._seen: Seen = {}
        threading.settrace(self._note)

    def stop(self) -> None:
        """Trace no more."""
        threading.settrace(None)

    def _note(self, frame: FrameType, _event: str, _: object) -> None:
        """Called at the start of every function; asks to be told of nothing in it."""
        code = frame.f_code
        if code not in self._names:
            self._names[code] = _name_of(code)
        if name := self._names[code]:
            self._seen.setdefault(name)

    @contextmanager
    def on_the_road(self) -> Iterator[Seen]:
        """What is entered from here to there; what came before was only to have everything loaded."""
        self._seen.clear()
        sys.settrace(self._note)
        yield self._seen
        sys.settrace(None)
        self._seen = {}


def _name_of(code: CodeType) -> str | None:
    """The file of a function of ours; None for any other, and for what runs when a module is imported."""
    file = Path(code.co_filename)
    if not code.co_flags & 1 or not file.is_relative_to(ROOT):
        return None
    name = file.relative_to(ROOT)
    return name.as_posix() if name.parts[0] in LAYERS else None


@asynccontextmanager
async def client_over(url: str) -> AsyncIterator[Client]:
    """A real client, in process, over an empty registry."""
    from mcp_server.server import create_server
    from orchestrator.service import Orchestrator
    from registry.registry import Registry

    registry = Registry(url)
    try:
        async with Client(create_server(Orchestrator(registry).run)) as client:
            yield client
    finally:
        registry.close()


async def over_mcp(road: Callable[[Tracer, Call], Awaitable[Seen]], tracer: Tracer) -> Seen:
    """A road that begins with a tool call."""
    async with client_over(f"sqlite:///{os.environ['CTXR_HOME']}/registry.db") as client:
        return await road(tracer, client.call_tool)


async def conversation_log(tracer: Tracer, call: Call) -> Seen:
    """The second turn of a chat: the whole of it is sent again."""
    more = [
        {"role": "user", "text": "And without recursion?"},
        {"role": "assistant", "text": "A loop over two numbers."},
    ]
    await call("conversation_log", {"channel": CHANNEL, "messages": TURN})
    with tracer.on_the_road() as seen:
        await call("conversation_log", {"channel": CHANNEL, "messages": [*TURN, *more]})
    return seen


async def extract(tracer: Tracer, call: Call) -> Seen:
    """An earlier chat, asked for by what it was about."""
    return await _asked(tracer, call, "extract", {"query": {"text": "fibonacci"}})


async def search_sessions(tracer: Tracer, call: Call) -> Seen:
    """The sessions in which something was said."""
    return await _asked(tracer, call, "search_sessions", {"query": "fibonacci"})


async def _asked(tracer: Tracer, call: Call, tool: str, arguments: dict[str, Any]) -> Seen:
    await call("conversation_log", {"channel": CHANNEL, "messages": TURN})
    await call(tool, arguments)
    with tracer.on_the_road() as seen:
        await call(tool, arguments)
    return seen


async def page(tracer: Tracer, ask: Ask) -> Seen:
    """The list of conversations in a browser."""
    return await _shown(tracer, ask, "/")


async def page_with_words(tracer: Tracer, ask: Ask) -> Seen:
    """The same, searched."""
    return await _shown(tracer, ask, "/?q=fibonacci")


async def _shown(tracer: Tracer, ask: Ask, address: str) -> Seen:
    assert (await ask(address)).is_success
    with tracer.on_the_road() as seen:
        await ask(address)
    return seen


async def over_http(road: Callable[[Tracer, Ask], Awaitable[Seen]], tracer: Tracer) -> Seen:
    """A road that begins with a page."""
    from backoffice.app import create_app_over
    from orchestrator.service import Orchestrator
    from registry.registry import Registry

    registry = Registry(f"sqlite:///{os.environ['CTXR_HOME']}/registry.db")
    try:
        orchestrator = Orchestrator(registry)
        await orchestrator.run({"operation": "conversation_log", "channel": CHANNEL, "messages": TURN})
        transport = httpx.ASGITransport(create_app_over(orchestrator))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as browser:
            return await road(tracer, lambda address: browser.get(address, headers={"Accept": "text/html"}))
    finally:
        registry.close()


def sync(tracer: Tracer) -> Seen:
    """`ctxr sync` with one file that is new since the last time."""
    _write_transcript("first")
    _ctxr("sync", "--source", "claude-code")
    _write_transcript("second")
    with tracer.on_the_road() as seen:
        _ctxr("sync", "--source", "claude-code")
    return seen


def hook(tracer: Tracer) -> Seen:
    """A client's hook notes a turn; the next command takes it in."""
    _tell("first")
    _ctxr("sync", "--source", "claude-code")
    with tracer.on_the_road() as seen:
        _tell("second")
        _ctxr("sync", "--source", "claude-code")
    return seen


def _write_transcript(session: str) -> None:
    folder = Path.home() / ".claude" / "projects" / "-home-me-shop"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        {
            "type": message["role"],
            "uuid": f"{session}-{number}",
            "parentUuid": f"{session}-{number - 1}" if number else None,
            "sessionId": session,
            "cwd": "/home/me/shop",
            "timestamp": message["timestamp"],
            "message": {"role": message["role"], "content": f"{message['text']} ({session})"},
        }
        for number, message in enumerate(TURN)
    ]
    (folder / f"{session}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def _tell(session: str) -> None:
    asked = {"session_id": session, "prompt": TURN[0]["text"], "cwd": "/home/me/shop"}
    answered = {"session_id": session, "last_assistant_message": TURN[1]["text"], "cwd": "/home/me/shop"}
    for event, payload in (("UserPromptSubmit", asked), ("Stop", answered)):
        reading, writing = os.pipe()
        os.write(writing, json.dumps(payload).encode())
        os.close(writing)
        os.dup2(reading, 0)
        os.close(reading)
        _ctxr("hook", "claude-code", event)


def _ctxr(*words: str) -> None:
    from cli.main import cli

    done = CliRunner().invoke(cli, list(words), prog_name="ctxr")
    if done.exit_code:
        raise RuntimeError(done.output)


OVER_MCP = {"conversation_log": conversation_log, "extract": extract, "search_sessions": search_sessions}
IN_THE_TERMINAL = {"sync": sync, "hook": hook}
ROADS = (*OVER_MCP, *IN_THE_TERMINAL)
"""Those that are drawn."""
OVER_HTTP = {"a page": page, "a page with words": page_with_words}


@cache
def walked() -> dict[str, list[str]]:
    """The files of each road; they are walked in a process of their own, which is traced from its start."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.roads"]
    done = subprocess.run(command, check=True, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True).stdout
    files: dict[str, list[str]] = json.loads(done)
    return files


def drawings() -> dict[str, str]:
    """The drawing of each road that is drawn."""
    return {road: drawing(walked()[road]) for road in ROADS}


COMMON = (
    "mcp_server/",
    "backoffice/",
    "cli/",
    "orchestrator/recording/",
    "orchestrator/semantic/models.py",
    "orchestrator/semantic/local.py",
    "orchestrator/semantic/meaning.py",
    "orchestrator/service.py",
    "orchestrator/graph.py",
    "orchestrator/requests/",
    "orchestrator/opening.py",
    "registry/registry.py",
)
"""The door, what every operation goes through, and what is put together before any runs: of a model, which one."""
PURE_OR_SQL = ("registry/text/", "registry/storage/", "sources/")
"""These know of no operation: text, tables, a client's format."""


def figures() -> dict[str, tuple[int, int, int, int]]:
    """Of each road the files entered, and of these: common to all, pure or SQL, the operation's own."""
    return {road: _figures([file for file in files if file not in NOT_DRAWN]) for road, files in walked().items()}


def _figures(files: list[str]) -> tuple[int, int, int, int]:
    common = sum(file.startswith(COMMON) for file in files)
    beneath = sum(file.startswith(PURE_OR_SQL) for file in files)
    return len(files), common, beneath, len(files) - common - beneath


def walk(road: str, tracer: Tracer, empty: Path) -> Seen:
    """The files of a road, in a home of its own, over a copy of an empty registry."""
    home = empty.with_name(road.replace(" ", "-"))
    (home / "ctxr").mkdir(parents=True)
    shutil.copy(empty, home / "ctxr" / "registry.db")
    os.environ.update(HOME=str(home), CTXR_HOME=str(home / "ctxr"))
    if road in OVER_HTTP:
        return anyio.run(over_http, OVER_HTTP[road], tracer)
    return anyio.run(over_mcp, OVER_MCP[road], tracer) if road in OVER_MCP else IN_THE_TERMINAL[road](tracer)


def drawing(files: Iterable[str]) -> str:
    """A line for each file: the further in, the deeper its layer; what it is for in its own words."""
    shown = [file for file in files if file not in NOT_DRAWN]
    lines = [(f"{'  ' * LAYERS[file.partition('/')[0]]}{file}", _purpose(ROOT / file)) for file in shown]
    width = max(len(name) for name, _ in lines) + 2
    return "".join(f"{name.ljust(width)}{purpose}\n" for name, purpose in lines)


def _purpose(file: Path) -> str:
    """The first sentence of a module's docstring."""
    said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    first = " ".join(said.partition("\n\n")[0].split())
    return f"{first.partition('. ')[0].rstrip('.')}"


def walk_all() -> dict[str, list[str]]:
    """The files of each road. What they load is loaded before, and a registry made: traced that takes twice as long."""
    from registry.storage.migrate import migrate

    for module in LOADED:
        import_module(module)
    with tempfile.TemporaryDirectory() as homes:
        empty = Path(homes) / "empty.db"
        migrate(f"sqlite:///{empty}")
        tracer = Tracer()
        try:
            return {road: list(walk(road, tracer, empty)) for road in (*ROADS, *OVER_HTTP)}
        finally:
            tracer.stop()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(walk_all()))
