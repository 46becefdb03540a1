"""`ctxr import`: import account exports of Claude.ai, ChatGPT and Gemini, and `ctxr export`'s own JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.incoming.sync import show_reports
from cli.operations import this_client, with_orchestrator
from cli.output import as_json_option
from orchestrator.export.texts import is_document, requests_of
from orchestrator.requests.refusals import succeeded
from orchestrator.sync.store_report import StoreReport
from registry.errors import RegistryError
from sources.base import Paths, Skipped
from sources.exports.reader import EMPTY, ZIP_ERRORS, AccountExport, ExportFile, exports_in, parts_of, reason_of_failure

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator

MAX_DOCUMENT_BYTES = 256 * 2**20  # unpacked; parsing takes a multiple of it in memory


@click.command("import")
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    help="The provider's zip, its unpacked folder, or its conversations.json.",
)
@as_json_option
def import_files(files: Sequence[Path], as_json: bool) -> None:
    """Import your Claude.ai, ChatGPT or Gemini history, or `ctxr export`'s JSON.

    The kind of each FILE is recognised, and the file is not changed. A newer
    export may be imported at any time: only new messages are added, and nothing is
    removed. If something could not be imported, it is listed, and the exit status
    is 1.
    """
    with ExitStack() as stack:
        documents = {file: parts for file in files if (parts := _documents_in(file, stack))}
        exports = [(file, export) for file in files if file not in documents for export in exports_in(file, stack)]
        shows_progress = sys.stderr.isatty() and not as_json
        reports = with_orchestrator(lambda one: _import(one, documents, exports, shows_progress=shows_progress))
    show_reports(reports, as_json=as_json)
    if any(one.why != EMPTY for report in reports for one in report.skipped):
        sys.exit(1)


def _documents_in(file: Path, stack: ExitStack) -> list[ExportFile]:
    """Return the documents of `ctxr export` in a file: the file itself, or those in a zip."""
    found = list[ExportFile]()
    for part in parts_of(file, stack) if file.is_file() else ():  # reading a pipe would block
        with suppress(*ZIP_ERRORS):
            if isinstance(part, ExportFile):
                with part.open() as content:
                    if content.read(100).lstrip().startswith(b'{\n  "session":'):
                        found.append(part)
    return found


async def _import_parts(orchestrator: Orchestrator, file: Path, parts: Sequence[ExportFile]) -> list[StoreReport]:
    """Import the documents one by one, and return a report for each source."""
    reports: dict[str, StoreReport] = {}
    for part in parts:
        try:
            if part.size > MAX_DOCUMENT_BYTES:
                raise ValueError(f"larger than {MAX_DOCUMENT_BYTES // 2**20} MB")
            with part.open() as content:
                document = json.load(content)
            source, why = (document["session"]["source"], "") if is_document(document) else ("ctxr", "no such document")
        except ZIP_ERRORS as exc:
            source, why = "ctxr", reason_of_failure(exc)
        report = reports.setdefault(source, StoreReport(source, str(file)))
        if why:
            report.skip([Skipped(part.name, why)])
            continue
        try:
            outcome: dict[str, Any] = {}
            for request in requests_of(document):
                to = {"channel": outcome.get("channel", request["channel"])}
                outcome = succeeded(await orchestrator.run({**request, **to}, this_client(), door="cli"))
                report.new_messages += outcome.get("new_count", 0)
        except RegistryError as exc:  # the other documents are still imported
            report.skip([Skipped(part.name, f"{exc.message} {exc.details}")])
            continue
        report.seen += 1
        report.parsed += 1
    return list(reports.values())


async def _import(
    orchestrator: Orchestrator,
    documents: Mapping[Path, Sequence[ExportFile]],
    found: Sequence[tuple[Path, AccountExport]],
    *,
    shows_progress: bool,
) -> list[StoreReport]:
    from orchestrator.sync.sync import sync

    reports = [one for file, parts in documents.items() for one in await _import_parts(orchestrator, file, parts)]
    for file, export in found:
        with ExitStack() as stack:
            stack.callback(export.stop)  # ends the reading thread at Ctrl-C
            if shows_progress:
                bar = click.progressbar(length=export.size, label=export.name, file=sys.stderr)
                export.on_read = stack.enter_context(bar).update
            [report] = await sync(orchestrator, [export], Paths(Path.home(), {}))
        reports.append(replace(report, path=str(file)))
    return reports
