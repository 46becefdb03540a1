"""Run git to find the commits of files and lines. It neither changes the repository nor runs programs from it."""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from registry.errors import InvalidRequest, NotFound

_SAFE = ("--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat")
_MARK = "\x01"
_SHOW = ("--no-color", "--no-ext-diff", "--no-textconv", "--unified=0", f"--format={_MARK}%H%x00%at%x00%an%x00%s")
_LINE = re.compile(r"\d{1,9}")


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit, the significant lines that it added, and the files that it added them to."""

    sha: str
    at: datetime
    author: str
    summary: str
    files: frozenset[str]
    lines: frozenset[str]

    def as_dict(self) -> dict[str, str]:
        return {
            "sha": self.sha,
            "time": self.at.isoformat().replace("+00:00", "Z"),
            "author": self.author,
            "summary": self.summary,
        }


def repository_of(folder: Path) -> Path:
    """Return the top folder of a folder's repository; NotFound without a repository or without git."""
    try:
        top = _git(folder, "rev-parse", "--show-toplevel").strip()
    except (NotFound, OSError) as exc:
        raise NotFound("There is no git repository.", f"{folder} is in none, or git is not installed") from exc
    return Path(top)


def parse_reference(reference: str, folder: Path) -> tuple[Path, int | None]:
    """Parse `FILE` or `FILE:LINE`; an existing file named `…:LINE` is taken as a file."""
    name, colon, line = reference.rpartition(":")
    if colon and _LINE.fullmatch(line) and not (folder / reference).exists():
        return (folder / name).resolve(), int(line)
    return (folder / reference).resolve(), None


def commit_of_line(top: Path, file: Path, line: int) -> tuple[Commit, str]:
    """Return the commit of a line, and its text. NotFound for a line that is not committed."""
    output = _git(top, "blame", "--porcelain", "-w", "-M", "-L", f"{line},{line}", "--", _relative_path(top, file))
    first, *rest = output.split("\n")
    sha = first.split(" ")[0]
    text = next((each[1:] for each in rest if each.startswith("\t")), "")
    if not sha.strip("0"):
        raise NotFound("That line is not committed yet.", f"{file}:{line}: {text.strip()[:80]}")
    return commit(top, sha), text


def commits_of_file(top: Path, file: Path) -> list[Commit]:
    """Return the latest 20 commits of a file, with the lines that they added to it."""
    name = _relative_path(top, file)
    return list(_commits(_git(top, "log", "--max-count=20", "--follow", *_SHOW, "--patch", "--", name)))


def commit(top: Path, name: str) -> Commit:
    """Return a commit by any of its names. Raises NotFound."""
    if name.startswith("-"):
        raise InvalidRequest("That is not a commit.", f"commit: given {name!r}; allowed: a hash, a branch, a tag")
    found = next(_commits(_git(top, "show", *_SHOW, "--patch", "--first-parent", f"{name}^{{commit}}", "--")), None)
    if found is None:
        raise NotFound("No such commit.", f"{name!r} in {top}")
    return found


def commits_between(top: Path, since: datetime, until: datetime) -> list[Commit]:
    """Return the commits of all branches in a time span, latest first."""
    span = f"--since={since.isoformat()}", f"--until={until.isoformat()}"
    return list(_commits(_git(top, "log", "--all", "--max-count=200", *span, *_SHOW, "--patch")))


def _relative_path(top: Path, file: Path) -> str:
    try:
        return file.relative_to(top.resolve()).as_posix()
    except ValueError as exc:
        raise NotFound("That file is not in the repository.", f"{file} is not below {top}") from exc


def _commits(output: str) -> Iterator[Commit]:
    for part in output.split(_MARK)[1:]:
        head, *lines = part.split("\n")
        sha, at, author, summary = head.split("\x00", 3)
        files, added = _added(lines)
        yield Commit(sha, datetime.fromtimestamp(int(at), UTC), author, summary, files, significant_lines(added))


def _added(lines: list[str]) -> tuple[frozenset[str], list[str]]:
    files, added, file = set[str](), list[str](), ""
    for line in lines:
        if line.startswith("+++ "):
            file = line[4:].strip('"').removeprefix("b/")
        elif line.startswith("+") and len(added) < 2_000:
            files.add(file)
            added.append(line[1:])
    return frozenset(files), added


_MIN_LINE = 8  # characters of a significant line: `}` and `else:` occur everywhere


def significant_lines(lines: Iterable[str]) -> frozenset[str]:
    """Return the significant lines, with normalised white space."""
    found = (" ".join(line.split()) for line in lines)
    return frozenset(line for line in found if len(line) >= _MIN_LINE and re.search(r"\w{3}", line))


def _git(folder: Path, *words: str) -> str:
    """Return git's output; NotFound with git's own message if it fails."""
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(  # noqa: S603, a fixed program with fixed options
            ["git", *_SAFE, "-C", str(folder), *words],  # noqa: S607, the user's own git
            capture_output=True,
            timeout=20,
            check=False,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise NotFound("git does not answer.", str(exc)) from exc
    if done.returncode:
        raise NotFound("git could not find that.", done.stderr.decode("utf-8", "replace").strip()[:300])
    return done.stdout.decode("utf-8", "replace")
