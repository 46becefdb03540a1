"""Tests of the fixtures: isolated databases and an empty home."""

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

from orchestrator.service import Orchestrator
from tests.databases import SpareDatabases
from tests.seeded import SeededDatabases

SERVER = """
import sys
from tests.databases import running_postgres
with running_postgres() as server:
    print(server.folder, flush=True)
    sys.stdin.read()
"""


def test_each_postgresql_database_is_fresh(postgres_url: str, empty_postgres_url: str) -> None:
    assert postgres_url != empty_postgres_url
    with psycopg.connect(empty_postgres_url) as connection:
        tables = connection.execute("SELECT * FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert tables == []


def state_of(url: str) -> tuple[object, ...]:
    """Return all that an earlier test could have changed."""
    with psycopg.connect(url) as connection:
        return (
            connection.execute("SELECT * FROM alembic_version").fetchall(),
            connection.execute("SELECT count(*) FROM channel").fetchall(),
            connection.execute(
                "SELECT column_name FROM information_schema.columns WHERE table_name = 'channel'"
            ).fetchall(),
            connection.execute("SELECT sequencename, last_value FROM pg_sequences ORDER BY 1").fetchall(),
        )


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "UPDATE alembic_version SET version_num = 'newer'",
        "ALTER TABLE channel DROP COLUMN title CASCADE",
        "DROP TABLE channel CASCADE",
        "CREATE TABLE left_behind AS SELECT 1",
        "SELECT nextval(format('%I', sequencename)::regclass) FROM pg_sequences",
    ],
)
def test_changes_to_a_database_do_not_reach_the_next_test(
    postgres_databases: SpareDatabases, statement: LiteralString
) -> None:
    with postgres_databases.database() as url:
        before = state_of(url)
        left_open = psycopg.connect(url, autocommit=True)
        left_open.execute(statement)
    with postgres_databases.database() as url:
        assert state_of(url) == before
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT to_regclass('left_behind')").fetchone() == (None,)
    left_open.close()


def test_a_database_with_unchanged_tables_is_reused(postgres_databases: SpareDatabases) -> None:
    with postgres_databases.database() as first:
        pass
    with postgres_databases.database() as second:
        assert second == first


async def log_and_tag(orchestrator: Orchestrator) -> None:
    """Store rows that refer to rows of other tables."""
    message = {"role": "user", "text": "Why does the basket lose items?"}
    assert (await orchestrator.run({"operation": "conversation_log", "channel": "c", "messages": [message]}))["success"]
    assert (await orchestrator.run({"operation": "tag", "channel": "c", "query": {"tags": ["shop"]}}))["success"]


@pytest.mark.anyio
async def test_a_prefilled_database_is_reset_to_its_content(
    seeded_databases: SeededDatabases,
) -> None:
    seen = []
    for _ in range(2):
        with ExitStack() as stack:
            url = await seeded_databases.enter(log_and_tag, stack)
            with psycopg.connect(url) as connection:
                tags = connection.execute("SELECT tag.name FROM tag JOIN channel ON number = channel_number").fetchall()
                connection.execute("DELETE FROM channel")
            seen.append((url, tags))
    assert seen == 2 * [(url, [("shop",)])]


def test_tests_do_not_see_the_developers_settings(empty_home: Path) -> None:
    assert Path.home() == empty_home
    set_by_fixtures = {"CTXR_HOME", "CTXR_SHARED", "CTXR_EMBED_MODEL"}
    assert {name for name in os.environ if name.startswith("CTXR_")} <= set_by_fixtures


def test_a_killed_test_process_leaves_no_server_behind() -> None:
    child = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout
        folder = Path(child.stdout.readline().strip())
        assert folder.is_dir()
        child.kill()
    deadline = time.monotonic() + 10
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not folder.exists()
