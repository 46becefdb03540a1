"""Fixtures: the ctxr command in this process, and as a separate process."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli.main import cli
from tests.conformance.servers import free_port

CTXR = str(Path(sys.executable).with_name("ctxr"))

Ctxr = Callable[..., Result]

FIBONACCI: dict[str, Any] = {
    "channel": "cursor_session_20250929_1430",
    "messages": [
        {"role": "user", "text": "피보나치 함수의 시간복잡도를 개선하려면?", "timestamp": "2025-09-29T14:30:15.123Z"},
        {"role": "assistant", "text": "메모이제이션을 쓰세요.", "timestamp": "2025-09-29T14:30:18.456Z"},
    ],
    "meta": {"project": "/home/me/agent"},
}


@pytest.fixture
def ctxr(empty_home: Path, sqlite_template: Path) -> Ctxr:
    """Return a function that runs a command over an empty registry in the test's own home."""
    folder = empty_home / "ctxr"
    folder.mkdir()
    shutil.copy(sqlite_template, folder / "registry.db")
    return bare_ctxr


@pytest.fixture(scope="module")
def cached_files() -> dict[str, bytes]:
    """Return the registry files that a module's first test made, by a name; the other tests copy them."""
    return {}


def bare_ctxr(*words: str, given: Any = None, color: bool = False) -> Result:
    """Run a command in this process; `given` is sent as JSON to its standard input."""
    text = given if isinstance(given, str) else json.dumps(given)
    return CliRunner().invoke(cli, words, input=text, prog_name="ctxr", color=color)


def program(*words: str, **options: Any) -> "subprocess.Popen[str]":
    """Start ctxr as a separate process with the test's environment, updated by `env`."""
    env = {**os.environ, **options.pop("env", {})}
    return subprocess.Popen(
        [CTXR, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", **options
    )


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def taken_port() -> Iterator[int]:
    """Return a port on which another program listens and closes every connection."""

    def hang_up() -> None:
        with suppress(OSError):  # the test is over
            while True:
                server.accept()[0].close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        listening = Thread(target=hang_up)
        listening.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        listening.join()


def heaps_of(pid: int) -> int:
    """Count glibc's heaps in a process: the first one, and partly used areas of 64 MB."""
    areas = [line.split()[:2] for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    spans = [[int(address, 16) for address in span.split("-")] for span, _ in areas]
    unused = (at for at, (_, rights) in enumerate(areas) if at and rights == "---p")
    return 1 + sum(spans[at][1] - spans[at - 1][0] == 64 << 20 for at in unused)
