"""Read from a delayed PostgreSQL replica: python -m benchmarks.replicas [--turns N] [--lag S] …

Two registries, which share no state, write to the primary and read from the replica. One logs turns and searches for
each at once; it must find its own turn whatever the delay. The other searches until it sees the turn.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg

from benchmarks.setup.figures import Spread, table
from orchestrator.service import Orchestrator
from registry.registry import Registry
from tests.databases import PostgresServer, running_postgres, running_replica

LAGS_S = (0.0, 0.5, 2.0)
TIMEOUT_S = 60.0
PAUSE_S = 0.02
HEADS = (
    "delay of the replica",
    "turns",
    "own turn found at once",
    "reads from the primary",
    "own search",
    "others see it after",
)


@contextmanager
def two_processes(primary: PostgresServer, replica: PostgresServer) -> Iterator[tuple[Orchestrator, Orchestrator]]:
    """Open a writer and a reader on registries that share no state, as in two processes."""
    with ExitStack() as stack:
        both = [Registry(primary.url("postgres"), read_url=replica.url("postgres")) for _ in range(2)]
        for registry in both:
            stack.callback(registry.close)
        yield Orchestrator(both[0]), Orchestrator(both[1])


def set_lag(replica: PostgresServer, seconds: float) -> None:
    """Set the replica's delay between a commit and its replay."""
    with psycopg.connect(replica.url("postgres"), autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET recovery_min_apply_delay = {round(seconds * 1000)}")
        connection.execute("SELECT pg_reload_conf()")


async def measure(writer: Orchestrator, reader: Orchestrator, lag: float, turns: int) -> list[str]:
    """Return the table row for one delay."""
    found = by_original = 0
    own, others = list[float](), list[float]()
    for number in range(turns):
        word = f"wombat{round(lag * 1000)}x{number}"
        message = {"role": "user", "text": f"Where does the {word} live?"}
        said = await writer.run({"operation": "conversation_log", "channel": "zoo", "messages": [message]})
        assert said["success"], said
        at = time.perf_counter()
        by_original += not await _reads_from_replica(writer)
        asked = time.perf_counter()
        found += await _finds(writer, word)
        own.append(time.perf_counter() - asked)
        while not await _finds(reader, word):
            assert time.perf_counter() < at + TIMEOUT_S, "the replica does not follow"
            await asyncio.sleep(PAUSE_S)
        others.append(time.perf_counter() - at)
    return [f"{lag:g} s", str(turns), str(found), str(by_original), f"{Spread.of(own)} ms", f"{Spread.of(others)} ms"]


async def _finds(who: Orchestrator, word: str) -> bool:
    answer = await who.run({"operation": "search", "query": {"text": word}})
    return any(word in message["text"] for message in answer["messages"])


async def _reads_from_replica(who: Orchestrator) -> bool:
    asking = who.registry.for_reading()
    return bool(await asking.read(lambda tx: tx.exec_driver_sql("SELECT pg_is_in_recovery()").scalar()))


async def measure_all(
    primary: PostgresServer, replica: PostgresServer, lags: list[float], turns: int
) -> list[list[str]]:
    """Return the rows of the table."""
    rows = []
    with two_processes(primary, replica) as (writer, reader):
        for lag in lags:
            await asyncio.to_thread(set_lag, replica, lag)
            rows.append(await measure(writer, reader, lag, turns))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replicas", description=__doc__)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--lag", type=float, action="append", help="seconds; may be repeated; 0, 0.5 and 2 by default")
    options = parser.parse_args()
    with running_postgres() as primary, running_replica(primary) as replica:
        rows = asyncio.run(measure_all(primary, replica, options.lag or list(LAGS_S), options.turns))
    print(table(HEADS, rows))


if __name__ == "__main__":
    main()
