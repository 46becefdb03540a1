"""`ctxr sync`: the histories that the clients on this machine keep themselves; a bar while it runs, a line for each.

And `ctxr hook`, by which clients tell what is said; mostly it runs without the rest of the command line (`cli.entry`).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import click

from cli.output import as_json_option, counted, print_json, print_json_line
from cli.terminal import SERVED, NotHere
from orchestrator.sync.store_report import StoreReport, nothing_new
from sources.base import Places, Skipped, Source
from sources.readers import READERS

NAMES = [reader.name for reader in READERS]
NOTION = "notion"


@click.command()
@click.argument(
    "what",
    required=False,
    type=click.Choice([*NAMES, NOTION]),
    metavar="[CLIENT|notion]",
    help="Only this client's histories, or Notion's pages.",
)
@click.option(
    "--source",
    type=click.Choice(NAMES),
    metavar="CLIENT",
    help=f"Only this client's histories: {', '.join(NAMES)}.",
)
@click.option("--watch", is_flag=True, help="Go on: bring in what clients write, as they write it. Ctrl-C ends it.")
@as_json_option
def sync(what: str | None, source: str | None, watch: bool, as_json: bool) -> None:
    """Bring in the histories that clients on this machine keep.

    Only what is new or has changed is read, and nothing in a client's folder is
    changed. What a client has deleted meanwhile stays in the registry.

    `ctxr sync notion` brings in Notion's pages, through the MCP server that
    config.toml names in [notion]: of each page that was edited a snapshot.

    With --watch, --json prints one line for each sync that found something.
    """
    source, places = what or source, Places(Path.home(), os.environ)
    readers = [_notion()] if source == NOTION else [reader for reader in READERS if source in (None, reader.name)]
    if watch:
        if SERVED.get():
            raise NotHere
        _watch(readers, places, as_json=as_json)
        return
    reports = None if source == NOTION else nothing_new(readers, places)
    if reports is None:
        if SERVED.get():
            raise NotHere  # it may take a while, and is to be seen
        reports = _sync(readers, places)
    show_reports(reports, as_json=as_json)
    if not reports and not as_json:
        click.echo("No histories found on this machine. Known clients: " + ", ".join(NAMES))
    if not all(report.is_complete for report in reports):
        sys.exit(1)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("client", default="", metavar="CLIENT", help="The client's source.")
@click.argument("event", default="", metavar="EVENT", help="The client's own name of the event.")
def hook(client: str, event: str) -> None:
    """Note what a client's hook tells. Clients run this; `ctxr install` sees to it.

    The event is read on standard input and kept in a file until the registry takes
    it: at once if `ctxr serve` runs, else with the next command. Always ends with
    status 0, so that a chat is never held up.
    """
    from cli.incoming.hook import run_hook

    run_hook(client, event)


def _notion() -> Source:
    from registry.errors import InvalidRequest
    from registry.settings import read_settings

    server = read_settings().notion
    if server is None:
        raise InvalidRequest(
            "No Notion is configured.",
            'config.toml: [notion] with command = ["npx", "-y", "@notionhq/notion-mcp-server"] and'
            ' env = { NOTION_TOKEN = "$NOTION_TOKEN" }',
        )
    from orchestrator.outside.notion import Notion

    return Notion(server)


def show_reports(reports: Sequence[StoreReport], *, as_json: bool) -> None:
    """Print the outcome of each store, as text or as JSON."""
    if as_json:
        print_json({"stores": [report.as_dict() for report in reports]})
    else:
        _say(reports)


def _sync(readers: Sequence[Source], places: Places) -> list[StoreReport]:
    import asyncio

    async def run() -> list[StoreReport]:
        from orchestrator.opening import open_orchestrator
        from orchestrator.sync.sync import sync as bring_in
        from registry.settings import read_settings

        async with open_orchestrator(read_settings()) as orchestrator:
            return await bring_in(orchestrator, readers, places, bars)

    with Bars() as bars:
        return asyncio.run(run())


def _watch(readers: Sequence[Source], places: Places, *, as_json: bool) -> None:
    import asyncio

    from orchestrator.opening import open_orchestrator
    from orchestrator.sync.watch import watch
    from registry.log import set_up_logging
    from registry.settings import read_settings

    def told(reports: list[StoreReport]) -> None:
        bars.end()
        if as_json:
            print_json_line({"stores": [report.as_dict() for report in reports]})
        else:
            _say(reports)

    async def run() -> None:
        settings = read_settings()
        async with open_orchestrator(settings) as orchestrator:
            await watch(orchestrator, settings.home, readers, places, told, bars)

    set_up_logging(read_settings().log_format)
    if not as_json:
        click.echo("Watching what clients on this machine write. Ctrl-C ends it.", err=True)
    with Bars() as bars:
        asyncio.run(run())


def _say(reports: Sequence[StoreReport]) -> None:
    for report in reports:
        for line in lines_of(report):
            click.echo(line)


_PATIENCE_S = 0.5
"""What is over sooner needs no bar."""
_SHOWN_SKIPS = 5


class Bars:
    """Progress bars on stderr, one for each store; none if stderr is no terminal."""

    def __init__(self) -> None:
        self._report: StoreReport | None = None
        self._began = 0.0
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def __call__(self, report: StoreReport, expected: int) -> None:
        """Show how far a store is, of about so many new sessions; 0: nobody knows."""
        if report is not self._report:
            self.end()
            self._report, self._began = report, time.monotonic()
        if self._bar is None and sys.stderr.isatty() and time.monotonic() - self._began > _PATIENCE_S:
            self._bar = _bar(report, expected)
        if self._bar is not None:
            self._bar.update(report.parsed - self._bar.pos, report)

    def end(self) -> None:
        """Leave the last bar as it is, and give the cursor back."""
        if self._bar is not None:
            self._bar.render_finish()
        self._report = self._bar = None


def _bar(report: StoreReport, expected: int) -> Any:
    nobody_knows: Iterator[None] = (None for _ in ())
    return click.progressbar(
        None if expected else nobody_knows,
        length=expected or None,
        label=report.source,
        show_pos=True,
        item_show_func=lambda told: counted(told.new_messages, "message") if told else None,
        file=sys.stderr,
        width=24,
    )


def lines_of(report: StoreReport) -> Iterator[str]:
    """Return the lines about a store, with the first of the skipped items."""
    skipped = f", {report.skipped_count} passed over" if report.skipped_count else ""
    new = f"{counted(report.new_messages, 'new message')} in {counted(report.parsed, 'session')}"
    yield f"{report.source}: {new}{skipped} ({report.path})"
    yield from map(_passed_over, report.skipped[:_SHOWN_SKIPS])


class Damage:
    """Says of each store once for each reason what is passed over in it."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str]] = set()

    def lines_of(self, reports: Sequence[StoreReport]) -> Iterator[str]:
        """Return the lines that were not printed before."""
        for report in reports:
            for one in report.skipped:
                if (report.path, one.why) not in self._said:
                    self._said.add((report.path, one.why))
                    yield f"{report.source}: {_passed_over(one).strip()} ({report.path})"


def _passed_over(one: Skipped) -> str:
    where = f"{one.session}: " if one.session and one.session not in one.what else ""
    return f"  passed over: {where}{one.what}: {one.why}"
