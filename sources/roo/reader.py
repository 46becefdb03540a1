"""Roo Code: the tasks of its extension, which it keeps as Cline does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sources.base import FoundSession, Places, Skipped
from sources.cline.reader import stores
from sources.cline.tasks import conversations
from sources.roo.client import ROO_CODE


class RooCode:
    """Reads `tasks/` of the extension's folder. Settings lie beside it."""

    name = ROO_CODE.source

    def find(self, places: Places) -> Iterator[Path]:
        """The extension's folder in each editor, if it holds tasks."""
        named = places.environment.get("CTXR_ROO_CODE_DIR")
        yield from [Path(named).expanduser()] if named else stores(places, (), "rooveterinaryinc.roo-cline")

    def stamp(self, store: Path) -> str:
        """Each file's own state is as cheap to look at: there is no stamp of the whole."""
        return ""

    def watched(self, store: Path) -> Iterable[Path]:
        """Only the tasks."""
        return [store / "tasks"]

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """The changed tasks, newest first. Raises StorageError."""
        yield from conversations(store, seen)
