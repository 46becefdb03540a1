"""Programs of this machine: where they are, whether they run, whether they answer."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PROGRAMS = ("patroni", "etcd", "haproxy", "pgbackrest")
ADDRESS = "127.0.0.1"


class Missing(Exception):
    """What has to be installed first."""


CHILDREN: dict[int, subprocess.Popen[bytes]] = {}
"""Those of this process, whose end has to be noted."""


def programs_of_postgres() -> Path:
    """Where Debian keeps the server's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found:
        raise Missing("apt-get install postgresql")
    return found[-1].parent


def check_programs() -> None:
    """Missing names the packages that are not there."""
    if missing := [name for name in PROGRAMS if not shutil.which(name)]:
        packages = ["etcd-server" if name == "etcd" else name for name in missing]
        raise Missing(f"apt-get install {' '.join(packages)}")


def parents() -> list[tuple[int, int]]:
    """Of each process of this machine its own id and its parent's."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            after_name = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            found.append((int(stat.parent.name), int(after_name[1])))
    return found


def is_running(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    if pid in CHILDREN:
        return CHILDREN[pid].poll() is None
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    return False


def answers(url: str) -> bool:
    """Whether an address answers well."""
    with suppress(OSError):
        urllib.request.urlopen(url, timeout=2).close()
        return True
    return False


def accepts(port: int) -> bool:
    """Whether somebody listens there."""
    with suppress(OSError), socket.create_connection((ADDRESS, port), timeout=2):
        return True
    return False


def wait_until(is_so: Callable[[], bool], what: str, seconds: float) -> None:
    """Wait; TimeoutError says for what in vain."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        time.sleep(0.2)
