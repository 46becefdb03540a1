"""The ground the other tests stand on."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psycopg

KEPT = """
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


def test_the_developers_settings_are_out_of_sight(empty_home: Path) -> None:
    assert Path.home() == empty_home
    assert not [name for name in os.environ if name.startswith("CTXR_") and name != "CTXR_HOME"]


def test_a_killed_test_process_leaves_no_server_behind() -> None:
    child = subprocess.Popen([sys.executable, "-c", KEPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout
        folder = Path(child.stdout.readline().strip())
        assert folder.is_dir()
        child.kill()
    give_up_at = time.monotonic() + 10
    while folder.exists() and time.monotonic() < give_up_at:
        time.sleep(0.01)
    assert not folder.exists()
