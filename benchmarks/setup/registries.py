"""New registries to measure on, by the database they are in: each is an address, empty for the one in a home."""

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
    """The registry that a home has by itself."""
    yield ""


@contextmanager
def postgresql() -> Iterator[str]:
    """A database on a server that syncs what it acknowledges."""
    with running_postgres(**DURABLE) as server, server.database() as url:
        yield url


@contextmanager
def pooled() -> Iterator[str]:
    """The same behind pgbouncer in transaction mode."""
    with postgresql() as url, running_pooler(url) as pooled_url:
        yield pooled_url


@contextmanager
def cluster() -> Iterator[str]:
    """Three nodes of `deploy/ha`: what is acknowledged is on two of them."""
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
    """Where the server of an address has its socket and its data."""
    return Path(url.partition("?host=")[2].partition("&")[0])


def server_user() -> str | None:
    """Who runs PostgreSQL and its pooler: they refuse root."""
    return "nobody" if os.geteuid() == 0 else None
