"""Find the `User` folders of VS Code and editors derived from it, and the projects of their workspaces."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import unquote, urlsplit

from sources.base import Paths
from sources.kit.files import read_small_text
from sources.kit.loose_json import mapping, read_json, string

_DRIVE = re.compile(r"/?([A-Za-z]):(?=[\\/]|$)")
_FIRST_FOLDER = re.compile(r'"folders"\s*:\s*\[.*?"(path|uri)"\s*:\s*("(?:[^"\\]|\\.)*")', re.DOTALL)


def user_folders(paths: Paths, builds: Iterable[str]) -> Iterator[Path]:
    """Yield the possible paths of each build's `User` folder, on every operating system."""
    roots = (
        paths.folder("XDG_CONFIG_HOME", ".config"),
        paths.home / ".config",
        paths.home / "Library" / "Application Support",
        paths.folder("APPDATA", "AppData", "Roaming"),
    )
    yield from (root / build / "User" for root in roots for build in builds)


def project_of_workspace(folder: Path) -> str:
    """Return the first folder of a workspace; empty if it is unknown."""
    described = mapping(read_json(read_small_text(folder / "workspace.json")))
    if code_workspace := path_of(described.get("workspace")):
        return first_folder(read_small_text(code_workspace), code_workspace)
    return path_of(described.get("folder"))


def path_of(uri: Any) -> str:
    """Return the path of a URI, given as text, as VS Code's parts, or as a plain path; empty if there is none.

    The path of a remote folder is that on the remote machine. Windows paths have Cursor's form: `c:\\src\\app`.
    """
    if isinstance(uri, str):
        return _path_of_text(uri)
    parts = mapping(uri)
    is_local = string(parts.get("scheme")) in ("", "file")
    names = ("fsPath", "path") if is_local else ("path", "fsPath")
    written = next(filter(None, (string(parts.get(name)) for name in names)), "")
    return normalise_path(written) or _path_of_text(string(parts.get("external")))


def first_folder(code_workspace: str, path: str) -> str:
    """Return the first folder in a `.code-workspace` file (JSON with comments), else the folder of the file."""
    home = PureWindowsPath(path) if "\\" in path else PurePosixPath(path)
    named = _FIRST_FOLDER.search(code_workspace)
    kind, value = (named[1], string(read_json(named[2]))) if named else ("", "")
    if kind == "uri":
        return path_of(value)
    relative = value.removeprefix("./") if value != "." else ""
    return str(home.parent / relative)


def _path_of_text(uri: str) -> str:
    if "://" not in uri:
        return normalise_path(uri) if is_absolute(uri) else ""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    path = unquote(parts.path)
    is_share = parts.scheme == "file" and parts.netloc not in ("", "localhost")
    return f"\\\\{unquote(parts.netloc)}{path}".replace("/", "\\") if is_share else normalise_path(path)


def normalise_path(path: str) -> str:
    """Remove a trailing slash; give a Windows path a lower-case drive letter and backslashes."""
    if drive := _DRIVE.match(path):
        path = f"{drive[1].lower()}:{path[drive.end() :]}".replace("/", "\\")
    return path.rstrip("/\\") if len(path.strip("/\\")) > 2 else path


def is_absolute(path: str) -> bool:
    """Return True for an absolute path of any operating system."""
    return path.startswith(("/", "\\\\")) or bool(_DRIVE.match(path))
