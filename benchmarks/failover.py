"""A cluster whose leader is killed under load: python -m benchmarks.failover [--kills N] [--asynchronous] [--behind S]

`deploy.ha` runs three PostgreSQL nodes under Patroni behind HAProxy; a `ctxr serve` stores there what
clients log turn by turn. Each kill takes a whole node (-9), as when its machine goes; it comes back once another one
leads. `lost` and `doubled` should be 0. With `--behind` the followers stand still before each kill. `--restore` takes
the registry back to a moment before all of it was deleted.
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
from deploy.ha.backups import end_restored, restore
from deploy.ha.cluster import Cluster
from deploy.ha.processes import wait_until

BETWEEN_S = 4.0
"""Of undisturbed load before each kill."""
BACK_S = 180.0


class Insisting(Writer):
    """Sends a turn again until it is acknowledged, also after a failure was answered; notes when each one was."""

    moments: list[float]
    latest: list[Message]

    def next_turn(self) -> list[Message]:
        """A question and its answer."""
        self.latest = super().next_turn()
        return self.latest

    async def log_turn(self, client: Client) -> None:
        """One turn, new or again."""
        try:
            await super().log_turn(client)
        except WrongAnswer:
            self.pending = self.latest
            await asyncio.sleep(0.2)
            raise
        self.moments.append(time.monotonic())


async def until(is_so: Callable[[], bool], seconds: float = BACK_S) -> None:
    """Wait; TimeoutError if it takes too long."""
    await asyncio.to_thread(wait_until, is_so, "the cluster", seconds)


async def killed(cluster: Cluster, kills: int, behind_s: float = 0) -> tuple[list[float], tuple[str, ...]]:
    """The seconds without an acknowledged turn around each kill, and the outcome as a line of a table."""
    home = Path(tempfile.mkdtemp(prefix="ctxr-failover-"))
    running = Service(home, cluster.url)
    moments: list[float] = []
    writers = [
        [_insisting(f"client{n}", channel, moments) for channel in (f"own{n}", "shared")] for n in range(HTTP_CLIENTS)
    ]
    errors, stop, began, gaps = list[str](), asyncio.Event(), time.monotonic(), list[float]()
    try:
        async with asyncio.TaskGroup() as group:
            for told in writers:
                group.create_task(log_until_stopped(running.url, list(told), stop, errors))
            for number in range(kills):
                await until(cluster.is_whole)
                await asyncio.sleep(BETWEEN_S)
                gaps.append(await _one_kill(cluster, moments, behind_s))
                print(f"kill {number + 1}: {gaps[-1]:.1f} s without an acknowledged turn", flush=True)
            await asyncio.sleep(BETWEEN_S)
            stop.set()
        took = time.monotonic() - began
        async with Client(running.url, read_timeout_seconds=60) as reader:
            found = await audit(list(itertools.chain(*writers)), reader)
    finally:
        running.kill()
        shutil.rmtree(home, ignore_errors=True)
    return gaps, outcome(f"leader killed {kills} times", [list(told) for told in writers], took, errors, found).row()


def _insisting(name: str, channel: str, moments: list[float]) -> Insisting:
    writer = Insisting(f"{name}-{time.time_ns()}", f"cursor_session_{channel}")
    writer.moments = moments
    return writer


async def _one_kill(cluster: Cluster, moments: list[float], behind_s: float) -> float:
    leader, held = cluster.leader(), cluster.hold_lines() if behind_s else []
    await asyncio.sleep(behind_s)
    at = time.monotonic()
    await asyncio.to_thread(cluster.kill_node, leader)
    cluster.cut_lines(held)
    await until(lambda: cluster.leader() not in ("", leader) and bool(moments) and moments[-1] > at + 1)
    await asyncio.sleep(1)
    await asyncio.to_thread(cluster.start_node, leader)
    around = [at, *(moment for moment in moments if moment >= at - 1)]
    return max(after - before for before, after in itertools.pairwise(sorted(around)))


async def taken_back(cluster: Cluster) -> tuple[Audit, int, float]:
    """What was acknowledged before a moment, against what a restore to that moment has; how many later messages it has;
    and the seconds it took."""
    home = Path(tempfile.mkdtemp(prefix="ctxr-restore-"))
    running = Service(home, cluster.url)
    writer = _insisting("before", "restored", [])
    into = cluster.folder / f"restored-{time.time_ns()}"
    try:
        await asyncio.to_thread(cluster.backrest, cluster.leader(), "--type=full", "backup")
        async with Client(running.url, read_timeout_seconds=60) as client:
            for _ in range(20):
                await writer.log_turn(client)
            moment, kept = datetime.now(UTC), list(writer.acknowledged)
            await asyncio.sleep(1)
            await writer.log_turn(client)  # what came later is not there after the restore
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
        end_restored(cluster)
        shutil.rmtree(into, ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)


def main() -> None:
    """Bring the cluster up, do what is asked, take it down."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.failover", description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--asynchronous", action="store_true")
    parser.add_argument("--behind", type=float, default=0, help="seconds for which followers got nothing before a kill")
    parser.add_argument("--restore", action="store_true", help="rehearse the restore instead")
    parser.add_argument("--folder", type=Path, help="of a cluster that is kept; without it a new one, which goes again")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="ctxr-ha-"))
    folder.chmod(0o755)
    cluster = Cluster(folder)
    try:
        cluster.up()
        cluster.set_synchronous(is_on=not options.asynchronous)
        if options.restore:
            found, later, took = asyncio.run(taken_back(cluster))
            print(f"restored in {took:.0f} s: {found}, {later} later ones")
        else:
            gaps, row = asyncio.run(killed(cluster, options.kills, options.behind))
            print(f"seconds: median {statistics.median(gaps):.1f}, longest {max(gaps):.1f}")
            print(*OUTCOME_HEADS, sep=" | ")
            print(*row, sep=" | ")
    finally:
        cluster.down()
        if not options.folder:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
