"""Is there anything to sync? Answered in a moment, without the graph and the database layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from orchestrator.sync.spool import registry_home, waiting
from orchestrator.sync.store_report import StoreReport
from registry.errors import RegistryError
from registry.storage.quick_look import QuickLook, embedded_file
from sources.base import FoundSession, Places, Skipped, Source


def nothing_new(readers: Sequence[Source], places: Places) -> list[StoreReport] | None:
    """The reports of a sync that would change nothing; None where it might, or only a sync can tell."""
    home = registry_home()
    try:
        file = embedded_file(Path(home), places.environment)
        if file is None or waiting(home):
            return None
        with QuickLook(file) as registry:
            reports = []
            for reader in readers:
                for store in reader.find(places):
                    report = _unchanged(registry, reader, store)
                    if report is None:
                        return None
                    reports.append(report)
            return reports
    except (OSError, ValueError, RegistryError):
        return None


def _unchanged(registry: QuickLook, reader: Source, store: Path) -> StoreReport | None:
    """What `orchestrator.sync.sync` would report without storing anything, or None."""
    report = StoreReport(reader.name, str(store))
    left = registry.store(report.source, report.path)
    if left is None:
        return None
    stamp = reader.stamp(store)
    seen = registry.seen_sessions(report.source, report.path)
    report.seen = len(seen)
    if stamp and stamp == left.stamp:
        report.skip(Skipped(**one) for one in left.skipped)
        return report
    if stamp != left.stamp or not _passes_over_all(reader, store, seen, report):
        return None
    report.keep(left.skipped, ())
    return report if report.is_as_left(left.skipped) else None


def _passes_over_all(reader: Source, store: Path, seen: Mapping[str, str], report: StoreReport) -> bool:
    with closing(reader.sessions(store, seen)) as findings:  # type: ignore[type-var]
        for finding in findings:
            if isinstance(finding, FoundSession):
                return False
            report.skip([finding])
    return True
