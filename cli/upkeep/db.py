"""`ctxr db`: the registry's tables, its index and its vectors."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.output import TerminalError, counted
from registry.errors import InvalidRequest
from registry.extras import install_command
from registry.settings import read_settings

if TYPE_CHECKING:
    from orchestrator.semantic.calibration import Calibration


class ModelUnavailable(TerminalError):
    """The embedding model does not answer, or cannot be loaded."""

    code = "MODEL_UNAVAILABLE"


@click.group()
def db() -> None:
    """Look after the registry's database."""


@db.command()
def upgrade() -> None:
    """Bring the tables up to date, creating them first where there are none.

    Every command does this when it starts; do it by hand before many processes
    start at once on a large registry.
    """
    from registry.storage.migrate import migrate
    from registry.storage.migrations import HEAD
    from registry.storage.upkeep.inspection import inspect_database  # SQLAlchemy, which `ctxr -h` does not need

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
    click.echo(f"{counted(count, 'message')} indexed anew." if count else "The search index is up to date.")


async def _reindex(everything: bool, show: Callable[[int, int], None], url: str = "") -> int:
    from registry.registry import Registry
    from registry.storage.index.rebuild_index import reindex

    registry = Registry(url or read_settings().url)
    try:
        return await reindex(registry, show, everything=everything)
    finally:
        registry.close()


@db.command()
@click.argument("file", type=click.Path(path_type=Path), help="The new registry; there must be no such file.")
def salvage(file: Path) -> None:
    """Write all that can be read of a damaged registry to a new one.

    For a registry on SQLite. The damaged one stays as it is; put the new one in
    its place when you have looked at it: CTXR_DATABASE_URL=sqlite:///FILE.
    """
    from registry.storage.upkeep.salvage import salvage as save_rows

    address = read_settings().url
    if not address.startswith("sqlite:///"):
        raise InvalidRequest("Only a registry on SQLite is a file.", "PostgreSQL has tools of its own")
    saved = save_rows(Path(address.removeprefix("sqlite:///")), file)
    asyncio.run(_reindex(True, lambda *_: None, f"sqlite:///{file}"))
    for name, count in saved.rows.items():
        lost = saved.unreadable[name]
        if count or lost:
            click.echo(f"{name}: {count} rows" + (f", {lost} could not be read" if lost else ""))
    if any(saved.unreadable.values()):
        sys.exit(1)


@db.command()
@click.argument("source", metavar="FROM", help="A file, or an address such as postgresql://NAME@HOST/DATABASE.")
@click.argument("target", metavar="TO", help="The same; an empty database, or an earlier copy.")
def copy(source: str, target: str) -> None:
    """Copy the whole registry FROM one database TO another, in either direction.

    An earlier copy is replaced as a whole, or stays as it is if this one fails. In
    the end every row is compared.
    """
    from registry.storage.upkeep.copying import copy_registry

    with click.progressbar(length=0, label="Copying", file=sys.stderr) as bar:

        def show(table: str, rows: int) -> None:
            bar.label = f"Copying {table}"
            bar.length = (bar.length or 0) + rows
            bar.update(rows)

        done = copy_registry(_address(source), _address(target), show)
    for table, rows in done:
        if rows:
            click.echo(f"{table}: {rows} rows")
    click.echo("Both hold the same.")


def _address(given: str) -> str:
    return given if "://" in given else f"sqlite:///{Path(given).absolute()}"


@db.command()
@click.option("--all", "everything", is_flag=True, help="Also what is embedded: after the model itself was changed.")
def embed(everything: bool) -> None:
    """Embed the messages that are not yet, with the model of CTXR_EMBED_MODEL.

    A running server does this by itself, a few messages at a time. Stopped in the
    middle, it goes on there when it is run again. The vectors of models used before
    are thrown away at the end.
    """
    from orchestrator.semantic.models import missing_extra

    if extra := missing_extra(read_settings()):
        raise ModelUnavailable(f"The extra `{extra}` is not installed.", install_command(extra))
    with click.progressbar(length=1, label="Embedding", file=sys.stderr) as bar:

        def show(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        count, found = asyncio.run(_embed(everything, show))
    click.echo(f"{counted(count, 'message')} embedded." if count else "All messages are embedded.")
    click.echo(f"The model recognises {found.found} of {found.pairs} pairs that mean the same in other words.")


async def _embed(everything: bool, show: Callable[[int, int], None]) -> tuple[int, Calibration]:
    from orchestrator.semantic.embedders import Unavailable
    from orchestrator.semantic.embedding import embed_all
    from orchestrator.semantic.meaning import open_meaning
    from registry.registry import Registry

    settings = read_settings()
    registry = Registry(settings.url)
    meaning = open_meaning(settings, registry)
    if meaning is None:
        registry.close()
        raise InvalidRequest("Search goes by words alone.", "set CTXR_EMBED_MODEL to built-in, or to a model")
    try:
        return await embed_all(registry, meaning.embedder, show, everything=everything)
    except Unavailable as exc:
        raise ModelUnavailable("The model does not answer.", f"{exc}; what is embedded stays, run it again") from exc
    finally:
        await meaning.close()
        registry.close()
