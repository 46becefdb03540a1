"""Kill a cluster's leader under load: python -m benchmarks.failover [--kills N] [--asynchronous] [--behind S]

`deploy.ha` runs three PostgreSQL nodes under Patroni behind HAProxy; clients log turn by turn through a `ctxr serve`.
Each kill (-9) ends a whole node, as a failed machine would; it is started again once another node leads. `lost` and
`doubled` should be 0. With `--behind` the followers receive nothing for some seconds before each kill. `--restore`
instead deletes everything and restores the registry to a moment before.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from mcp import Client

from benchmarks.costs.load import HTTP_CLIENTS, OUTCOME_HEADS, log_until_stopped, outcome
from benchmarks.faults.service import Service
from benchmarks.setup import servers
from benchmarks.setup.conversations import Message
from benchmarks.setup.writers import Audit, Writer, WrongAnswer, audit, stored_texts
from deploy.ha.backups import restore, stop_restored
from deploy.ha.cluster import Cluster
from deploy.ha.processes import wait_until

BETWEEN_S = 4.0
"""Seconds of undisturbed load before each kill."""
RECOVERY_S = 180.0


class RetryingWriter(Writer):
    """A writer that repeats a turn until it is acknowledged, even after an error; records when each one was."""

    acknowledged_at: list[float]
    latest: list[Message]

    def next_turn(self) -> list[Message]:
        self.latest = super().next_turn()
        return self.latest

    async def log_turn(self, client: Client) -> None:
        try:
            await super().log_turn(client)
        except WrongAnswer:
            self.pending = self.latest
            await asyncio.sleep(0.2)
            raise
        self.acknowledged_at.append(time.monotonic())


async def wait_for(is_so: Callable[[], bool], seconds: float = RECOVERY_S) -> None:
    """Wait until the condition holds. TimeoutError after `seconds`."""
    await asyncio.to_thread(wait_until, is_so, "the cluster", seconds)


async def kill_leaders(cluster: Cluster, kills: int, behind_s: float = 0) -> tuple[list[float], tuple[str, ...]]:
    """Kill the leader under load.

    Returns the longest time without an acknowledged turn around each kill, in seconds, and the table row.
    """
    home = Path(tempfile.mkdtemp(prefix="ctxr-failover-"))
    running = Service(home, cluster.url)
    acknowledged_at: list[float] = []
    writers = [
        [_retrying_writer(f"client{n}", channel, acknowledged_at) for channel in (f"own{n}", "shared")]
        for n in range(HTTP_CLIENTS)
    ]
    errors, stop, began, gaps = list[str](), asyncio.Event(), time.monotonic(), list[float]()
    try:
        async with asyncio.TaskGroup() as group:
            for client_writers in writers:
                group.create_task(log_until_stopped(running.url, list(client_writers), stop, errors))
            for number in range(kills):
                await wait_for(cluster.is_whole)
                await asyncio.sleep(BETWEEN_S)
                gaps.append(await _kill_leader(cluster, acknowledged_at, behind_s))
                print(f"kill {number + 1}: {gaps[-1]:.1f} s without an acknowledged turn", flush=True)
            await asyncio.sleep(BETWEEN_S)
            stop.set()
        took = time.monotonic() - began
        async with Client(running.url, read_timeout_seconds=60) as reader:
            found = await audit(list(itertools.chain(*writers)), reader)
    finally:
        running.kill()
        shutil.rmtree(home, ignore_errors=True)
    return gaps, outcome(f"leader killed {kills} times", list(map(list, writers)), took, errors, found).row()


def _retrying_writer(name: str, channel: str, acknowledged_at: list[float]) -> RetryingWriter:
    writer = RetryingWriter(f"{name}-{time.time_ns()}", f"cursor_session_{channel}")
    writer.acknowledged_at = acknowledged_at
    return writer


async def _kill_leader(cluster: Cluster, acknowledged_at: list[float], behind_s: float) -> float:
    leader, paused = cluster.leader(), cluster.pause_replication() if behind_s else []
    await asyncio.sleep(behind_s)
    at = time.monotonic()
    await asyncio.to_thread(cluster.kill_node, leader)
    cluster.drop_replication(paused)
    await wait_for(
        lambda: cluster.leader() not in ("", leader) and bool(acknowledged_at) and acknowledged_at[-1] > at + 1
    )
    await asyncio.sleep(1)
    await asyncio.to_thread(cluster.start_node, leader)
    around = [at, *(moment for moment in acknowledged_at if moment >= at - 1)]
    return max(after - before for before, after in itertools.pairwise(sorted(around)))


async def rehearse_restore(cluster: Cluster) -> tuple[Audit, int, float]:
    """Log turns, delete everything, and restore the registry to the moment before the last turn.

    Returns the audit of the turns before that moment, the number of later messages (should be 0), and the seconds.
    """
    home = Path(tempfile.mkdtemp(prefix="ctxr-restore-"))
    running = Service(home, cluster.url)
    writer = _retrying_writer("before", "restored", [])
    into = cluster.folder / f"restored-{time.time_ns()}"
    try:
        await asyncio.to_thread(cluster.backrest, cluster.leader(), "--type=full", "backup")
        async with Client(running.url, read_timeout_seconds=60) as client:
            for _ in range(20):
                await writer.log_turn(client)
            moment, kept = datetime.now(UTC), list(writer.acknowledged)
            await asyncio.sleep(1)
            await writer.log_turn(client)  # after the moment: the restore must not contain it
    finally:
        running.kill()
    psql = [str(cluster.bin / "psql"), "-XAtq", cluster.url, "-c"]
    for statement in ("TRUNCATE conversation CASCADE", "SELECT pg_sleep(1)"):
        process = await asyncio.create_subprocess_exec(*psql, statement)
        assert await process.wait() == 0
    began = time.monotonic()
    url = await asyncio.to_thread(restore, cluster, into, f"{moment:%Y-%m-%d %H:%M:%S.%f}+00", servers.free_port())
    restored = Service(home, url)
    took = time.monotonic() - began
    try:
        writer.acknowledged = kept
        async with Client(restored.url, read_timeout_seconds=60) as reader:
            found = await audit([writer], reader)
            texts = await stored_texts(reader, writer.channel)
            return found, texts.total() - len(kept), took
    finally:
        restored.kill()
        stop_restored(cluster)
        shutil.rmtree(into, ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)


def main() -> None:
    """Start a cluster, rehearse a failover or a restore, and stop the cluster."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.failover", description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--asynchronous", action="store_true")
    parser.add_argument(
        "--behind", type=float, default=0, help="seconds before each kill for which followers receive nothing"
    )
    parser.add_argument("--restore", action="store_true", help="rehearse a restore instead")
    parser.add_argument("--folder", type=Path, help="keep the cluster in this folder; by default it is deleted")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="ctxr-ha-"))
    folder.chmod(0o755)
    cluster = Cluster(folder)
    try:
        cluster.up()
        cluster.set_synchronous(is_on=not options.asynchronous)
        if options.restore:
            found, later, took = asyncio.run(rehearse_restore(cluster))
            print(f"restored in {took:.0f} s: {found}, {later} later messages")
        else:
            gaps, row = asyncio.run(kill_leaders(cluster, options.kills, options.behind))
            print(f"seconds: median {statistics.median(gaps):.1f}, longest {max(gaps):.1f}")
            print(*OUTCOME_HEADS, sep=" | ")
            print(*row, sep=" | ")
    finally:
        cluster.down()
        if not options.folder:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
