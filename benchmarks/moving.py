"""Copy a registry from SQLite to PostgreSQL and back: python -m benchmarks.moving [--messages N]

The first `ctxr db copy` is killed (-9), which must leave the target empty. It is run again to its end, and the copy is
copied to another file. Then all three are compared by their rows and by digests of all messages and of search results.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import func, select

from benchmarks.scale import queries
from benchmarks.setup import servers
from benchmarks.setup.corpus import fill
from benchmarks.setup.figures import table
from benchmarks.setup.registries import postgresql
from registry.registry import Registry
from registry.search.retrieval import find_messages
from registry.search.scope import Scope
from registry.storage.database import Database, ReadTransaction
from registry.storage.tables import conversation, metadata

MESSAGES = 90_000
HEADS = ("registry", "rows", "digest of all messages", "digest of 60 searches")


def start_copy(home: Path, source: str, target: str) -> subprocess.Popen[str]:
    """Start `ctxr db copy`."""
    command = [servers.CTXR, "db", "copy", source, target]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, env=servers.environment(home), stdout=subprocess.PIPE, stderr=quiet, text=True)


def kill_copy(process: subprocess.Popen[str], url: str) -> int:
    """Kill the copy after ten seconds; return the number of messages in the target. RuntimeError if it ended before."""
    time.sleep(10)
    if process.poll() is not None:
        raise RuntimeError("the copy ended before it could be killed: use more --messages")
    process.kill()
    process.wait()
    with psycopg.connect(url, autocommit=True) as connection:
        [count] = connection.execute("SELECT count(*) FROM conversation").fetchone() or (0,)
        return int(count)


def wait_for_copy(process: subprocess.Popen[str], began: float) -> str:
    """Wait for the copy; return the last line of its output and the seconds it took."""
    said, _ = process.communicate()
    return (
        f"{said.strip().splitlines()[-1] if said.strip() else f'exit {process.returncode}'} {time.time() - began:.0f} s"
    )


def contents(url: str) -> Sequence[str]:
    """Return a registry's number of rows and digests, for comparison."""
    database = Database(url)
    with database.engine.begin() as connection:
        tx = ReadTransaction(connection)
        rows = sum(tx.execute(select(func.count()).select_from(one)).scalar_one() for one in metadata.sorted_tables)
        digests = [hashlib.sha256(), hashlib.sha256()]
        row_of = conversation.c
        columns = (row_of.number, row_of.id, row_of.seq, row_of.role, row_of.text)
        for row in tx.execute(select(*columns).order_by(row_of.number).execution_options(yield_per=5_000)):
            digests[0].update(repr(tuple(row)).encode())
        for words in queries("typical"):
            digests[1].update(repr(_ranking(find_messages(tx, words, Scope(), budget=100_000))).encode())
    database.close()
    return [str(rows), *(digest.hexdigest()[:16] for digest in digests)]


def _ranking(found: Any) -> list[tuple[int, float]]:
    return [(one.candidate.number, one.score) for one in found.ranked]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.moving", description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, postgresql() as url:
        home = Path(folder)
        first, back = (f"sqlite:///{home / name}" for name in ("first.db", "back.db"))
        registry = Registry(first)
        fill(registry, options.messages)
        registry.close()
        # `fill` analyses single words; index the whole texts, as `db copy` does.
        env = servers.environment(home) | {"CTXR_DATABASE_URL": first}
        subprocess.run([servers.CTXR, "db", "reindex", "--all"], env=env, check=True, capture_output=True)
        began = time.time()
        copied = kill_copy(start_copy(home, first, url), url)
        print(f"killed after {time.time() - began:.0f} s: {copied} messages in the target", flush=True)
        for source, target in ((first, url), (url, back)):
            began = time.time()
            print(f"{source.partition(':')[0]} to {target.partition(':')[0]}:", flush=True)
            print("  ", wait_for_copy(start_copy(home, source, target), began), flush=True)
        print(
            table(HEADS, [[name, *contents(one)] for name, one in (("file", first), ("server", url), ("back", back))])
        )


if __name__ == "__main__":
    main()
