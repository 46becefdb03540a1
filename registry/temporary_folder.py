"""Make temporary folders that hold conversations, and remove those of killed processes."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, gettempdir

if sys.platform == "win32":
    fcntl = None  # Windows does not remove open files, so no lock is needed
else:
    import fcntl

_PREFIX, _LOCK = "ctxr-temporary-", ".lock"


class TemporaryFolder(TemporaryDirectory[str]):
    """A temporary folder, which another process removes if this one is killed."""

    def __init__(self, within: str | os.PathLike[str] | None = None) -> None:
        """`within`: an existing folder; default: the system's folder for temporary files."""
        remove_leftovers(within)
        super().__init__(prefix=_PREFIX, dir=within, ignore_cleanup_errors=True)
        draft = Path(self.name, _LOCK if sys.platform == "win32" else "draft")
        self._lock = draft.open("wb")
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks, where leftovers stay
                fcntl.flock(self._lock, fcntl.LOCK_EX)
            draft.rename(draft.with_name(_LOCK))  # under this name it is always locked

    def cleanup(self) -> None:
        self._lock.close()
        super().cleanup()


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield a path beside the given one for a file that gets its name at the end, if nothing fails."""
    with TemporaryFolder(path.parent) as folder:
        draft = Path(folder, path.name)
        yield draft
        draft.rename(path)


def remove_leftovers(within: str | os.PathLike[str] | None = None) -> None:
    """Remove the temporary folders of killed processes."""
    for lock in Path(within or gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        if _is_left(lock):
            rmtree(lock.parent, ignore_errors=True)


def _is_left(lock: Path) -> bool:
    try:
        if fcntl is None:
            lock.unlink()
        else:
            with lock.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # in use, or another user's
        return False
    return True
