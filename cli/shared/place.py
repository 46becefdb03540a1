"""Where the local process of this user is: its lock, its socket or port, and how it is asked, started and ended.

Imported by every chat window and every reading command, so it imports next to nothing: `_socket` is what `socket`
wraps, without the 15 ms of its enums.
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
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

FOLDER = "local"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGES = ("registry", "sources", "orchestrator", "mcp_server", "backoffice", "cli")

IDENTITY = frozenset(
    {
        *(
            "HOME",
            "USERPROFILE",
            "APPDATA",
            "LOCALAPPDATA",
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "XDG_STATE_HOME",
            "TZ",
            "PYTHONPATH",
        ),
        *("CLAUDE_CONFIG_DIR", "CLINE_DATA_DIR", "CODEX_HOME", "COPILOT_HOME", "CURSOR_CONFIG_DIR"),
        *("AIDER_CHAT_HISTORY_FILE", "CONTINUE_GLOBAL_DIR", "GEMINI_CLI_HOME", "GOOSE_PATH_ROOT", "QWEN_HOME"),
    }
)
"""What decides, beside `CTXR_*`, which registry and which stores are meant: who is told otherwise shares nothing."""
NOT_IDENTITY = frozenset({"CTXR_HOST", "CTXR_PORT"})
"""Only `ctxr serve` reads these, and it is found by the others all the same."""

LONGEST_PATH = 100
"""A Unix socket's path may be 104 bytes long or 108; a longer one is named from within its folder."""
PATIENCE_S = 10.0
"""Who has not said a word for so long hangs."""
START_S = 30.0
POLL_S = 0.005
_LOCKED_BYTE = 1 << 20
"""Windows locks bytes, and nobody may read those: one far behind the process's id."""


class Hung(Exception):
    """There is a process, and it does not answer."""


class Place:
    """The local process of one user, one installation and one set of settings."""

    def __init__(self, home: str, environment: Mapping[str, str]) -> None:
        self.home = os.path.abspath(home)
        self.folder = os.path.join(self.home, FOLDER)
        self.is_loopback = sys.platform == "win32" or environment.get("CTXR_SHARED") == "loopback"
        self.name = f"{crc32(_identity(self.home, environment).encode('utf-8', 'surrogateescape')):08x}"

    def path(self, kind: str) -> str:
        """A file of this process: `sock`, `port`, `lock` or `log`."""
        return os.path.join(self.folder, f"{self.name}.{kind}")

    def open_folder(self) -> None:
        """Make the folder, for this user only; OSError where it cannot be made or others may look into it."""
        for folder in (self.home, self.folder):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        self._check_folder()

    def _check_folder(self) -> None:
        if sys.platform != "win32":
            about = os.stat(self.folder)
            if about.st_uid != os.geteuid() or about.st_mode & 0o077:
                raise PermissionError(f"{self.folder} is not this user's alone")

    def lock(self) -> int | None:
        """The lock as an open file, for who is to be the process, until it closes it; None if somebody has it."""
        file = os.open(self.path("lock"), os.O_RDWR | os.O_CREAT, 0o600)
        while not _lock(file):
            if self._holder() is not None:
                os.close(file)
                return None
            time.sleep(POLL_S)  # somebody just looked, or has not written yet who it is
        os.ftruncate(file, 0)
        os.write(file, str(os.getpid()).encode())
        return file

    def reach(self, hello: Mapping[str, Any], within_s: float = START_S) -> socket | None:
        """A connection whose other end has heard and accepted `hello`; the process is started if need be.

        None where there can be no shared process, or it leaves this to the caller's own.
        """
        deadline = time.monotonic() + within_s
        started: subprocess.Popen[bytes] | None = None
        try:
            while time.monotonic() < deadline:
                if (found := self._greeted_unless_hung(hello)) is not None:
                    return found or None
                ended = started.poll() if started else 0
                if ended:
                    return None  # it cannot start; the caller's own process will say why
                if ended == 0 and self._holder() is None:
                    started = self._start()
                time.sleep(POLL_S)
        except OSError:
            pass  # a sandbox, a read-only home, a file system without sockets
        return None

    def reach_at_once(self, hello: Mapping[str, Any], patience_s: float) -> socket | None:
        """A connection to the process that is there, which waits no longer than this; none is started or ended."""
        try:
            return self._greeted(hello, patience_s) or None
        except (Hung, OSError):
            return None

    def _greeted_unless_hung(self, hello: Mapping[str, Any]) -> socket | Literal[False] | None:
        try:
            return self._greeted(hello)
        except Hung:
            self.end_hung()
            return None

    def answers(self) -> bool:
        """Return whether there is a process that is not hung."""
        try:
            found = self._greeted({"want": "ping"})
        except Hung:
            return False
        except OSError:
            return True  # it cannot be told from here
        if found:
            found.close()
        return True

    def end(self) -> None:
        """Ask the process that is there to leave the place to another."""
        try:
            self._greeted({"want": "end"})
        except Hung:
            self.end_hung()

    def end_hung(self) -> None:
        """End a process that does not answer. Whoever holds the lock lives, and has written who it is."""
        if (holder := self._holder()) is not None:
            try:
                os.kill(holder, 9 if sys.platform != "win32" else 15)
            except OSError:
                return  # it is gone already, or not ours to end
            deadline = time.monotonic() + PATIENCE_S
            while self._holder() == holder and time.monotonic() < deadline:
                time.sleep(POLL_S)

    def connect(self) -> socket | None:
        """A connection to whoever listens, None if nobody does."""
        try:
            self._check_folder()
            return self._to_port() if self.is_loopback else self._to_socket()
        except (FileNotFoundError, ConnectionRefusedError, ValueError):
            return None

    def secret(self) -> tuple[int, str]:
        """The port, and what shows that one may read this user's files; ValueError, FileNotFoundError."""
        with open(self.path("port"), encoding="ascii") as file:
            port, secret = file.read().split()
        return int(port), secret

    def _to_socket(self) -> socket:
        from _socket import AF_UNIX

        connection = socket(AF_UNIX, SOCK_STREAM)
        connection.settimeout(PATIENCE_S)
        return _or_closed(connection, lambda: self.named("sock", connection.connect))

    def _to_port(self) -> socket:
        port, secret = self.secret()
        connection = socket(AF_INET, SOCK_STREAM)
        connection.settimeout(PATIENCE_S)

        def open_up() -> None:
            connection.connect(("127.0.0.1", port))
            connection.sendall(secret.encode() + b"\n")

        return _or_closed(connection, open_up)

    def named(self, kind: str, use: Callable[[str], None]) -> None:
        """Use the name of a file that a socket's address can hold."""
        path = self.path(kind)
        if len(os.fsencode(path)) <= LONGEST_PATH:
            use(path)
            return
        here = os.open(".", os.O_RDONLY)
        try:
            os.chdir(self.folder)
            use(os.path.basename(path))
        finally:
            os.fchdir(here)
            os.close(here)

    def _greeted(self, hello: Mapping[str, Any], patience_s: float | None = None) -> socket | Literal[False] | None:
        """A connection that is accepted; None if there is none yet, False if the caller had better work alone."""
        connection = self.connect()
        if connection is None:
            return None
        if patience_s is not None:
            connection.settimeout(patience_s)
        try:
            connection.sendall(dumps(hello).encode() + b"\n")
            if (said := _line(connection)) == b"wait\n":
                connection.settimeout(START_S)
                said = _line(connection)
                connection.settimeout(PATIENCE_S)
        except TimeoutError as exc:
            connection.close()
            raise Hung from exc
        except OSError:
            connection.close()
            return None  # it is just ending
        if said == b"yes\n":
            return connection
        connection.close()
        return False if said == b"alone\n" else None

    def _start(self) -> subprocess.Popen[bytes]:
        import subprocess

        self.open_folder()
        alone: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            alone = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
        return subprocess.Popen(
            [sys.executable, "-m", "cli.shared.process"],
            cwd=ROOT,  # a folder that is the user's would be searched for modules, and could not be removed
            env={**os.environ, "CTXR_HOME": self.home},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **alone,
        )

    def _holder(self) -> int | None:
        """The id of the process that holds the lock."""
        try:
            file = os.open(self.path("lock"), os.O_RDWR)
        except FileNotFoundError:
            return None
        try:
            return None if _lock(file, is_look=True) else int(os.read(file, 20) or b"0") or None
        finally:
            os.close(file)


