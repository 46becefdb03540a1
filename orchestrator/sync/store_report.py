"""Report the sync of a store; check without the database layer whether there is anything to sync."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from orchestrator.sync.spool import registry_home, waiting
from registry.domain import storable
from registry.errors import RegistryError
from registry.storage.file_probe import RegistryFile, embedded_file, open_registry_file
from sources.base import FoundSession, Paths, Skipped, Source


@dataclass(slots=True)
class StoreReport:
    """The outcome of one store's sync."""

    source: str
    path: str
    seen: int = 0
    parsed: int = 0
    new_messages: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    skipped_count: int = 0
    is_complete: bool = True  # False if the whole store must be read again next time
    has_news: bool = False  # the store has changed since the last sync

    @classmethod
    def of(cls, reader: Source, store: Path) -> Self:
        """Return an empty report. A path that is not UTF-8 cannot be stored as it is."""
        return cls(reader.name, storable(str(store)))

    def skip(self, skipped: Iterable[Skipped]) -> None:
        for one in skipped:
            self.skipped_count += 1
            if len(self.skipped) < 200:  # all are counted, 200 are listed
                self.skipped.append(Skipped(*map(storable, (one.what, one.why, one.session))))

    def keep(self, last_skipped: Iterable[Mapping[str, str]], read_again: Collection[str]) -> None:
        """Add what the last sync skipped in sessions that were not read again."""
        skipped = (Skipped(**one) for one in last_skipped)
        self.skip(one for one in skipped if one.session and one.session not in read_again)

    def has_same_skipped(self, last_skipped: Iterable[Mapping[str, str]]) -> bool:
        """Return True if the same items were skipped as at the last sync, in any order."""
        return {_identity(asdict(one)) for one in self.skipped} == {_identity(one) for one in last_skipped}

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def nothing_new(readers: Sequence[Source], paths: Paths) -> list[StoreReport] | None:
    """Return the reports of a sync without changes; None if a sync might change something."""
    home = registry_home()
    try:
        file = embedded_file(Path(home), paths.environment)
        if file is None or waiting(home):
            return None
        with open_registry_file(file) as registry:
            reports = []
            for reader in readers:
                for store in reader.find(paths):
                    report = _report_if_unchanged(registry, reader, store)
                    if report is None:
                        return None
                    reports.append(report)
            return reports
    except (OSError, ValueError, RegistryError):
        return None


def _report_if_unchanged(registry: RegistryFile, reader: Source, store: Path) -> StoreReport | None:
    report = StoreReport.of(reader, store)
    last_sync = registry.store(report.source, report.path)
    if last_sync is None:
        return None
    last_stamp, last_skipped = last_sync
    stamp = reader.stamp(store)
    seen = registry.seen_sessions(report.source, report.path)
    report.seen = len(seen)
    if stamp and stamp == last_stamp:
        report.skip(Skipped(**one) for one in last_skipped)
        return report
    if stamp != last_stamp or not _skips_all(reader, store, seen, report):
        return None
    report.keep(last_skipped, ())
    return report if report.has_same_skipped(last_skipped) else None


def _skips_all(reader: Source, store: Path, seen: Mapping[str, str], report: StoreReport) -> bool:
    with closing(reader.sessions(store, seen)) as findings:  # type: ignore[type-var]
        for finding in findings:
            if isinstance(finding, FoundSession):
                return False
            report.skip([finding])
    return True


def _identity(one: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(one.items())
