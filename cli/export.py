"""`ctxr export`: a session as a document."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from cli.arguments import id_argument, operation
from cli.operations import run_operation
from orchestrator.export.files import write_new_file
from orchestrator.export.texts import ExportFormat
from orchestrator.export.texts import export as render


@click.command()
@id_argument
@click.option(
    "--format",
    "to",
    type=click.Choice(get_args(ExportFormat)),
    default="markdown",
    show_default=True,
    help="What kind of document.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A new file; nothing is overwritten. Default: print it.",
)
def export(session_id: str, to: ExportFormat, output: Path | None) -> None:
    """Write a whole session as a document, to keep or to hand on."""
    fetched = run_operation(operation("fetch", {"session_id": session_id}))
    document = render(to, fetched["session"], fetched["messages"])
    if output is None:
        click.echo(document, nl=False)
    else:
        click.echo(write_new_file(output, document))
