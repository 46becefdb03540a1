"""Find programs of this machine, and check whether processes run and ports answer."""

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


class MissingPrograms(Exception):
    """Programs are missing; the message is the command that installs them."""


CHILDREN: dict[int, subprocess.Popen[bytes]] = {}
"""Processes started by this one, by id: they must be polled, or they stay as zombies."""


def programs_of_postgres() -> Path:
    """Return the folder of the newest PostgreSQL server. MissingPrograms if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found:
        raise MissingPrograms("apt-get install postgresql")
    return found[-1].parent


def check_programs() -> None:
    """Raise MissingPrograms if a program is not installed."""
    if missing := [name for name in PROGRAMS if not shutil.which(name)]:
        packages = ["etcd-server" if name == "etcd" else name for name in missing]
        raise MissingPrograms(f"apt-get install {' '.join(packages)}")


def parents() -> list[tuple[int, int]]:
    """Return the ids of each process of this machine and of its parent."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            after_name = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            found.append((int(stat.parent.name), int(after_name[1])))
    return found


def is_running(pid: int) -> bool:
    """Return True if a process runs and is no zombie."""
    if pid in CHILDREN:
        return CHILDREN[pid].poll() is None
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    return False


def answers(url: str) -> bool:
    """Return True if a URL answers without an error."""
    with suppress(OSError):
        urllib.request.urlopen(url, timeout=2).close()
        return True
    return False


def accepts(port: int) -> bool:
    """Return True if a local port accepts connections."""
    with suppress(OSError), socket.create_connection((ADDRESS, port), timeout=2):
        return True
    return False


def wait_until(is_so: Callable[[], bool], what: str, seconds: float) -> None:
    """Wait until the condition holds. TimeoutError, which names `what`, after `seconds`."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        time.sleep(0.2)
