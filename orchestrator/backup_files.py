"""Find, open and write backups in the folder of backups; shared by the operations on backups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from orchestrator.archive.container import VERSION, Archive, ArchiveWriter, Damage
from orchestrator.state import PartDone, Run, Shelf
from orchestrator.tool import Caller
from registry.domain import format_time, now
from registry.errors import InvalidRequest, NotFound, StorageError
from registry.storage.database import ReadTransaction
from registry.storage.migrations import HEAD
from registry.storage.upkeep.table_export import TABLES, count_kept, rows_of

STAMP = "%Y-%m-%dT%H%M%SZ"
SUFFIX = ".ctxr-backup.zip"


def write_registry(tx: ReadTransaction, path: Path, tell: Callable[[PartDone], None]) -> ArchiveWriter:
    about = {
        "version": VERSION,
        "createdAt": format_time(now()),
        "program": version("context-registry"),
        "revision": HEAD,
        "database": tx.dialect.name,
        "stats": count_kept(tx),
    }
    writer = ArchiveWriter(path, about)
    try:
        rows: dict[str, int] = {}
        for number, (name, table) in enumerate(TABLES.items()):
            tell(PartDone(number, len(TABLES), f"table {name}"))
            rows[name] = writer.add_lines(f"registry/{name}.jsonl", rows_of(tx, table))
    except BaseException:
        writer.discard()
        raise
    writer.about["rows"] = rows
    return writer


def free_names(folder: Path, label: str) -> Iterator[Path]:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as exc:
        raise StorageError("The folder of backups cannot be written.", f"{folder}: {exc.strerror}") from exc
    stamp = f"{now():{STAMP}}{label}"
    names = (folder / f"{stamp}{more}{SUFFIX}" for more in ("", *(f"-{number}" for number in range(2, 1000))))
    yield from (path for path in names if not path.exists())


def finish(writer: ArchiveWriter, stores: list[dict[str, Any]]) -> None:
    try:
        writer.finish(stores)
    except OSError as exc:
        raise StorageError("The backup could not be written.", f"{writer.path}: {exc.strerror}") from exc


def manifest_of(archive: Archive) -> dict[str, Any]:
    """Return a backup's manifest with the size of its file, without the list of its parts, which may be long."""
    manifest = {name: value for name, value in archive.about.items() if name != "parts"}
    return {**manifest, "stats": {**archive.about.get("stats", {}), "fileSize": archive.path.stat().st_size}}


def find_damage(archive: Archive, tell: Callable[[PartDone], None]) -> list[Damage]:
    return archive.check(lambda done: tell(PartDone(done, len(archive.names), "parts compared")))


def existing_backup(shelf: Shelf, given: str) -> Path:
    path = Path(given).expanduser()
    if not path.is_absolute() and not path.is_file() and (shelf.folder / path).is_file():
        path = shelf.folder / path
    if not path.is_file():
        near = ", ".join(sorted(file.name for file in shelf.folder.glob("*.zip"))[-3:])
        raise NotFound("No such backup", f"path: given {given!r}; there are: {near or 'none yet'}")
    return path.absolute()


def no_query(_tx: ReadTransaction, _run: Run, _request: Any) -> None:
    """Read nothing from the registry: the operation works on files."""


def refuse_far_path(caller: Caller, path: str, *, is_new: bool = False) -> None:
    """Raise InvalidRequest for a path of a caller elsewhere: no files are read or written for others."""
    if not caller.is_local and (is_new or "/" in path or "\\" in path):
        raise InvalidRequest(
            "This server reads and writes no files for others.",
            f"path: given {path!r}; allowed over HTTP: a backup's name as list_backups gives it, or none",
        )
