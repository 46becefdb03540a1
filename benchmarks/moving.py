"""A registry from a file to PostgreSQL and back, stopped on the way: python -m benchmarks.moving [--messages N]

`ctxr db copy` is killed (-9) on the way, which leaves nothing over there, run again to its end, and the copy is copied
into another file. Then all three are compared: rows of each table, a digest over all messages, and what searches find.
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


def copying(home: Path, source: str, target: str) -> subprocess.Popen[str]:
    """`ctxr db copy`, running."""
    command = [servers.CTXR, "db", "copy", source, target]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, env=servers.environment(home), stdout=subprocess.PIPE, stderr=quiet, text=True)


def stopped_on_the_way(process: subprocess.Popen[str], url: str) -> int:
    """How many messages are over there when it was killed after ten seconds."""
    time.sleep(10)
    if process.poll() is not None:
        raise RuntimeError("it ended before it could be killed: take more messages")
    process.kill()
    process.wait()
    with psycopg.connect(url, autocommit=True) as connection:
        [count] = connection.execute("SELECT count(*) FROM conversation").fetchone() or (0,)
        return int(count)


def ended(process: subprocess.Popen[str], began: float) -> str:
    """What it said last, and the seconds it took."""
    said, _ = process.communicate()
    return (
        f"{said.strip().splitlines()[-1] if said.strip() else f'exit {process.returncode}'} {time.time() - began:.0f} s"
    )


def held(url: str) -> Sequence[str]:
    """What a registry holds, to be compared."""
    database = Database(url)
    with database.engine.begin() as connection:
        tx = ReadTransaction(connection)
        rows = sum(tx.execute(select(func.count()).select_from(one)).scalar_one() for one in metadata.sorted_tables)
        digests = [hashlib.sha256(), hashlib.sha256()]
        told = (conversation.c.number, conversation.c.id, conversation.c.seq, conversation.c.role, conversation.c.text)
        for row in tx.execute(select(*told).order_by(conversation.c.number).execution_options(yield_per=5_000)):
            digests[0].update(repr(tuple(row)).encode())
        for words in queries("typical"):
            digests[1].update(repr(_order(find_messages(tx, words, Scope(), budget=100_000))).encode())
    database.close()
    return [str(rows), *(digest.hexdigest()[:16] for digest in digests)]


def _order(found: Any) -> list[tuple[int, float]]:
    return [(one.candidate.number, one.score) for one in found.ranked]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.moving", description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, postgresql() as url:
        home = Path(folder)
        first, back = (f"sqlite:///{home / name}" for name in ("first.db", "back.db"))
        registry = Registry(first)
        fill(registry, options.messages)
        registry.close()
        # What fills it analyses words one by one; an index is made of the texts.
        env = servers.environment(home) | {"CTXR_DATABASE_URL": first}
        subprocess.run([servers.CTXR, "db", "reindex", "--all"], env=env, check=True, capture_output=True)
        began = time.time()
        there = stopped_on_the_way(copying(home, first, url), url)
        print(f"killed after {time.time() - began:.0f} s: {there} messages are there", flush=True)
        for source, target in ((first, url), (url, back)):
            began = time.time()
            print(f"{source.partition(':')[0]} to {target.partition(':')[0]}:", flush=True)
            print("  ", ended(copying(home, source, target), began), flush=True)
        print(table(HEADS, [[name, *held(one)] for name, one in (("file", first), ("server", url), ("back", back))]))


if __name__ == "__main__":
    main()
