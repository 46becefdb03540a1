"""`ctxr db`: the registry's tables."""

from __future__ import annotations

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
