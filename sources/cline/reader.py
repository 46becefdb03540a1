"""Cline: the sessions of its command line, and the tasks of its extension."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sources.base import FoundSession, Places, Skipped
from sources.cline.client import CLINE
from sources.cline.tasks import conversations
from sources.kit.workspace_files import user_folders

BUILDS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
"""The editors whose extensions are looked at."""
FOLDERS = ("tasks", "sessions")


def stores(places: Places, roots: Iterable[Path], extension: str) -> Iterator[Path]:
    """Those of the roots, and of the folders that editors give to an extension, that hold conversations."""
    given = (folder / "globalStorage" / extension for folder in user_folders(places, BUILDS))
    for store in dict.fromkeys((*roots, *given)):
        if any((store / name).is_dir() for name in FOLDERS):
            yield store


class Cline:
    """Reads `tasks/`, `sessions/` and the list of tasks. Keys lie beside them."""

    name = CLINE.source

    def find(self, places: Places) -> Iterator[Path]:
        """The folder that the command line and the extension share, and the extension's own in each editor."""
        named = places.environment.get("CTXR_CLINE_DIR")
        root = Path(named).expanduser() if named else places.folder("CLINE_DATA_DIR", ".cline", "data")
        yield from [root] if named else stores(places, [root], "saoudrizwan.claude-dev")

    def stamp(self, store: Path) -> str:
        """Each file's own state is as cheap to look at: there is no stamp of the whole."""
        return ""

    def watched(self, store: Path) -> Iterable[Path]:
        """Only the conversations; beside them lie logs and caches."""
        return [store / name for name in FOLDERS]

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """The changed conversations, newest first. Raises StorageError."""
        yield from conversations(store, seen)
