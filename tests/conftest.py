"""Shared fixtures: an empty home without the developer's settings, and databases on request."""

import gc
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

from orchestrator.recording import recorder
from registry.registry import Registry
from tests.conformance.servers import LEAKING
from tests.databases import TEMPLATE, PostgresServer, SpareDatabases, running_postgres
from tests.embedding_server import EmbeddingServer, running_server
from tests.quick_clients import speed_up_clients
from tests.quick_engines import speed_up_engines
from tests.seeded import Seeded, SeededDatabases, SeededFiles, seeded_by

SLOW_NAMES = re.compile(
    "postgresql|tests/(pages|conformance|benchmarks)/|fuzz|test_any_input|test_packaging|test_databases"
    "|test_serve|test_stdio|test_hook"
)
LONG_NAMES = re.compile(
    "test_packaging|test_who_sees_what|test_retrieval_floors|tests/conformance/|test_any_input|tests/cli/(shared|running)/"
    "|storage/test_owners"
)
SLOW_FIXTURES = {"postgres_server", "browser", "node"}
# Loading the tests makes no garbage.
gc.disable()

os.environ["CTXR_SHARED"] = "off"
"""Fixtures that start a program before `empty_home` runs need it too. Tests of the local process switch it on, and stop
the process."""

# Let programs that tests start share their byte code, even if the shell forbids it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Background jobs of a shell ignore Ctrl-C, and their children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

speed_up_engines()
speed_up_clients()

# No deadline: workers share the cores. Random examples locally; the same ones in CI, so that only a change can fail.
settings.register_profile("ctxr", deadline=None, max_examples=10, derandomize="CI" in os.environ)
settings.load_profile("ctxr")


def is_repeated(item: pytest.Item, names: set[str]) -> bool:
    """Return whether a test is the PostgreSQL run of one that needs SQLite only."""
    on_sqlite = item.nodeid.replace("postgresql", "sqlite")
    return on_sqlite != item.nodeid and on_sqlite in names and not item.get_closest_marker("both_databases")


def is_on_server(item: pytest.Item) -> bool:
    """Return whether a test needs PostgreSQL."""
    return "[postgresql" in item.nodeid or "postgres_server" in getattr(item, "fixturenames", ())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests (PostgreSQL, browsers, processes, many examples), and run the longest first."""
    names = {item.nodeid for item in items}
    items[:] = [item for item in items if not is_repeated(item, names)]
    for item in items:
        if SLOW_NAMES.search(item.nodeid) or SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    # A worker takes consecutive tests, which share fixtures; idle workers take over from its end. Tests of half a
    # minute go first, or the other workers would wait for them at the end.
    items.sort(key=lambda item: not LONG_NAMES.search(item.nodeid))
    # The second worker begins with the tests that need PostgreSQL, so that few workers start a server.
    share = len(items) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    items[share:] = sorted(items[share:], key=lambda item: not is_on_server(item))


def pytest_collection_finish() -> None:
    """Exempt loaded modules from garbage collection."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)


def pytest_sessionfinish() -> None:
    """Collect garbage once, because pytest collects five times at exit to find warnings."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def spare_homes() -> list[Path]:
    """Return the empty home folders that earlier tests left: removing a folder takes longer than a small test."""
    return []


@pytest.fixture(autouse=True)
def empty_home(
    spare_homes: list[Path], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Set an empty home folder: no test sees the developer's histories or settings."""
    home = spare_homes.pop() if spare_homes else tmp_path_factory.mktemp("own") / "home"
    home.mkdir(parents=True, exist_ok=True)
    for name in os.environ:
        if name.startswith(LEAKING):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CTXR_SHARED", "off")
    monkeypatch.setenv("CTXR_HOME", str(home / "ctxr"))
    monkeypatch.setenv("CTXR_EMBED_MODEL", "off")  # a model takes a second to load
    for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))
    yield home
    if home.is_dir() and not any(home.iterdir()):
        spare_homes.append(home)


@pytest.fixture(autouse=True)
def wait_for_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer only after the execution is recorded, even on a slow disk, because tests read the record next."""
    monkeypatch.setattr(recorder, "MAX_WAIT_S", 30.0)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run async tests on asyncio."""
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """Start one PostgreSQL per test process, at its first use."""
    with running_postgres(autovacuum="off") as server:  # it would change plans while a test runs
        yield server


@pytest.fixture(scope="session")
def postgres_databases(postgres_server: PostgresServer) -> Iterator[SpareDatabases]:
    """PostgreSQL databases with all tables and no rows."""
    postgres_server.execute("CREATE DATABASE {}", TEMPLATE)
    Registry(postgres_server.url(TEMPLATE)).close()
    databases = SpareDatabases(postgres_server, TEMPLATE)
    yield databases
    databases.close()


@pytest.fixture
def postgres_url(postgres_databases: SpareDatabases) -> Iterator[str]:
    """Return the address of this test's own PostgreSQL database, with all tables and no rows."""
    with postgres_databases.database() as url:
        yield url


@pytest.fixture
def empty_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """Return the address of this test's own PostgreSQL database without tables, for migrations."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with all tables and no rows."""
    file = tmp_path_factory.mktemp("template") / "registry.db"
    Registry(f"sqlite:///{file}").close()
    return file


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """Return the address of this test's own SQLite database, with all tables and no rows."""
    file = shutil.copy(sqlite_template, tmp_path / "registry.db")
    return f"sqlite:///{file}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Run the test on SQLite and on PostgreSQL: return the address of an empty registry."""
    name = {"sqlite": "sqlite_url", "postgresql": "postgres_url"}[request.param]
    return str(request.getfixturevalue(name))


@pytest.fixture(scope="session")
def seeded_files(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> SeededFiles:
    """Prefilled SQLite files."""
    return SeededFiles(sqlite_template, tmp_path_factory.mktemp("seeded"))


@pytest.fixture(scope="session")
def seeded_databases(postgres_server: PostgresServer, postgres_databases: SpareDatabases) -> Iterator[SeededDatabases]:
    """Prefilled PostgreSQL databases."""
    databases = SeededDatabases(postgres_server)
    yield databases
    databases.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def seeded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Seeded]:
    """Run the test on SQLite and on PostgreSQL, with prefilled registries."""
    with ExitStack() as stack:
        yield seeded_by(request, request.param, tmp_path, stack)


@pytest.fixture
def seeded_file(request: pytest.FixtureRequest, tmp_path: Path) -> Seeded:
    """Prefilled SQLite files."""
    return seeded_by(request, "sqlite", tmp_path, ExitStack())


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Run the test on SQLite and on PostgreSQL: return the address of a database without tables, for migrations."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    return str(request.getfixturevalue("empty_postgres_url"))


@pytest.fixture
def embedding_server() -> Iterator[EmbeddingServer]:
    """This test's own embedding endpoint."""
    with running_server() as server:
        yield server
