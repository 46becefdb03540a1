"""`ctxr` as a process of its own, without loading it anew for each test: it is loaded once, and each start is a fork.

A start takes 2 s of CPU, nearly all of it imports. What is forked is a child of the test process like any other: it has
its own arguments, environment, folder, pipes and id, and is waited for and killed in the usual way. What only a real
start shows is held by the tests of packaging, of what is imported, and of the official clients, which start one.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

CTXR = str(Path(sys.executable).with_name("ctxr"))
ROOT = Path(__file__).parent.parent
PR_SET_CHILD_SUBREAPER = 36
LOADED = ("cli.main", "cli.running.serve", "cli.shared.window", "mcp_server.transport.stdio", "orchestrator.graph")
"""What the commands would import."""
LONGEST = 200_000
"""A request: arguments and environment."""
SERVING = {"serve", "up"}
"""Of the other commands a real start is cheaper where the local process does the work, since they load nothing then."""
FOR_PYTHON = ("PYTHON", "LC_", "LANG")
"""What an interpreter reads when it starts: who changes that wants a real start."""

_Popen: Any = subprocess.Popen


def fork_programs() -> None:
    """From now on, in this process."""
    if sys.platform == "linux":
        subprocess.Popen = Forked  # type: ignore[misc]


class Forked(_Popen):  # type: ignore[misc]
    """A process: a fork where it is `ctxr` and nothing special is asked for, else a real start."""

    def _execute_child(self, *given: Any) -> None:
        code = _Popen._execute_child.__code__
        how = dict(zip(code.co_varnames[1 : code.co_argcount], given, strict=True))
        if not _is_wanted(how):
            super()._execute_child(*given)
            return
        ends = [how[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        files = [number if end == -1 else end for number, end in enumerate(ends)]
        self.pid = _mother().bear(how, files)
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(how[name] for name in pipes))


def _is_wanted(how: Mapping[str, Any]) -> bool:
    words = how["args"] if isinstance(how["args"], list | tuple) else []
    env = os.environ if how["env"] is None else how["env"]
    special = ("preexec_fn", "pass_fds", "shell", "executable")
    return (
        list(map(str, words[:1])) == [CTXR]
        and (env.get("CTXR_SHARED") == "off" or not SERVING.isdisjoint(words[1:2]))
        and not any(how[name] for name in special)
        and _for_python(env) == _mother().for_python
    )


def _for_python(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(FOR_PYTHON)}


class Mother:
    """The process that has the program loaded and forks, as the test process sees it."""

    def __init__(self) -> None:
        self.for_python = _for_python(os.environ)
        self._asks, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            command = [sys.executable, "-m", "tests.forked", str(theirs.fileno())]
            self._process = _Popen(command, pass_fds=[theirs.fileno()], cwd=ROOT, stdin=subprocess.DEVNULL)
        atexit.register(self._end)

    def bear(self, how: Mapping[str, Any], files: list[int]) -> int:
        """The id of a new child of this process, whose standard files these are."""
        asked = {
            "args": list(map(str, how["args"])),
            "cwd": str(how["cwd"] or Path.cwd()),
            "env": dict(os.environ if how["env"] is None else how["env"]),
            "is_alone": how["start_new_session"],
        }
        with self._lock:
            _adopt_orphans(True)
            try:
                socket.send_fds(self._asks, [json.dumps(asked).encode()], files)
                return int(self._asks.recv(100))
            finally:
                _adopt_orphans(False)

    def _end(self) -> None:
        self._asks.close()
        self._process.wait()


_mothers: dict[int, Mother] = {}
_starting = threading.Lock()


def _mother() -> Mother:
    """This process's own, started when first asked for."""
    with _starting:
        if os.getpid() not in _mothers:
            _mothers[os.getpid()] = Mother()
        return _mothers[os.getpid()]


def _adopt_orphans(does: bool) -> None:
    """Whether a process whose parent ends becomes our child: the way in which a fork of another process does."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(does), 0, 0, 0)


# -- in the process that forks


def _next_child(asking: socket.socket) -> dict[str, Any]:
    """Fork for each who asks. Returns in the children alone, with what is asked of them."""
    while True:
        said, files, _, _ = socket.recv_fds(asking, LONGEST, 3)
        if not said:
            os._exit(0)
        asked: dict[str, Any] = json.loads(said)
        reading, writing = os.pipe()
        if (between := os.fork()) == 0:
            if os.fork():
                os._exit(0)
            if asked["is_alone"]:
                os.setsid()
            os.write(writing, str(os.getpid()).encode())
            _take(files)
            return asked
        os.waitpid(between, 0)  # from here on the child is an orphan, and adopted
        asking.send(os.read(reading, 100))
        for file in (reading, writing, *files):
            os.close(file)


def _take(files: list[int]) -> None:
    """Make these the standard files, and let go of all others."""
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(3, 256)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        new = open(number, old.mode, encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def main() -> None:
    """Load the program and fork it; in each fork, run it."""
    for name in LOADED:
        import_module(name)
    from cli.entry import main as ctxr

    gc.collect()
    gc.freeze()
    asking = socket.socket(fileno=int(sys.argv[1]))
    asked = _next_child(asking)
    asking.detach()  # closed already
    sys.argv[:] = asked["args"]
    sys.path[0] = str(Path(CTXR).parent)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.exit(ctxr())  # type: ignore[func-returns-value]


if __name__ == "__main__":
    main()
