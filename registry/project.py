"""Find a conversation's project: the repository, or else the folder. Reads Git's files without running git."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path, PurePosixPath, PureWindowsPath
from urllib.parse import urlsplit

NO_PROJECT = "General"
"""The name under which the channels without a project are shown and found."""

_GITDIR = re.compile(r"gitdir:\s*(.+)")
_REMOTE = re.compile(r'^\s*\[remote "([^"\n]+)"\][^\[]*?^\s*url\s*=\s*"?(.+?)"?\s*$', re.MULTILINE)
_SCP_ADDRESS = re.compile(r"^([^/:]{2,}):(?!//)")  # git@example.org:shop.git; one letter is a drive of Windows
_FIRST_COMMIT = re.compile(r"0+ ([0-9a-f]+) .*\tcommit \(initial\)")


@dataclass(frozen=True, slots=True)
class Project:
    """The repository of a channel, or the workspace folder if it is in no repository."""

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
    """Return the main folder of a folder's repository; None without a repository, or if it is not on this machine.

    A worktree belongs to the folder it was created from; a submodule is a separate repository. A repository in the
    home folder itself (dotfiles) is ignored: otherwise all folders would be one project.
    """
    start = Path(folder)
    if not start.is_absolute():
        return None
    try:
        candidates = (candidate for candidate in (start, *start.parents) if _has_repository(candidate))
        top = next((candidate for candidate in candidates if candidate != Path.home()), None)
        return str(_main_folder(top)) if top else None
    except OSError:  # the folder is not readable
        return None


def repository_id(folder: str) -> str | None:
    """Return a digest that stays the same when a folder's repository is moved or cloned; None if it has none.

    It is computed from the remote's URL without user, password and query, else from the first commit's id. Forks have
    different remotes. `git gc` removes the reflog entry of the first commit after 90 days.
    """
    try:
        origin = _origin(Path(folder), 5)
    except (OSError, ValueError):  # unreadable files, or an invalid URL
        return None
    return blake2b(origin.encode(), digest_size=16).hexdigest() if origin else None


def _origin(folder: Path, max_depth: int) -> str | None:
    """Return a repository's remote, or first commit. For a clone of a local folder, follow up to `max_depth` clones."""
    top = repository_folder(str(folder))
    if top is None or not max_depth:
        return None
    files = _git_folder(Path(top))
    remotes = dict(_REMOTE.findall(_read_text(files / "config")))
    remote = remotes.get("origin") or next(iter(remotes.values()), None)
    if remote is None:
        first = _FIRST_COMMIT.match(_read_text(files / "logs" / "HEAD"))
        return first[1] if first else None
    address = urlsplit(_SCP_ADDRESS.sub(r"ssh://\1/", remote))
    if address.hostname:
        host = address.netloc.rpartition("@")[2].lower()
        return f"{host}/{address.path.strip('/').removesuffix('.git')}"
    cloned = (Path(top) / remote.removeprefix("file://").removesuffix("/.git")).resolve()
    is_bare = not _has_repository(cloned)  # a bare repository may be inside another one
    return str(cloned) if is_bare else _origin(cloned, max_depth - 1) or str(cloned)


def _read_text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


def _has_repository(folder: Path) -> bool:
    """Return True if the folder has Git's files: Codex's sandbox makes empty `.git` folders, in /tmp too."""
    files = folder / ".git"
    return files.is_file() or (files / "HEAD").exists()


def _main_folder(top: Path) -> Path:
    """Return the folder that a worktree was created from; `top` itself for a bare repository."""
    files = _git_folder(top)
    return files.parent if files.name == ".git" else top


def _git_folder(top: Path) -> Path:
    """Return the folder of Git's files; the `.git` file of a worktree or submodule points to it."""
    link = top / ".git"
    found = _GITDIR.match(_read_text(link))
    if not found:
        return link
    folder = top / found[1].strip()
    common = folder / "commondir"
    # a submodule has no common folder
    return (folder / _read_text(common).strip()).resolve() if common.is_file() else folder


REMEMBERED = "remembered"
"""The source of the channels with remembered sentences, and the prefix of their names.

Queries check both, because any caller may send this source.
"""
