"""The address of this user's local process: how it is locked, reached, started and ended.

Imported by every chat window and reading command, so it imports almost nothing: `_socket` is what `socket` wraps,
without the 15 ms of its enums.
"""

from __future__ import annotations

import os
import sys
import time
from _socket import AF_INET, SOCK_STREAM, socket
from zlib import crc32

from orchestrator.sync.spool import dumps, registry_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping
    from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IDENTITY = (
    *("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"),
    *("TZ", "PYTHONPATH", "CLAUDE_CONFIG_DIR", "CLINE_DATA_DIR", "CODEX_HOME", "COPILOT_HOME", "CURSOR_CONFIG_DIR"),
    *("AIDER_CHAT_HISTORY_FILE", "CONTINUE_GLOBAL_DIR", "FACTORY_HOME_OVERRIDE", "GEMINI_CLI_HOME", "GOOSE_PATH_ROOT"),
    *("GROK_HOME", "KIMI_CODE_HOME", "OPENCLAW_STATE_DIR", "PI_CODING_AGENT_DIR", "QWEN_HOME"),
)
"""Environment variables that, like `CTXR_*`, choose the registry and stores: other values, another process."""
ANSWER_TIMEOUT_S = 10.0  # a process that does not answer within this time hangs
START_TIMEOUT_S = 30.0  # how long a process may take to start


class Hung(Exception):
    """The process does not answer."""


class Refused(Exception):
    """The process asks the caller to do the work itself."""


class ProcessHandle:
    """The local process of one user, one installation and one set of settings."""

    def __init__(self, home: str, environment: Mapping[str, str]) -> None:
        self.home = os.path.abspath(home)
        self.folder = os.path.join(self.home, "local")
        self.name = f"{crc32(_identity(self.home, environment).encode('utf-8', 'surrogateescape')):08x}"
        is_too_long = len(os.fsencode(self.path("sock"))) > 100  # bytes; a Unix socket's address holds 104 to 108
        self.is_loopback = sys.platform == "win32" or is_too_long or environment.get("CTXR_SHARED") == "loopback"
        self.address = self.path("port" if self.is_loopback else "sock")
        """The Unix socket, or the file that names a port of this machine and its secret."""

    def path(self, kind: str) -> str:
        """Return a file of this process: `sock`, `port`, `lock` or `log`."""
        return os.path.join(self.folder, f"{self.name}.{kind}")

    def open_folder(self) -> None:
        """Create the folder for this user only; OSError if that fails, or others can read it."""
        for folder in (self.home, self.folder):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        self._check_folder()

    def _check_folder(self) -> None:
        if sys.platform != "win32":
            status = os.stat(self.folder)
            if status.st_uid != os.geteuid() or status.st_mode & 0o077:
                raise PermissionError(f"{self.folder} can be read by other users")

    def lock(self) -> int | None:
        """Return an open file that holds the lock until it is closed; None if another process holds it.

        The address of a process that was killed is removed.
        """
        file = os.open(self.path("lock"), os.O_RDWR | os.O_CREAT, 0o600)
        while not _lock(file):
            if self._holder() is not None:
                os.close(file)
                return None
            time.sleep(0.005)  # another process is checking the lock, or has not written its id yet
        write_holder(file)
        if os.path.exists(self.address):
            os.unlink(self.address)
        return file

    def reach(self, hello: Mapping[str, Any], timeout_s: float = START_TIMEOUT_S) -> socket | None:
        """Return a connection that accepted `hello`; a process is started if there is none.

        None if no shared process can run, or it asks the caller to do the work itself.
        """
        deadline = time.monotonic() + timeout_s
        started: subprocess.Popen[bytes] | None = None
        try:
            while time.monotonic() < deadline:
                try:
                    if connection := self._greet(hello, ANSWER_TIMEOUT_S):
                        return connection
                except Hung:
                    self.end_hung()
                has_ended = started is None or started.poll() is not None
                if started and started.poll():
                    return None  # it cannot start; the caller's own process will report why
                if has_ended and self._holder() is None:
                    started = self._start()
                time.sleep(0.005)
        except (OSError, Refused):
            pass  # OSError: a sandbox, a read-only home, a file system without sockets
        return None

    def reach_running(self, hello: Mapping[str, Any], timeout_s: float) -> socket | None:
        """Return a connection to the running process within a timeout; start or end no process."""
        try:
            return self._greet(hello, timeout_s)
        except (Hung, Refused, OSError):
            return None

    def is_answering(self) -> bool:
        try:
            connection = self._greet({"want": "ping"}, ANSWER_TIMEOUT_S)
        except Hung:
            return False
        except (OSError, Refused):
            return True  # unknown from here
        if connection:
            connection.close()
        return True

    def end(self) -> None:
        """Ask the process to end, so that another can replace it."""
        try:
            self._greet({"want": "end"}, ANSWER_TIMEOUT_S)
        except Hung:
            self.end_hung()

    def end_hung(self) -> None:
        """Kill the process that holds the lock, and wait until it is gone."""
        if (holder := self._holder()) is not None:
            try:
                os.kill(holder, 9 if sys.platform != "win32" else 15)
            except OSError:
                return  # it has ended already, or belongs to another user
            deadline = time.monotonic() + ANSWER_TIMEOUT_S
            while self._holder() == holder and time.monotonic() < deadline:
                time.sleep(0.005)

    def connect(self) -> socket | None:
        """Return a connection to the process, None if there is none."""
        connection: socket | None = None
        try:
            self._check_folder()
            if self.is_loopback:
                with open(self.address, encoding="ascii") as file:
                    port, secret = file.read().split()
                connection = socket(AF_INET, SOCK_STREAM)
                connection.settimeout(ANSWER_TIMEOUT_S)
                connection.connect(("127.0.0.1", int(port)))
                connection.sendall(secret.encode() + b"\n")
            else:
                from _socket import AF_UNIX

                connection = socket(AF_UNIX, SOCK_STREAM)
                connection.settimeout(ANSWER_TIMEOUT_S)
                connection.connect(self.address)
        except (OSError, ValueError) as exc:
            if connection:
                connection.close()
            if isinstance(exc, FileNotFoundError | ConnectionRefusedError | ValueError):
                return None
            raise
        return connection

    def _greet(self, hello: Mapping[str, Any], timeout_s: float) -> socket | None:
        """Return an accepted connection; None if there is no process, or it is just ending."""
        connection = self.connect()
        if connection is None:
            return None
        answer = b""
        connection.settimeout(timeout_s)
        try:
            connection.sendall(dumps(hello).encode() + b"\n")
            answer = _line(connection)
            if answer == b"wait\n":
                connection.settimeout(START_TIMEOUT_S)
                answer = _line(connection)
                connection.settimeout(ANSWER_TIMEOUT_S)
        except TimeoutError as exc:
            connection.close()
            raise Hung from exc
        except OSError:
            pass  # it is just ending
        if answer == b"yes\n":
            return connection
        connection.close()
        if answer == b"alone\n":
            raise Refused
        return None

    def _start(self) -> subprocess.Popen[bytes]:
        import subprocess

        self.open_folder()
        detached: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            detached = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
        return subprocess.Popen(
            [sys.executable, "-m", "cli.shared.process"],
            cwd=ROOT,  # the user's folder would be searched for modules, and could not be removed
            env={**os.environ, "CTXR_HOME": self.home},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **detached,
        )

    def _holder(self) -> int | None:
        try:
            file = os.open(self.path("lock"), os.O_RDWR)
        except FileNotFoundError:
            return None
        try:
            return None if _lock(file, shared=True) else int(os.read(file, 20) or b"0") or None
        finally:
            os.close(file)


