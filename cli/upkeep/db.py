"""`ctxr db`: the registry's tables, its index and its vectors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.operations import with_registry
from cli.output import TerminalError, counted, progress
from registry.errors import InvalidRequest
from registry.extras import install_command
from registry.settings import Settings, read_settings

if TYPE_CHECKING:
    from registry.registry import Registry


@click.group()
def db() -> None:
    """Maintain the registry's database."""


@db.command()
def upgrade() -> None:
    """Create the tables, or bring them up to date.

    Every command does this when it starts; do it by hand before many processes
    start at once on a large registry.
    """
    from registry.storage.migrate import migrate
    from registry.storage.migrations import HEAD
    from registry.storage.upkeep.inspection import inspect_database

    url = read_settings().url
    before = inspect_database(url).revision
    migrate(url)
    if before is None:
        click.echo(f"The registry was created, at revision {HEAD}.")
    elif before == HEAD:
        click.echo(f"The registry is at revision {HEAD} already.")
    else:
        click.echo(f"The registry was upgraded from revision {before} to {HEAD}.")


@db.command()
@click.option("--all", "everything", is_flag=True, help="Rebuild it even where it looks up to date.")
def reindex(everything: bool) -> None:
    """Rebuild the search index while the registry stays in use.

    Messages indexed by an older version are found better afterwards. If it is
    stopped it continues when run again; until then the old index is searched.
    """
    count = _reindex(read_settings(), everything)
    click.echo(f"{counted(count, 'message')} indexed again." if count else "The search index is up to date.")


def _reindex(settings: Settings, everything: bool) -> int:
    from orchestrator.opening import with_registry
    from registry.storage.index.rebuild_index import reindex

    with progress("Reindexing") as show:
        return with_registry(settings, lambda registry: reindex(registry, show, everything=everything))


@db.command()
@click.argument("file", type=click.Path(path_type=Path), help="The new registry; the file must not exist.")
def salvage(file: Path) -> None:
    """Write all that can be read of a damaged registry to a new one.

    For a registry on SQLite. The damaged one stays as it is; use the new one when
    you have looked at it: CTXR_DATABASE_URL=sqlite:///FILE.
    """
    from registry.storage.upkeep.salvage import salvage

    settings = read_settings()
    if not settings.url.startswith("sqlite:///"):
        raise InvalidRequest("`ctxr db salvage` is for registries on SQLite.", "use the tools of PostgreSQL")

    def build_index(made: Path) -> None:
        _reindex(settings.model_copy(update={"database_url": f"sqlite:///{made}"}), everything=True)

    saved = salvage(Path(settings.url.removeprefix("sqlite:///")), file, build_index)
    for name, (count, lost) in saved.items():
        if count or lost:
            click.echo(f"{name}: {count} rows" + (f", {lost} could not be read" if lost else ""))
    if any(lost for _, lost in saved.values()):
        sys.exit(1)


@db.command()
@click.argument("source", metavar="FROM", help="A file, or an address such as postgresql://NAME@HOST/DATABASE.")
@click.argument("target", metavar="TO", help="The same; an empty database, or an earlier copy.")
def copy(source: str, target: str) -> None:
    """Copy the whole registry FROM one database TO another.

    An earlier copy is replaced as a whole, or stays as it is if this one fails. At
    the end every row is compared.
    """
    from registry.storage.upkeep.table_export import copy_registry

    with click.progressbar(length=1, label="Copying", file=sys.stderr) as bar:

        def show(table: str, rows: int) -> None:
            bar.label = f"Copying {table}"
            bar.length = bar.pos + rows + 1
            bar.update(rows)

        done = copy_registry(_address(source), _address(target), show)
    for table, rows in done:
        if rows:
            click.echo(f"{table}: {rows} rows")
    click.echo("The copy is identical.")


def _address(given: str) -> str:
    return given if "://" in given else f"sqlite:///{Path(given).absolute()}"


@db.command()
def embed() -> None:
    """Embed the messages that have no vector yet, with the model of CTXR_EMBED_MODEL.

    A running server does this by itself, a few messages at a time. If it is
    stopped it continues when run again. Vectors of other models are deleted at
    the end.
    """
    from orchestrator.semantic.models import is_onnx_missing

    settings = read_settings()
    if is_onnx_missing(settings):
        raise TerminalError("MODEL_UNAVAILABLE", "The extra `embed` is not installed.", install_command("embed"))
    count = with_registry(lambda registry: _embed(settings, registry))
    click.echo(f"{counted(count, 'message')} embedded." if count else "All messages are embedded.")


async def _embed(settings: Settings, registry: Registry) -> int:
    from orchestrator.semantic.embedders import Unavailable
    from orchestrator.semantic.embedding import embed_all
    from orchestrator.semantic.meaning import open_meaning

    meaning = open_meaning(settings, registry)
    if meaning is None:
        raise InvalidRequest("Search by meaning is off.", "set CTXR_EMBED_MODEL to built-in, or to a model")
    try:
        with progress("Embedding") as show:
            return await embed_all(registry, meaning.embedder, show)
    except Unavailable as exc:
        details = f"{exc}; embedded messages stay, run it again"
        raise TerminalError("MODEL_UNAVAILABLE", "The model does not answer.", details) from exc
    finally:
        await meaning.close()
