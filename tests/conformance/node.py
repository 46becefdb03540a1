"""Node, the official TypeScript clients and the conformance suite, installed once outside the source tree."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).with_name("package.json")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ctxr-tests"
OLDEST_NODE = 22
INSTALL_SECONDS = 300
NPM_OPTIONS = (
    "--no-audit",
    "--no-fund",
    "--no-package-lock",
    "--no-update-notifier",
    "--fetch-retries=1",  # fail within seconds on a machine without a network
    "--fetch-retry-maxtimeout=2000",
    "--fetch-retry-mintimeout=1000",
)
OUR_MISTAKES = ("E404", "ETARGET", "EJSONPARSE")


class Unavailable(Exception):
    """Node or the packages cannot be installed here; the text says why."""


@dataclass(frozen=True)
class Node:
    """A node binary and the folder in which the pinned packages are installed."""

    binary: Path
    folder: Path

    def run(
        self, *args: str, given: str = "", env: dict[str, str] | None = None, seconds: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run node in the folder, where an evaluated script finds the packages."""
        return subprocess.run(
            [self.binary, *args],
            input=given,
            env=env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=seconds,
            check=False,
        )

    @property
    def suite(self) -> str:
        """Return the path of the conformance suite's program."""
        return str(self.folder / "node_modules/@modelcontextprotocol/conformance/dist/index.js")


def install() -> Node:
    """Return node with the pinned packages, installed on first use.

    Safe to call from several test processes at once. Raises `Unavailable` when node or npm is
    missing or the registry cannot be reached, `RuntimeError` when the pins themselves are wrong.
    """
    npm = shutil.which("npm")
    system_node = shutil.which("node")
    if npm is None or system_node is None:
        raise Unavailable("node and npm are not installed")
    own_node = major_version(Path(system_node)) < OLDEST_NODE
    folder = CACHE / f"node-{fingerprint(own_node)}"
    with one_at_a_time(folder.with_suffix(".lock")):
        if not (folder / "installed").exists():
            fill(folder, [npm, "install", *NPM_OPTIONS, *([] if own_node else ["--omit=optional"])])
    binary = folder / "node_modules/.bin/node" if own_node else Path(system_node)
    if major_version(binary) < OLDEST_NODE:
        raise Unavailable(f"node {OLDEST_NODE} is needed, and npm did not bring it")
    return Node(binary, folder)


def fingerprint(own_node: bool) -> str:
    """Return a name for the installed packages that changes with a pin."""
    return hashlib.sha256(PACKAGE.read_bytes() + bytes([own_node])).hexdigest()[:12]


def fill(folder: Path, command: list[str]) -> None:
    """Install the packages into an empty folder and mark it complete."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(PACKAGE, folder)
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired as exc:
        raise Unavailable(f"npm install took more than {INSTALL_SECONDS} s") from exc
    if done.returncode:
        failure = RuntimeError if any(code in done.stderr for code in OUR_MISTAKES) else Unavailable
        raise failure(f"npm install failed: {done.stderr.strip()[-400:]}")
    (folder / "installed").touch()


def major_version(binary: Path) -> int:
    """Return a node binary's major version (22 for v22.23.3), 0 if it does not start."""
    try:
        answer = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return 0
    return int(answer.stdout.lstrip("v").partition(".")[0] or 0)


@contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """Let one process at a time into the block."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
