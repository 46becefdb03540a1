"""The folders `User` of VS Code and its kin, and what lies in their `workspaceStorage`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from sources.base import Places
from sources.kit.files import small_text
from sources.kit.jsonl import mapping
from sources.kit.loose_json import read_json
from sources.kit.uris import first_folder, workspace_folder


def user_folders(places: Places, builds: Iterable[str]) -> Iterator[Path]:
    """Where each build would have its `User` folder, in the usual places of every system."""
    roots = (
        places.folder("XDG_CONFIG_HOME", ".config"),
        places.home / ".config",
        places.home / "Library" / "Application Support",
        places.folder("APPDATA", "AppData", "Roaming"),
    )
    yield from (root / build / "User" for root in roots for build in builds)


def project_of_workspace(folder: Path) -> str:
    """The folder that was opened; of a workspace with several, the first. Nothing if it is not noted."""
    opened, code_workspace = workspace_folder(mapping(read_json(small_text(folder / "workspace.json"))))
    return first_folder(small_text(code_workspace), code_workspace) if code_workspace else opened
