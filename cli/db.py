"""`ctxr db`: the registry's tables."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

import click

from registry.settings import read_settings


@click.group()
def db() -> None:
    """Look after the registry's database."""


@db.command()
def upgrade() -> None:
    """Bring the tables up to date, creating them first where there are none.

    Every command does this when it starts; do it by hand before many processes
    start at once on a large registry.
    """
    from registry.inspection import inspect_database  # SQLAlchemy, which `ctxr -h` does not need
    from registry.migrate import migrate
    from registry.migrations import HEAD

    url = read_settings().url
    before = inspect_database(url).revision
    migrate(url)
    if before is None:
        click.echo(f"The registry was made, at revision {HEAD}.")
    elif before == HEAD:
        click.echo(f"The registry is at revision {HEAD} already.")
    else:
        click.echo(f"The registry was brought from revision {before} to {HEAD}.")


@db.command()
@click.option("--all", "everything", is_flag=True, help="Also where no message needs it: after damage, say.")
def reindex(everything: bool) -> None:
    """Rebuild the search index, while the registry goes on working.

    Messages indexed by an older version of Context Registry are found better
    afterwards. Stopped in the middle, it goes on there when it is run again; until
    the new index is whole, the old one is searched.
    """
    with click.progressbar(length=1, label="Reindexing", file=sys.stderr) as bar:

        def show(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        count = asyncio.run(_reindex(everything, show))
    click.echo(f"{count} messages were indexed anew." if count else "The search index is up to date.")


async def _reindex(everything: bool, show: Callable[[int, int], None]) -> int:
    from registry.registry import Registry
    from registry.search.rebuilding import reindex

    registry = Registry(read_settings().url)
    try:
        return await reindex(registry, show, everything=everything)
    finally:
        registry.close()
