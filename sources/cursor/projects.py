"""Find the project of a Cursor conversation. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sources.kit.loose_json import mapping, objects, read_json, string, strings, value_at
from sources.kit.workspace_files import is_absolute, native, path_of

_HOME = re.compile(r"(?:[a-z]:)?/(?:home|users)/[^/]+$", re.IGNORECASE)


@dataclass(slots=True)
class WorkspaceProjects:
    """The project of each workspace in `workspaceStorage`, and of each composer that a workspace lists."""

    project_by_id: dict[str, str] = field(default_factory=dict)
    project_by_composer: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class ProjectHints:
    """Hints at the project, collected from the bubbles of a conversation."""

    open_folders: list[str] = field(default_factory=list)
    searched: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def add(self, bubble: Mapping[str, Any]) -> None:
        if not self.open_folders:
            self.open_folders = [path for uri in strings(bubble.get("workspaceUris")) if (path := path_of(uri))]
        if not self.searched:
            self.searched = list(_searched_folders(bubble))
        self.files.extend(_attached_files(bubble))


def project_of(
    composer_id: str,
    header: Mapping[str, Any],
    composer: Mapping[str, Any],
    workspaces: WorkspaceProjects,
    hints: ProjectHints,
) -> str | None:
    """Return the path of the project, or None: the most reliable field first."""
    hits = (
        *(_by_workspace(given, workspaces) for given in (composer, header)),
        *(path_of(_deep_uri(given.get("agentLocation"))) for given in (composer, header)),
        *(_repository(given) for given in (composer, header)),
        workspaces.project_by_composer.get(composer_id),
        next(iter(hints.open_folders), None),
        common_folder([*hints.files, *_own_files(composer)]),
        next(iter(hints.searched), None),
    )
    return next(filter(None, hits), None)


def listed_project(composer_id: str, header: Mapping[str, Any], workspaces: WorkspaceProjects) -> str:
    """Return the project by the lists alone, without reading the conversation."""
    return _by_workspace(header, workspaces) or workspaces.project_by_composer.get(composer_id, "")


def common_folder(files: Iterable[str]) -> str | None:
    """Return the common folder of absolute file paths; None if it is a home folder or above."""
    split = [native(file).replace("\\", "/").split("/")[:-1] for file in files if is_absolute(file)]
    if not split:
        return None
    shared = []
    for parts in zip(*split, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    folder = "/".join(shared)
    return None if len(shared) < 3 or _HOME.match(folder) else native(folder)


def _by_workspace(holder: Mapping[str, Any], workspaces: WorkspaceProjects) -> str:
    identifier = mapping(holder.get("workspaceIdentifier"))
    ids = (string(identifier.get("id")), string(holder.get("workspaceId")))
    known = next(filter(None, (workspaces.project_by_id.get(workspace_id) for workspace_id in ids)), "")
    own = path_of(identifier.get("uri"))
    return known or own.rpartition("/")[0] if own.endswith(".code-workspace") else own or known


def _deep_uri(location: Any) -> Any:
    """Return the first `uri` at any depth: the shape of this object differs between versions."""
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
    result = value_at(bubble, "toolFormerData", "result")
    if isinstance(result, str):
        result = read_json(result) if "workspaceResults" in result else None
    for holder in (mapping(result), mapping(value_at(result, "success"))):
        yield from filter(is_absolute, mapping(holder.get("workspaceResults")))


def _attached_files(bubble: Mapping[str, Any]) -> Iterator[str]:
    for selected in objects(value_at(bubble, "context", "fileSelections")):
        yield path_of(selected.get("uri"))
    yield from filter(is_absolute, strings(bubble.get("relevantFiles")))


def _own_files(composer: Mapping[str, Any]) -> Iterator[str]:
    for created in objects(composer.get("newlyCreatedFiles")):
        yield path_of(created.get("uri"))
    yield from map(path_of, mapping(composer.get("originalFileStates")))
    for selected in objects(value_at(composer, "context", "fileSelections")):
        yield path_of(selected.get("uri"))
