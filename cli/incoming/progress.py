"""What a sync shows in a terminal: a bar while it runs, a line when a store is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

import click

from orchestrator.sync.store_report import StoreReport
from sources.base import Skipped

_PATIENCE_S = 0.5
"""What is over sooner needs no bar."""
_SHOWN_SKIPS = 5


class Bars:
    """One bar for each store, on stderr if that is a terminal, else none. A `Progress` of the sync."""

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
        item_show_func=lambda told: f"{told.new_messages} messages" if told else None,
        file=sys.stderr,
        width=24,
    )


def lines_of(report: StoreReport) -> Iterator[str]:
    """How a store went, and the first of what was passed over in it."""
    skipped = f", {report.skipped_count} passed over" if report.skipped_count else ""
    yield f"{report.source}: {report.new_messages} new messages in {report.parsed} sessions{skipped} ({report.path})"
    yield from map(_passed_over, report.skipped[:_SHOWN_SKIPS])


class Damage:
    """Says of each store once for each reason what is passed over in it."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str]] = set()

    def lines_of(self, reports: Sequence[StoreReport]) -> Iterator[str]:
        """What was not said before."""
        for report in reports:
            for one in report.skipped:
                if (report.path, one.why) not in self._said:
                    self._said.add((report.path, one.why))
                    yield f"{report.source}: {_passed_over(one).strip()} ({report.path})"


def _passed_over(one: Skipped) -> str:
    return f"  passed over: {one.what}: {one.why}"
