"""A replica that lags, and who reads what: python -m benchmarks.replicas [--turns N] [--lag S] …

A PostgreSQL and a streaming copy of it, which applies what it gets only after so many seconds; two processes' worth of
registries that read from the copy. One logs turn by turn and searches at once for what it said, the other asks until it
sees it. Whoever wrote must find it each time, whatever the lag.
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
PATIENCE_S = 60.0
PAUSE_S = 0.02
HEADS = (
    "the copy is behind",
    "turns",
    "own turn found at once",
    "by the original",
    "own search",
    "others see it after",
)


@contextmanager
def two_processes(original: PostgresServer, copy: PostgresServer) -> Iterator[tuple[Orchestrator, Orchestrator]]:
    """One that writes and one that reads, which know nothing of each other."""
    with ExitStack() as stack:
        both = [Registry(original.url("postgres"), read_url=copy.url("postgres")) for _ in range(2)]
        for registry in both:
            stack.callback(registry.close)
        yield Orchestrator(both[0]), Orchestrator(both[1])


def set_lag(copy: PostgresServer, seconds: float) -> None:
    """Have the copy apply each transaction so long after it was committed."""
    with psycopg.connect(copy.url("postgres"), autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET recovery_min_apply_delay = {round(seconds * 1000)}")
        connection.execute("SELECT pg_reload_conf()")


async def measure(writer: Orchestrator, reader: Orchestrator, lag: float, turns: int) -> list[str]:
    """A line of the table."""
    found = by_original = 0
    own, others = list[float](), list[float]()
    for number in range(turns):
        word = f"wombat{round(lag * 1000)}x{number}"
        message = {"role": "user", "text": f"Where does the {word} live?"}
        said = await writer.run({"operation": "conversation_log", "channel": "zoo", "messages": [message]})
        assert said["success"], said
        at = time.perf_counter()
        by_original += not await _is_answered_by_copy(writer)
        asked = time.perf_counter()
        found += await _sees(writer, word)
        own.append(time.perf_counter() - asked)
        while not await _sees(reader, word):
            assert time.perf_counter() < at + PATIENCE_S, "the copy does not follow"
            await asyncio.sleep(PAUSE_S)
        others.append(time.perf_counter() - at)
    return [f"{lag:g} s", str(turns), str(found), str(by_original), f"{Spread.of(own)} ms", f"{Spread.of(others)} ms"]


async def _sees(who: Orchestrator, word: str) -> bool:
    answer = await who.run({"operation": "search", "query": {"text": word}})
    return any(word in message["text"] for message in answer["messages"])


async def _is_answered_by_copy(who: Orchestrator) -> bool:
    asking = who.registry.for_reading()
    return bool(await asking.read(lambda tx: tx.exec_driver_sql("SELECT pg_is_in_recovery()").scalar()))


async def measured(original: PostgresServer, copy: PostgresServer, lags: list[float], turns: int) -> list[list[str]]:
    """The table, line by line."""
    rows = []
    with two_processes(original, copy) as (writer, reader):
        for lag in lags:
            await asyncio.to_thread(set_lag, copy, lag)
            rows.append(await measure(writer, reader, lag, turns))
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replicas", description=__doc__)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--lag", type=float, action="append", help="seconds; may be repeated; 0, 0.5 and 2 by default")
    options = parser.parse_args()
    with running_postgres() as original, running_replica(original) as copy:
        rows = asyncio.run(measured(original, copy, options.lag or list(LAGS_S), options.turns))
    print(table(HEADS, rows))


if __name__ == "__main__":
    main()
