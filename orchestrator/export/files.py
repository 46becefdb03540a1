"""Where an exported session is written: a new file in a folder that is there."""

from __future__ import annotations

from pathlib import Path

from registry.errors import InvalidRequest, StorageError


def write_new_file(path: Path, content: bytes) -> Path:
    """Write a file that is not there yet, and say where; InvalidRequest if it is, or if its folder is not."""
    if not path.parent.is_dir():
        raise InvalidRequest(
            "There is no such folder.", f"path: given {str(path)!r}; allowed: a file in a folder that exists"
        )
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError as exc:
        raise InvalidRequest("The file exists already.", f"path: given {str(path)!r}; allowed: a new name") from exc
    except OSError as exc:
        raise StorageError("The file could not be written.", f"{path}: {exc.strerror}") from exc
    return path.absolute()