def this_place() -> Place | None:
    """The place of this environment; None where the user wants no shared process."""
    if os.environ.get("CTXR_SHARED", "").lower() in ("off", "0", "false", "no"):
        return None
    return Place(registry_home(), os.environ)


def current_folder() -> str:
    """The folder that this process works in; empty if it has been removed."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def program_stamp(home: str) -> int:
    """Changes when the program, what it is built on, or config.toml changes."""
    parts = [_content(os.path.join(home, "config.toml"))]
    for package in PACKAGES:
        for folder, _, names in os.walk(os.path.join(ROOT, package)):
            for name in names:
                if name.endswith(".py"):
                    about = os.stat(os.path.join(folder, name))
                    parts.append(f"{folder}/{name} {about.st_size} {about.st_mtime_ns}".encode())
    for folder in sys.path:
        if folder.endswith("-packages") and os.path.isdir(folder):
            parts.extend(name.encode() for name in os.listdir(folder) if name.endswith(".dist-info"))
    return crc32(b"\n".join(sorted(parts)))


def _identity(home: str, environment: Mapping[str, str]) -> str:
    names = sorted(
        name for name in environment if (name in IDENTITY or name.startswith("CTXR_")) and name not in NOT_IDENTITY
    )
    given = [f"{name}={environment[name]}" for name in names if name != "CTXR_HOME"]
    return "\0".join([*_machine(), sys.executable, ROOT, home, *given])


def _machine() -> list[str]:
    if sys.platform == "win32":
        return []
    try:
        container = os.readlink("/proc/self/ns/pid")
    except OSError:
        container = ""
    return [os.uname().nodename, container]


def _content(file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError:
        return b""


def _line(connection: socket) -> bytes:
    """The short line that comes next, and not a byte more."""
    line = b""
    while not line.endswith(b"\n") and (letter := connection.recv(1)):
        line += letter
    return line


def _or_closed(connection: socket, use: Callable[[], None]) -> socket:
    try:
        use()
    except BaseException:
        connection.close()
        raise
    return connection


def _lock(file: int, *, is_look: bool = False) -> bool:
    """Lock a file until it is closed or the process ends; False if somebody has locked it.

    `is_look`: only to see whether somebody has, of which several at a time do not see each other.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(file, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
            os.lseek(file, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(file, (fcntl.LOCK_SH if is_look else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
