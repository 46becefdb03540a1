"""`ctxr sync`: import the histories that clients on this machine keep. And `ctxr hook`, which clients run."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import click

from cli.output import as_json_option, counted, print_json, progress, show
from cli.terminal import SERVED, NotHere
from orchestrator.sync.store_report import StoreReport, nothing_new
from sources.base import EMPTY, Paths, Skipped, Source
from sources.readers import READERS

NAMES = list(dict.fromkeys(reader.name for reader in READERS))


@click.command()
@click.option(
    "--source",
    type=click.Choice([*NAMES, "notion"]),
    metavar="CLIENT",
    help=f"Only this client's histories: {', '.join(NAMES)}; or notion.",
)
@click.option("--watch", is_flag=True, help="Keep importing what clients write. Ctrl-C ends it.")
@as_json_option
def sync(source: str | None, watch: bool, as_json: bool) -> None:
    """Import the histories that clients on this machine keep.

    Reads only what is new or has changed, and changes nothing in a client's
    folder. What a client deletes stays in the registry.

    `--source notion` imports Notion's pages through the MCP server of [notion] in
    config.toml: a snapshot of each page that was edited.

    With --watch, --json prints one line for each sync that found something.
    """
    paths = Paths(Path.home(), os.environ)
    readers = [_notion()] if source == "notion" else [reader for reader in READERS if source in (None, reader.name)]
    reports = None if watch or source == "notion" else nothing_new(readers, paths)
    if reports is None and SERVED.get():
        raise NotHere  # it may take long, and shows a progress bar
    if watch:
        _watch(readers, paths, as_json=as_json)
        return
    show_reports(_sync(readers, paths) if reports is None else reports, as_json=as_json)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("client", default="", metavar="CLIENT", help="The client's source.")
@click.argument("event", default="", metavar="EVENT", help="The client's own name of the event.")
def hook(client: str, event: str) -> None:
    """Record a hook's event. Clients run this; `ctxr install` sets it up.

    The event is read from standard input and kept in a file until it is stored: at
    once if `ctxr serve` runs, else with the next command. The exit status is always
    0, so that an error never stops a chat.
    """
    from cli.incoming.hook import run_hook

    run_hook(client, event)


def _notion() -> Source:
    from orchestrator.outside.notion import Notion
    from registry.errors import InvalidRequest
    from registry.settings import read_settings

    server = read_settings().notion
    if server is None:
        raise InvalidRequest(
            "Notion is not configured.",
            'config.toml: [notion] with command = ["npx", "-y", "@notionhq/notion-mcp-server"] and'
            ' env = { NOTION_TOKEN = "$NOTION_TOKEN" }',
        )
    return Notion(server)


def show_reports(reports: Sequence[StoreReport], *, as_json: bool) -> None:
    """Print the outcome of each store, and exit with 1 if one could not be read."""
    show({"stores": [report.as_dict() for report in reports]}, as_json, lambda _: report_lines(reports))
    if not all(report.is_complete for report in reports):
        sys.exit(1)


def _sync(readers: Sequence[Source], paths: Paths) -> list[StoreReport]:
    from cli.operations import with_orchestrator
    from orchestrator.sync.sync import sync as import_stores

    with Bars() as bars:
        reports: list[StoreReport] = with_orchestrator(lambda one: import_stores(one, readers, paths, bars))
        return reports


def _watch(readers: Sequence[Source], paths: Paths, *, as_json: bool) -> None:
    from cli.operations import with_orchestrator
    from orchestrator.sync.watch import watch
    from registry.log import set_up_logging
    from registry.settings import read_settings

    def report(reports: list[StoreReport]) -> None:
        bars.close()
        if as_json:
            print_json({"stores": [report.as_dict() for report in reports]}, indent=None)
        else:
            for line in report_lines(reports):
                click.echo(line)

    settings = read_settings()
    set_up_logging(settings.log_format)
    if not as_json:
        click.echo("Watching what clients on this machine write. Ctrl-C ends it.", err=True)
    with Bars() as bars:
        with_orchestrator(lambda one: watch(one, settings.home, readers, paths, report, bars))


class Bars(ExitStack):
    """Progress bars on stderr, one line for all stores; none if stderr is no terminal."""

    _report: StoreReport | None = None
    _update: Callable[[int, int], None]

    def __call__(self, report: StoreReport, expected: int) -> None:
        """Show how many of the `expected` sessions of a store were parsed."""
        if not sys.stderr.isatty():
            return
        if report is not self._report:
            self.close()
            self.callback(click.echo, "\033[A\033[2K", nl=False, err=True)  # the next bar reuses this line
            self._report, self._update = report, self.enter_context(progress(report.source))
        self._update(report.parsed, expected)


def report_lines(reports: Sequence[StoreReport]) -> Iterator[str]:
    for report in reports:
        skipped = f", {report.skipped_count} skipped" if report.skipped_count else ""
        yield f"{report.source}: {_count_line([report])}{skipped} ({report.path})"
        yield from (f"  {_skipped_line(one)}" for one in report.skipped[:5])
        if (more := report.skipped_count - 5) > 0:
            yield f"  and {more:,} more: add --json to list them"
    if len(reports) > 1:
        yield f"in all: {_count_line(reports)}"
    if not reports:
        yield f"No histories found on this machine. Known clients: {', '.join(NAMES)}"


def summary(reports: Sequence[StoreReport]) -> str:
    from cli.connect.snippets import command_name

    skipped = sum(report.skipped_count for report in reports)
    more = f", {skipped:,} skipped" if skipped else ""
    clients = counted(len({report.source for report in reports}), "client")
    return f"{_count_line(reports)}{more}, from {clients}. `{command_name()} sync` lists them"


def _count_line(reports: Sequence[StoreReport]) -> str:
    """Format the counts of a sync. A session that two stores hold is counted twice."""
    messages, sessions = (sum(getattr(report, name) for report in reports) for name in ("new_messages", "parsed"))
    return f"{counted(sessions, 'session')} read, {counted(messages, 'new message')}"


def skip_lines(reports: Sequence[StoreReport], reported: set[tuple[str, str]]) -> Iterator[str]:
    """Return what was skipped in a store, once for each reason, except chats that have no message yet."""
    for report in reports:
        for one in report.skipped:
            if one.why != EMPTY and (report.path, one.why) not in reported:
                reported.add((report.path, one.why))
                yield f"{report.source}: {_skipped_line(one)} ({report.path})"


def _skipped_line(one: Skipped) -> str:
    where = f"{one.session}: " if one.session and one.session not in one.what else ""
    return f"skipped: {where}{one.what}: {one.why}"
