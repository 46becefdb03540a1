"""Copy the clients' stores into a backup while clients write, and write them back into a folder."""

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orchestrator.archive.container import Archive, ArchiveWriter, DamagedPart
from orchestrator.state import PartDone
from orchestrator.sync.sync import stores_of
from registry.errors import InvalidRequest, StorageError
from sources.base import Places, Source
from sources.files_to_back_up import StoreFile, copy_database, files_to_back_up, is_database


def add_stores(
    writer: ArchiveWriter, readers: Sequence[Source], places: Places, tell: Callable[[PartDone], None]
) -> list[dict[str, Any]]:
    """Add every file of every store, and return what was added of each store and what could not be read."""
    told = []
    for done, reader in enumerate(readers):
        tell(PartDone(done, len(readers), f"histories of {reader.name}"))
        for number, store in enumerate(stores_of(reader, places)):
            folder = f"stores/{reader.name}/{number}"
            about = {"source": reader.name, "path": str(store), "folder": folder}
            told.append({**about, **_add(writer, reader, store, folder)})
    return told


def _add(writer: ArchiveWriter, reader: Source, store: Path, folder: str) -> dict[str, Any]:
    files = size = 0
    skipped: list[str] = []
    try:
        for file in files_to_back_up(reader, store):
            try:
                size += _add_file(writer, file, f"{folder}/{file.name}")
                files += 1
            except (OSError, StorageError) as exc:
                skipped.append(f"{file.name}: {exc}")
    except OSError as exc:
        skipped.append(f"{store}: {exc}")
    return {"files": files, "size": size, **({"skipped": skipped} if skipped else {})}


def _add_file(writer: ArchiveWriter, file: StoreFile, name: str) -> int:
    if not is_database(file.path):
        return writer.add_file(name, file.path)
    with TemporaryDirectory(prefix="ctxr-") as folder:
        copy = Path(folder, "copy.db")
        copy_database(file.path, copy)
        return writer.add_file(name, copy)


def give_back(archive: Archive, folder: Path) -> list[str]:
    """Write the stores' files into a new or empty folder, and return the damaged ones, which are left out.

    The clients' own folders are never written to.
    """
    folder = folder.expanduser().absolute()
    if folder.exists() and any(folder.iterdir()):
        raise InvalidRequest("The folder is not empty.", f"stores_to: given {str(folder)!r}; allowed: a new folder")
    damaged = []
    for name, parts in archive.files().items():
        target = folder / Path(name).relative_to("stores")
        if ".." in target.parts:
            damaged.append(name)
            continue
        try:
            content = [archive.read(part) for part in parts]
        except DamagedPart:
            damaged.append(name)
            continue
        try:
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with target.open("wb") as file:
                file.writelines(content)
        except OSError as exc:
            raise StorageError("The stores could not be written.", f"{target}: {exc.strerror}") from exc
    return damaged