def current_handle() -> ProcessHandle | None:
    """Return the local process of this environment; None if CTXR_SHARED is off."""
    if os.environ.get("CTXR_SHARED", "").lower() in ("off", "0", "false", "no"):
        return None
    return ProcessHandle(registry_home(), os.environ)


def write_holder(lock: int) -> None:
    """Write this process's id into the open lock file."""
    os.ftruncate(lock, 0)
    os.lseek(lock, 0, os.SEEK_SET)
    os.write(lock, str(os.getpid()).encode())


def current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def program_stamp(home: str) -> int:
    """Return a number that changes when the program, its dependencies or config.toml change."""
    parts = []
    for package in ("registry", "sources", "orchestrator", "mcp_server", "backoffice", "cli"):
        for folder, _, names in os.walk(os.path.join(ROOT, package)):
            for name in names:
                if name.endswith(".py"):
                    status = os.stat(os.path.join(folder, name))
                    parts.append(f"{folder}/{name} {status.st_size} {status.st_mtime_ns}".encode())
    for folder in sys.path:
        if folder.endswith("-packages") and os.path.isdir(folder):
            parts.extend(name.encode() for name in os.listdir(folder) if name.endswith(".dist-info"))
    try:
        with open(os.path.join(home, "config.toml"), "rb") as file:
            parts.append(file.read())
    except OSError:
        pass  # missing or unreadable
    return crc32(b"\n".join(sorted(parts)))


def _identity(home: str, environment: Mapping[str, str]) -> str:
    """Return the settings that tell local processes apart. CTXR_HOST and CTXR_PORT only matter to `ctxr serve`."""
    ignored = ("CTXR_HOME", "CTXR_HOST", "CTXR_PORT")
    named = (name for name in environment if name in IDENTITY or name.startswith("CTXR_"))
    settings = [f"{name}={environment[name]}" for name in sorted(named) if name not in ignored]
    machine = []
    if sys.platform != "win32":
        machine = [os.uname().nodename]
        if os.path.lexists("/proc/self/ns/pid"):
            machine.append(os.readlink("/proc/self/ns/pid"))  # a container may have the same home
    return "\0".join([*machine, sys.executable, ROOT, home, *settings])


def _line(connection: socket) -> bytes:
    line = b""
    while not line.endswith(b"\n") and (letter := connection.recv(1)):
        line += letter
    return line


def _lock(file: int, *, shared: bool = False) -> bool:
    """Lock a file until it is closed; False if it is locked. Shared locks do not exclude each other."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(file, 1 << 20, os.SEEK_SET)  # a locked byte cannot be read, so lock one after the process id
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
            os.lseek(file, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
