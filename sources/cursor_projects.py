"""Which project a Cursor conversation belongs to (formats/cursor-ide.md, 1 and 6). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import unquote, urlsplit

from sources.jsonl import mapping, string
from sources.loose_json import inside, objects, read_json, strings

_DRIVE = re.compile(r"/?([A-Za-z]):(?=[\\/]|$)")
_HOME = re.compile(r"(?:[a-z]:)?/(?:home|users)/[^/]+$", re.IGNORECASE)
_FIRST_FOLDER = re.compile(r'"folders"\s*:\s*\[.*?"(path|uri)"\s*:\s*("(?:[^"\\]|\\.)*")', re.DOTALL)


@dataclass(slots=True)
class Workspaces:
    """What the folder `workspaceStorage` knows: the project of each workspace, and which of them lists what."""

    project_by_id: dict[str, str] = field(default_factory=dict)
    project_by_composer: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Evidence:
    """What the bubbles of a conversation tell of its project, gathered as they pass."""

    open_folders: list[str] = field(default_factory=list)
    searched: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def add(self, bubble: Mapping[str, Any]) -> None:
        """What one more bubble tells."""
        if not self.open_folders:
            self.open_folders = [path for uri in strings(bubble.get("workspaceUris")) if (path := path_of(uri))]
        if not self.searched:
            self.searched = list(_searched_folders(bubble))
        self.files.extend(_attached_files(bubble))


def project_of(
    composer_id: str,
    header: Mapping[str, Any],
    composer: Mapping[str, Any],
    workspaces: Workspaces,
    evidence: Evidence,
) -> str | None:
    """The path of the project, or None: the first hit in the order of the document."""
    hits = (
        *(_by_workspace(given, workspaces) for given in (composer, header)),
        *(path_of(_deep_uri(given.get("agentLocation"))) for given in (composer, header)),
        *(_repository(given) for given in (composer, header)),
        workspaces.project_by_composer.get(composer_id),
        next(iter(evidence.open_folders), None),
        common_folder([*evidence.files, *_own_files(composer)]),
        next(iter(evidence.searched), None),
    )
    return next(filter(None, hits), None)


def listed_project(composer_id: str, header: Mapping[str, Any], workspaces: Workspaces) -> str:
    """The project that the lists alone tell, without a look into the conversation."""
    return _by_workspace(header, workspaces) or workspaces.project_by_composer.get(composer_id, "")


def path_of(uri: Any) -> str:
    """The path behind a URI, given as text or in VS Code's parts; a plain path is its own. Empty if there is none.

    A remote folder gives its path over there; Windows drives come as `c:\\src\\app`, as Cursor writes them.
    """
    if isinstance(uri, str):
        return _path_of_text(uri)
    parts = mapping(uri)
    is_local = string(parts.get("scheme")) in ("", "file")
    names = ("fsPath", "path") if is_local else ("path", "fsPath")
    written = next(filter(None, (string(parts.get(name)) for name in names)), "")
    return _native(written) or _path_of_text(string(parts.get("external")))


def workspace_folder(described: Mapping[str, Any]) -> tuple[str, str]:
    """From a `workspace.json`: the path of its folder, and the path of its `.code-workspace` file."""
    return path_of(described.get("folder")), path_of(described.get("workspace"))


def first_folder(code_workspace: str, path: str) -> str:
    """The first folder that a `.code-workspace` file (JSON with comments) names; else the folder it stands in."""
    home = PureWindowsPath(path) if "\\" in path else PurePosixPath(path)
    named = _FIRST_FOLDER.search(code_workspace)
    kind, value = (named[1], string(read_json(named[2]))) if named else ("", "")
    if kind == "uri":
        return path_of(value)
    relative = value.removeprefix("./") if value != "." else ""
    return str(home.parent / relative)


def common_folder(files: Iterable[str]) -> str | None:
    """The folder that several absolute file paths have in common; None if it is a home folder or above."""
    split = [_native(file).replace("\\", "/").split("/")[:-1] for file in files if _is_absolute(file)]
    if not split:
        return None
    shared = []
    for parts in zip(*split, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    folder = "/".join(shared)
    return None if len(shared) < 3 or _HOME.match(folder) else _native(folder)


def _path_of_text(uri: str) -> str:
    if "://" not in uri:
        return _native(uri) if _is_absolute(uri) else ""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    path = unquote(parts.path)
    is_share = parts.scheme == "file" and parts.netloc not in ("", "localhost")
    return f"\\\\{unquote(parts.netloc)}{path}".replace("/", "\\") if is_share else _native(path)


def _native(path: str) -> str:
    """Without a slash at the end; Windows paths as Cursor writes them: small drive letter, backslashes."""
    if drive := _DRIVE.match(path):
        path = f"{drive[1].lower()}:{path[drive.end() :]}".replace("/", "\\")
    return path.rstrip("/\\") if len(path.strip("/\\")) > 2 else path


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "\\\\")) or bool(_DRIVE.match(path))


def _by_workspace(holder: Mapping[str, Any], workspaces: Workspaces) -> str:
    identifier = mapping(holder.get("workspaceIdentifier"))
    ids = (string(identifier.get("id")), string(holder.get("workspaceId")))
    known = next(filter(None, (workspaces.project_by_id.get(workspace_id) for workspace_id in ids)), "")
    own = path_of(identifier.get("uri"))
    return known or own.rpartition("/")[0] if own.endswith(".code-workspace") else own or known


def _deep_uri(location: Any) -> Any:
    """The first `uri` at any depth of a small object whose shape is not settled."""
    waiting = [location]
    while waiting:
        found = mapping(waiting.pop(0))
        if found.get("uri"):
            return found["uri"]
        waiting.extend(found.values())
    return None


def _repository(holder: Mapping[str, Any]) -> str:
    paths = (path_of(repository.get("repoPath")) for repository in objects(holder.get("trackedGitRepos"))[:1])
    return next(paths, "")


def _searched_folders(bubble: Mapping[str, Any]) -> Iterator[str]:
    result = inside(bubble, "toolFormerData", "result")
    if isinstance(result, str):
        result = read_json(result) if "workspaceResults" in result else None
    for holder in (mapping(result), mapping(inside(result, "success"))):
        yield from filter(_is_absolute, mapping(holder.get("workspaceResults")))


def _attached_files(bubble: Mapping[str, Any]) -> Iterator[str]:
    for selected in objects(inside(bubble, "context", "fileSelections")):
        yield path_of(selected.get("uri"))
    yield from filter(_is_absolute, strings(bubble.get("relevantFiles")))


def _own_files(composer: Mapping[str, Any]) -> Iterator[str]:
    for created in objects(composer.get("newlyCreatedFiles")):
        yield path_of(created.get("uri"))
    yield from map(path_of, mapping(composer.get("originalFileStates")))
    for selected in objects(inside(composer, "context", "fileSelections")):
        yield path_of(selected.get("uri"))
