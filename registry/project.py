"""Projects: the repository, or else the folder, that a conversation is about. Git's files are read, no git is run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path, PurePosixPath, PureWindowsPath

_GITDIR = re.compile(r"gitdir:\s*(.+)")


@dataclass(frozen=True, slots=True)
class Project:
    """The repository that a channel belongs to, or the workspace folder if that lies in none."""

    path: str
    name: str

    @classmethod
    @lru_cache(1024)
    def from_path(cls, given: str) -> Project:
        """Return the project of a folder, or of a bare name; `name` is the last part of the path.

        Subfolders and worktrees of a repository on this machine belong to its main folder. Paths may be of any system.
        """
        flavour = PureWindowsPath if "\\" in given else PurePosixPath
        path = flavour(repository_folder(given) or given)
        return cls(path=str(path), name=path.name or str(path))


def repository_folder(folder: str) -> str | None:
    """Return the main folder of a folder's repository; None if it lies in none, or is not on this machine.

    A worktree belongs to the folder it was made from; a submodule is a repository of its own. A repository in the home
    folder itself, as people keep for their settings, does not make one project of everything.
    """
    start = Path(folder)
    if not start.is_absolute():
        return None
    try:
        tops = (each for each in (start, *start.parents) if (each / ".git").exists())
        top = next((each for each in tops if each != Path.home()), None)
        return str(_main_folder(top)) if top else None
    except OSError:  # a folder that may not be read
        return None


def _main_folder(top: Path) -> Path:
    """Follow the `.git` file of a worktree to the folder that holds the repository."""
    link = top / ".git"
    found = _GITDIR.match(link.read_text(encoding="utf-8", errors="replace")) if link.is_file() else None
    if not found:
        return top
    own = top / found[1].strip()
    common = own / "commondir"
    if not common.is_file():  # a submodule
        return top
    git_folder = (own / common.read_text(encoding="utf-8").strip()).resolve()
    return git_folder.parent if git_folder.name == ".git" else top  # a bare repository has no folder of its own


REMEMBERED = "remembered"
"""The source of the channels that hold what a user asked to remember, and the name of the one for everywhere."""


def remembered_channels(project: str | None) -> list[str]:
    """Return the names of the channels whose sentences hold in a project, its own last; None: everywhere."""
    if project is None:
        return [REMEMBERED]
    return [REMEMBERED, f"{REMEMBERED}_{blake2b(Project.from_path(project).path.encode(), digest_size=6).hexdigest()}"]
