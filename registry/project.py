"""Projects: the repository, or else the folder, that a conversation is about. Git's files are read, no git is run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path, PurePosixPath, PureWindowsPath
from urllib.parse import urlsplit

_GITDIR = re.compile(r"gitdir:\s*(.+)")
_REMOTE = re.compile(r'^\s*\[remote "([^"\n]+)"\][^\[]*?^\s*url\s*=\s*"?(.+?)"?\s*$', re.MULTILINE)
_SCP = re.compile(r"^([^/:]{2,}):(?!//)")  # git@example.org:shop.git; one letter is a drive of Windows
_FIRST_COMMIT = re.compile(r"0+ ([0-9a-f]+) .*\tcommit \(initial\)")


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


def repository_id(folder: str) -> str | None:
    """Return a digest that a folder's repository keeps when it is moved or cloned; None if it has none.

    It is made of the remote's address without user, password and query, else of the first commit's id. Forks differ by
    their remote. Git removes the record of the first commit at a clean-up after 90 days.
    """
    try:
        origin = _origin(Path(folder), 5)
    except (OSError, ValueError):  # files that may not be read; an address that is none
        return None
    return blake2b(origin.encode(), digest_size=16).hexdigest() if origin else None


def _origin(folder: Path, most: int) -> str | None:
    """Return a repository's remote, or first commit. A clone of a folder has that folder's, `most` clones deep."""
    top = repository_folder(str(folder))
    if top is None or not most:
        return None
    files = _git_folder(Path(top))
    remotes = dict(_REMOTE.findall(_text_of(files / "config")))
    remote = remotes.get("origin") or next(iter(remotes.values()), None)
    if remote is None:
        first = _FIRST_COMMIT.match(_text_of(files / "logs" / "HEAD"))
        return first[1] if first else None
    address = urlsplit(_SCP.sub(r"ssh://\1/", remote))
    if address.hostname:
        host = address.netloc.rpartition("@")[2].lower()
        return f"{host}/{address.path.strip('/').removesuffix('.git')}"
    cloned = (Path(top) / remote.removeprefix("file://").removesuffix("/.git")).resolve()
    is_bare = not (cloned / ".git").exists()  # it may lie in another repository
    return str(cloned) if is_bare else _origin(cloned, most - 1) or str(cloned)


def _text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


def _main_folder(top: Path) -> Path:
    """Return the folder that a worktree was made from; a bare repository has none of its own."""
    files = _git_folder(top)
    return files.parent if files.name == ".git" else top


def _git_folder(top: Path) -> Path:
    """Return the folder of Git's files, to which the `.git` file of a worktree or submodule leads."""
    link = top / ".git"
    found = _GITDIR.match(_text_of(link))
    if not found:
        return link
    own = top / found[1].strip()
    common = own / "commondir"
    return (own / _text_of(common).strip()).resolve() if common.is_file() else own  # a submodule has its own


REMEMBERED = "remembered"
"""The source of the channels that hold what a user asked to remember, and the beginning of their names.

Of a source alone anybody may say that it is this one.
"""
