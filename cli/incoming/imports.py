"""`ctxr import`: the histories that Claude.ai and ChatGPT keep of an account, from the export that they hand out."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.incoming.sync import show_reports
from cli.operations import run_operation
from cli.output import as_json_option
from orchestrator.export.reading_back import is_document, requests_of
from registry.settings import read_settings
from sources.base import Places
from sources.exports.reader import AccountExport, exports_in

if TYPE_CHECKING:
    from orchestrator.sync.store_report import StoreReport


@click.command("import")
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    help="The zip that the provider sent you, its folder, or its conversations.json.",
)
@as_json_option
def import_files(files: Sequence[Path], as_json: bool) -> None:
    """Bring in your Claude.ai or ChatGPT history, or what `ctxr export` wrote as JSON.

    FILE says itself which of them it is, and nothing in it is changed.
    Import a newer export whenever you like: only what is new is added, and what
    is missing in it stays in the registry. What could not be imported is named,
    and the exit status is 1 then.
    """
    with ExitStack() as stack:
        own = {file: document for file in files if (document := _own(file)) is not None}
        found = [(file, export) for file in files if file not in own for export in exports_in(file, stack)]
        read_back = [_read_back(file, document) for file, document in own.items()]
        reports = asyncio.run(_import(found, shows_progress=sys.stderr.isatty() and not as_json))
    show_reports([*read_back, *reports], as_json=as_json)
    if any(report.skipped_count for report in reports):
        sys.exit(1)


def _own(file: Path) -> dict[str, Any] | None:
    try:
        if not file.is_file():  # a pipe would be waited for
            return None
        with file.open("rb") as content:
            if not content.read(_LOOKED_AT).lstrip().startswith(b'{\n  "session":'):
                return None
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if is_document(document) else None


_LOOKED_AT = 100


def _read_back(file: Path, document: dict[str, Any]) -> StoreReport:
    from orchestrator.sync.store_report import StoreReport

    stored, *named = requests_of(document)
    outcome = run_operation(stored)
    for request in named:
        run_operation(request)
    return StoreReport(stored["source"], str(file), seen=1, parsed=1, new_messages=outcome["new_count"])


async def _import(found: Sequence[tuple[Path, AccountExport]], *, shows_progress: bool) -> list[StoreReport]:
    from orchestrator.opening import open_orchestrator
    from orchestrator.sync.sync import sync

    reports = []
    async with open_orchestrator(read_settings()) as orchestrator:
        for file, export in found:
            with _progress(export, shows_progress):
                [report] = await sync(orchestrator, [export], Places(Path.home(), {}))
            reports.append(replace(report, path=str(file)))
    return reports


@contextmanager
def _progress(export: AccountExport, is_shown: bool) -> Iterator[None]:
    """A bar of how much was read. When it is left early, by Ctrl-C, the thread that reads is told to stop."""
    with ExitStack() as stack:
        stack.callback(export.stop)
        if is_shown:
            bar = click.progressbar(length=export.size, label=export.name, file=sys.stderr)
            export.on_read = stack.enter_context(bar).update
        yield
