"""Migrate a registry's tables: at every start, by `ctxr db upgrade`, and in tests."""

from pathlib import Path

from sqlalchemy import Connection, inspect, text
from sqlalchemy.engine import Engine

from registry.errors import StorageError
from registry.storage.connections import begin_on_server, open_engine
from registry.storage.database import ReadTransaction, WriteTransaction, acquire_lock, storage_errors
from registry.storage.migrations import FIRST, HEAD


def current_revision(connection: Connection) -> str | None:
    """Return the database's revision; None if it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return revision


def migrate(url: str, revision: str = HEAD) -> None:
    """Migrate the database at `url` to a revision; StorageError if its current revision is unknown."""
    with open_engine(url) as engine:
        migrate_engine(engine, revision)


def migrate_engine(engine: Engine, revision: str = HEAD) -> str | None:
    """Migrate an engine's database to a revision. Returns the revision before; None if it was empty."""
    begin = begin_on_server(idle_in_transaction_session_timeout=0, statement_timeout=0, lock_timeout=0)
    with storage_errors("open"):
        with engine.execution_options(begin=begin).connect() as connection:
            before = current_revision(connection)
        for known in (before, revision):
            _check_known(known)
        if before != revision:
            with engine.execution_options(write=True, begin=begin).begin() as connection:
                acquire_lock(WriteTransaction(ReadTransaction(connection)), "migration")  # several may start at once
                if current_revision(connection) != revision:  # no other process did it while we waited
                    _upgrade(connection, revision)
    return before


def _check_known(revision: str | None) -> None:
    if revision is not None and revision > HEAD:
        raise StorageError(
            "The registry was written by a newer version of Context Registry.",
            f"Its tables are at revision {revision}, this version knows {HEAD}: update Context Registry",
        )
    if revision is not None and revision < FIRST:
        raise StorageError(
            "The registry was written by a development version before 0.1.0.",
            f"Its tables are at revision {revision}, this version reads {FIRST} and later: name another CTXR_HOME, "
            "and ctxr sync reads the clients' histories again",
        )


def _upgrade(connection: Connection, revision: str) -> None:
    from alembic import command  # takes 250 ms, and is needed only to migrate
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
