"""Inject faults under load: python -m benchmarks.faults [--only NAME …] [--kills N] [--minutes N]

Each fault hits a real `ctxr serve` while clients log turn by turn. Then all channels are read back and compared with
what was acknowledged: `lost` and `doubled` should be 0. The fault `bytes` damages a registry's file without a server.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from mcp import Client

from benchmarks.costs.load import (
    HTTP_CLIENTS,
    OUTCOME_HEADS,
    Outcome,
    log_until_stopped,
    outcome,
    own_and_shared_writer,
)
from benchmarks.faults.damaged_file import change_bytes
from benchmarks.faults.database_outage import outage
from benchmarks.faults.loads import crowd, mixed, steady
from benchmarks.faults.machine_faults import DISK, SETTLED_S, full_disk, kills, wrong_clock
from benchmarks.faults.service import Service, service
from benchmarks.setup.writers import Writer, audit

Fault = Callable[[Service], Awaitable[None]]
BYTES = "bytes"
CHATS = {"mixed": 100}
"""Pairs of conversations per client, 1 by default. In a long run more of them keep each as short as a real one."""


def faults(options: argparse.Namespace) -> dict[str, tuple[Fault, Sequence[str]]]:
    """Return each fault by name, with the databases it is tested on."""
    both = ("sqlite", "postgresql")
    return {
        "kills": (lambda running: kills(running, options.kills), both),
        "full-disk": (full_disk, ("sqlite",)),
        "clock": (wrong_clock, both),
        "crowd": (crowd, both),
        "outage": (outage, ("postgresql",)),
        "pooler": (steady, ("pgbouncer",)),
        "mixed": (lambda running: mixed(running, options.minutes), ("sqlite",)),
    }


async def under_load(what: str, fault: Fault, database: str, disk: str = "") -> Outcome:
    """Inject the fault while clients log, and read everything back. `disk` is the size of the registry's own disk."""
    writers = [
        [writer for chat in range(CHATS.get(what, 1)) for writer in own_and_shared_writer(f"client{number}", chat)]
        for number in range(HTTP_CLIENTS)
    ]
    every, errors = list(itertools.chain(*writers)), list[str]()
    with service(database, disk) as running:
        running.turns = lambda: sum(len(writer.acknowledged) // 2 for writer in every)
        started = time.monotonic()
        async with _writing(running.url, writers, errors):
            await fault(running)
            await asyncio.sleep(SETTLED_S)
        took = time.monotonic() - started
        async with Client(running.url) as reader:
            found = await audit(every, reader)
    return outcome(f"{what}, {database}", writers, took, errors, found)


@asynccontextmanager
async def _writing(url: str, writers: Sequence[Sequence[Writer]], errors: list[str]) -> AsyncIterator[None]:
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for client_writers in writers:
            group.create_task(log_until_stopped(url, client_writers, stop, errors))
        yield
        stop.set()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="one fault; may be repeated")
    parser.add_argument("--on", action="append", metavar="DATABASE", help="sqlite, postgresql or pgbouncer")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=30.0, help="duration of the mixed load")
    parser.add_argument("--copies", type=int, default=20, help="damaged copies of a registry's file")
    options = parser.parse_args()
    print(*OUTCOME_HEADS, sep=" | ")
    for name, (fault, databases) in faults(options).items():
        for database in databases:
            if name in (options.only or [name]) and database in (options.on or [database]):
                disk = DISK if fault is full_disk else ""
                print(*asyncio.run(under_load(name, fault, database, disk)).row(), sep=" | ", flush=True)
    if BYTES in (options.only or [BYTES]):
        print("", change_bytes(options.copies), sep="\n")


if __name__ == "__main__":
    main()
