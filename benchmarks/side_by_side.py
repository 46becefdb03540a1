"""The release before and this one at the same PostgreSQL, over a migration: python -m benchmarks.side_by_side

A server of the program as it was before the newest migration, out of git, on its own tables. Clients log there turn by
turn; meanwhile a server of this program starts, which changes the tables, and clients log there too. Then the old one
is ended, as in a rolling update, and its clients go on at the new one. `errors`, `lost` and `doubled` should be 0.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcp import Client

from benchmarks.costs.load import OUTCOME_HEADS, Outcome, outcome, two_conversations, write_on
from benchmarks.setup import servers
from benchmarks.setup.registries import postgresql
from benchmarks.setup.writers import Writer, audit
from registry.storage.migrations import HEAD

VERSIONS = "registry/storage/migrations/versions"
CLIENTS = 4
SECONDS = 6.0
"""So long with the old one alone, with both, and with the new one alone."""
START = "import os, sys; os.chdir({0!r}); sys.path[0] = {0!r}; from cli.main import cli; cli(prog_name='ctxr')"


@contextmanager
def program_of(revision: str) -> Iterator[Path]:
    """The program as it was at a revision."""
    folder = Path(tempfile.mkdtemp(prefix="ctxr-before-"))
    try:
        packed = subprocess.run(["git", "archive", revision], cwd=servers.ROOT, capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def before_newest_migration() -> str:
    """The last revision whose tables were those of the migration before."""
    made = ["git", "log", "-1", "--format=%H", "--diff-filter=A", "--", f"{VERSIONS}/{HEAD}_*"]
    done = subprocess.run(made, cwd=servers.ROOT, capture_output=True, text=True, check=True)
    return f"{done.stdout.strip()}^"


class Versions:
    """Servers of both over one database, and the clients that log there."""

    def __init__(self, folder: Path, url: str, old: Path) -> None:
        self._folder, self._url, self._old = folder, url, old
        self.processes: list[subprocess.Popen[bytes]] = []
        self.errors: list[str] = []
        self.writers: list[list[Writer]] = []

    async def start(self, name: str) -> str:
        """The address of a server of the `old` or the `new` program."""
        home = self._folder / name
        home.mkdir()
        env = servers.environment(home) | {"CTXR_DATABASE_URL": self._url, "CTXR_EMBED_MODEL": "off", "HOME": str(home)}
        command = (sys.executable, "-c", START.format(str(self._old)), "serve", "--port")
        port = servers.free_port()
        given = command if name == "old" else servers.PRODUCT_HTTP
        self.processes.append(await asyncio.to_thread(servers.start_http, given, home, port, env))
        return f"http://127.0.0.1:{port}/mcp"

    def clients(self, group: asyncio.TaskGroup, url: str, name: str, stop: asyncio.Event) -> None:
        """Have some more log at a server until they shall stop."""
        told = [two_conversations(f"{name}{number}") for number in range(CLIENTS)]
        self.writers += told
        for some in told:
            group.create_task(write_on(url, some, stop, self.errors))


async def updated(versions: Versions, seconds: float) -> Outcome:
    """One after the other; what became of what was said."""
    began = time.monotonic()
    old_stops, stop = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        versions.clients(group, await versions.start("old"), "old", old_stops)
        await asyncio.sleep(seconds)
        new = await versions.start("new")
        versions.clients(group, new, "new", stop)
        await asyncio.sleep(seconds)
        versions.processes[0].send_signal(signal.SIGTERM)
        await asyncio.to_thread(versions.processes[0].wait)
        old_stops.set()
        for some in versions.writers[:CLIENTS]:  # what was not acknowledged is said again, where it can be now
            group.create_task(write_on(new, some, stop, versions.errors))
        await asyncio.sleep(seconds)
        stop.set()
    took = time.monotonic() - began
    async with Client(new, read_timeout_seconds=60) as reader:
        found = await audit(list(itertools.chain(*versions.writers)), reader)
    return outcome(f"migration {HEAD}", versions.writers, took, versions.errors, found)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.side_by_side", description=__doc__)
    parser.add_argument("--before", default="", help="a revision of git; by default before the newest migration")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_args()
    revision = options.before or before_newest_migration()
    with postgresql() as url, program_of(revision) as old, tempfile.TemporaryDirectory() as folder:
        versions = Versions(Path(folder), url, old)
        try:
            done = asyncio.run(updated(versions, options.seconds))
        finally:
            for process in versions.processes:
                servers.end(process)
    for error in done.errors[:5]:
        print("  ", error)
    print(*OUTCOME_HEADS, sep=" | ")
    print(*done.row(), sep=" | ")


if __name__ == "__main__":
    main()
