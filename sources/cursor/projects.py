"""Find the project of a Cursor conversation. Pure."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sources.kit.loose_json import mapping, objects, read_json, string, strings, value_at
from sources.kit.workspace_files import is_absolute, normalise_path, path_of

_HOME = re.compile(r"(?:[a-z]:)?/(?:home|users)/[^/]+$", re.IGNORECASE)


@dataclass(slots=True)
class WorkspaceProjects:
    """The project of each workspace in `workspaceStorage`, and of each composer that a workspace lists."""

    project_by_id: dict[str, str] = field(default_factory=dict)
    project_by_composer: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class ProjectHints:
    """Folders and files named in a conversation's bubbles, from which the project can be inferred."""

    open_folders: list[str] = field(default_factory=list)
    searched: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def add(self, bubble: Mapping[str, Any]) -> None:
        if not self.open_folders:
            self.open_folders = [path for uri in strings(bubble.get("workspaceUris")) if (path := path_of(uri))]
        if not self.searched:
            result = value_at(bubble, "toolFormerData", "result")
            if isinstance(result, str):
                result = read_json(result) if "workspaceResults" in result else None
            found = (value_at(result, "workspaceResults"), value_at(result, "success", "workspaceResults"))
            self.searched = [folder for folders in found for folder in mapping(folders) if is_absolute(folder)]
        self.files += [*_selected(bubble), *filter(is_absolute, strings(bubble.get("relevantFiles")))]


def project_of(
    composer_id: str,
    header: Mapping[str, Any],
    composer: Mapping[str, Any],
    workspaces: WorkspaceProjects,
    hints: ProjectHints,
) -> str | None:
    """Return the path of the project from the most reliable field that has one, or None."""
    tracked = (objects(given.get("trackedGitRepos"))[:1] for given in (composer, header))
    created = (path_of(file.get("uri")) for file in objects(composer.get("newlyCreatedFiles")))
    originals = mapping(composer.get("originalFileStates"))
    hits = (
        *(_by_workspace(given, workspaces) for given in (composer, header)),
        *(path_of(each.get("repoPath")) for repositories in tracked for each in repositories),
        workspaces.project_by_composer.get(composer_id),
        next(iter(hints.open_folders), None),
        common_folder([*hints.files, *created, *map(path_of, originals), *_selected(composer)]),
        next(iter(hints.searched), None),
    )
    return next(filter(None, hits), None)


def listed_project(composer_id: str, header: Mapping[str, Any], workspaces: WorkspaceProjects) -> str:
    """Return the project according to the lists, without reading the conversation."""
    return _by_workspace(header, workspaces) or workspaces.project_by_composer.get(composer_id, "")


def common_folder(files: Iterable[str]) -> str | None:
    """Return the common folder of absolute file paths; None if it is a home folder or above."""
    absolute = (normalise_path(file).replace("\\", "/") for file in files if is_absolute(file))
    try:
        folder = posixpath.commonpath([file.rpartition("/")[0] for file in absolute])
    except ValueError:  # no file, or a Windows path next to another one
        return None
    return None if folder.count("/") < 2 or _HOME.match(folder) else normalise_path(folder)


def _by_workspace(holder: Mapping[str, Any], workspaces: WorkspaceProjects) -> str:
    identifier = mapping(holder.get("workspaceIdentifier"))
    ids = (string(identifier.get("id")), string(holder.get("workspaceId")))
    known = next(filter(None, (workspaces.project_by_id.get(workspace_id) for workspace_id in ids)), "")
    named = path_of(identifier.get("uri"))
    return known or named.rpartition("/")[0] if named.endswith(".code-workspace") else named or known


def _selected(holder: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files that were attached to a bubble or a composer."""
    return (path_of(selected.get("uri")) for selected in objects(value_at(holder, "context", "fileSelections")))
