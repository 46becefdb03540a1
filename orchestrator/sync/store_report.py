"""How the sync of one store went. Apart from `sync`, because a look that finds nothing new needs nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sources.base import Skipped

KEPT_SKIPS = 200
"""Of the things passed over in one store so many are kept with their reasons; all are counted."""


@dataclass(slots=True)
class StoreReport:
    """How the sync of one store went."""

    source: str
    path: str
    seen: int = 0
    parsed: int = 0
    new_messages: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    skipped_count: int = 0
    is_complete: bool = True
    """Otherwise all of it is looked at again next time."""
    has_news: bool = False
    """Otherwise all is as the last sync left it."""

    def skip(self, some: Iterable[Skipped]) -> None:
        """Note what was passed over."""
        for one in some:
            self.skipped_count += 1
            if len(self.skipped) < KEPT_SKIPS:
                self.skipped.append(one)

    def keep(self, left: Iterable[Mapping[str, str]], read_again: Collection[str]) -> None:
        """What earlier syncs passed over in sessions that were not read again stands as it did."""
        kept = (Skipped(**one) for one in left)
        self.skip(one for one in kept if one.session and one.session not in read_again)

    def is_as_left(self, left: Iterable[Mapping[str, str]]) -> bool:
        """Whether just that was passed over which was at the last sync, in any order."""
        return {_identity(asdict(one)) for one in self.skipped} == {_identity(one) for one in left}

    def as_dict(self) -> dict[str, Any]:
        """As `ctxr sync --json` shows it."""
        return asdict(self)


def _identity(one: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(one.items())
