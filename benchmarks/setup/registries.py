"""New registries to measure on, by their database: each yields its URL, empty for the home's own SQLite file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from deploy.ha.cluster import Cluster
from tests.databases import running_postgres
from tests.pooler import running_pooler

DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "shared_buffers": "512MB"}


@contextmanager
def sqlite() -> Iterator[str]:
    """Yield no URL: the registry is the home's own file."""
    yield ""


@contextmanager
def postgresql() -> Iterator[str]:
    """Run a PostgreSQL that syncs each commit to disk, and yield the URL of an empty database."""
    with running_postgres(**DURABLE) as server, server.database() as url:
        yield url


@contextmanager
def pooled() -> Iterator[str]:
    """Run PostgreSQL behind pgbouncer in transaction mode, and yield the URL of the pooler."""
    with postgresql() as url, running_pooler(url) as pooled_url:
        yield pooled_url


@contextmanager
def cluster() -> Iterator[str]:
    """Run the three nodes of `deploy/ha`, which acknowledge a commit once it is on two of them."""
    with tempfile.TemporaryDirectory(prefix="ctxr-ha-") as folder:
        Path(folder).chmod(0o755)
        nodes = Cluster(Path(folder))
        try:
            nodes.up()
            yield nodes.url
        finally:
            nodes.down()


REGISTRIES: dict[str, Callable[[], AbstractContextManager[str]]] = {
    "sqlite": sqlite,
    "postgresql": postgresql,
    "pgbouncer": pooled,
    "cluster": cluster,
}


def folder_of(url: str) -> Path:
    """Return the folder with the socket and data of the server at a URL."""
    return Path(url.partition("?host=")[2].partition("&")[0])


def server_user() -> str | None:
    """Return the user that must run PostgreSQL and its pooler, because they refuse root; None if that is not needed."""
    return "nobody" if os.geteuid() == 0 else None
