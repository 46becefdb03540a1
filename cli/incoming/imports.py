"""`ctxr import`: import account exports of Claude.ai, ChatGPT and Gemini, and `ctxr export`'s own JSON."""

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from cli.incoming.sync import show_reports
from cli.operations import run_request
from cli.output import as_json_option
from orchestrator.export.texts import is_document, requests_of
from orchestrator.sync.store_report import StoreReport
from registry.settings import read_settings
from sources.base import Places
from sources.exports.reader import AccountExport, exports_in


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
    export may be imported at any time: only what is new is added, and what is
    missing in it stays in the registry. What could not be imported is named, and
    the exit status is 1 then.
    """
    with ExitStack() as stack:
        own = {file: document for file in files if (document := _own_document(file)) is not None}
        found = [(file, export) for file in files if file not in own for export in exports_in(file, stack)]
        reports = [_import_own(file, document) for file, document in own.items()]
        reports += asyncio.run(_import(found, shows_progress=sys.stderr.isatty() and not as_json))
    show_reports(reports, as_json=as_json)
    if any(report.skipped_count for report in reports):
        sys.exit(1)


def _own_document(file: Path) -> dict[str, Any] | None:
    try:
        if not file.is_file():  # a pipe would be waited for
            return None
        with file.open("rb") as content:
            if not content.read(100).lstrip().startswith(b'{\n  "session":'):
                return None
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if is_document(document) else None


def _import_own(file: Path, document: dict[str, Any]) -> StoreReport:
    stored, *named = requests_of(document)
    outcome = run_request(stored)
    for request in named:
        run_request(request)
    return StoreReport(stored["source"], str(file), seen=1, parsed=1, new_messages=outcome["new_count"])


async def _import(found: Sequence[tuple[Path, AccountExport]], *, shows_progress: bool) -> list[StoreReport]:
    from orchestrator.opening import open_orchestrator
    from orchestrator.sync.sync import sync

    reports = []
    async with open_orchestrator(read_settings()) as orchestrator:
        for file, export in found:
            with ExitStack() as stack:
                stack.callback(export.stop)  # at Ctrl-C, the thread that reads
                if shows_progress:
                    bar = click.progressbar(length=export.size, label=export.name, file=sys.stderr)
                    export.on_read = stack.enter_context(bar).update
                [report] = await sync(orchestrator, [export], Places(Path.home(), {}))
            reports.append(replace(report, path=str(file)))
    return reports
