"""pgbouncer in transaction mode: each transaction of a client can get another PostgreSQL session."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONNECTIONS = 10
"""Open connections to PostgreSQL."""
PORT = 6432
SETTINGS = """[databases]
* = host={folder} user=postgres
[pgbouncer]
listen_port = {port}
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
"""
START_LIMIT_S = 30.0


@contextmanager
def running_pooler(url: str) -> Iterator[str]:
    """Yield the database's address through a pooler, whose files are in the server's folder."""
    folder = Path(url.partition("?host=")[2].partition("&")[0])
    settings = folder / "pgbouncer.ini"
    settings.write_text(SETTINGS.format(folder=folder, port=PORT, connections=CONNECTIONS), encoding="utf-8")
    user = "nobody" if os.geteuid() == 0 else None  # it refuses root, as PostgreSQL does
    pooler = subprocess.Popen(["pgbouncer", "-q", settings], user=user, stderr=subprocess.DEVNULL)
    try:
        _wait_for(folder / f".s.PGSQL.{PORT}", pooler)
        yield f"{url}&port={PORT}"
    finally:
        pooler.terminate()
        pooler.wait()


def _wait_for(socket: Path, pooler: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while not socket.exists():
        if pooler.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("pgbouncer does not start.")
        time.sleep(0.01)
