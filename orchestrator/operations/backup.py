"""Backups: made, listed, looked through and put back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orchestrator.archive.container import ABOUT, MANIFEST, VERSION, Archive, ArchiveWriter, Damage
from orchestrator.archive.stores import add_stores, give_back
from orchestrator.requests.shapes import (
    CreateBackupRequest,
    ListBackupsRequest,
    RestoreBackupRequest,
    ValidateBackupRequest,
)
from orchestrator.state import PartDone, Run, Shelf, State, Steps
from registry.domain import format_time, now
from registry.errors import InvalidRequest, NotFound, StorageError
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.migrations import HEAD
from registry.storage.paging import change_state
from registry.storage.safety.forgetting import wipe
from registry.storage.safety.staying_forgotten import forget_again, tombstones_of
from registry.storage.upkeep.table_export import TABLES, count_kept, rehearse, replace_everything, table_lines

STAMP = "%Y-%m-%dT%H%M%SZ"
SUFFIX = ".ctxr-backup.zip"
SCHEDULED = "-scheduled"
"""What the backups of the series are called by; those that somebody asked for are never thinned."""
UNSAID = ("parts",)
"""What of a manifest is not told in a list."""


@dataclass(slots=True)
class Begun:
    """A backup that has the registry in it already."""

    writer: ArchiveWriter
    about: dict[str, Any]


def begin(tx: ReadTransaction, run: Run, request: CreateBackupRequest) -> Begun:
    """Write the registry as it is at this moment, table by table; whoever stores meanwhile is not kept waiting."""
    shelf = _shelf(run)
    path = _new_file(shelf, request.query.path, SCHEDULED if request.query.is_scheduled else "")
    begun = _registry_in(tx, path, run.tell)
    run.recorder.explain(path=str(path), **begun.about["stats"], by="one read transaction, table by table")
    return begun


def _registry_in(tx: ReadTransaction, path: Path, tell: Callable[[PartDone], None]) -> Begun:
    writer = ArchiveWriter(path)
    try:
        about = {
            "version": VERSION,
            "createdAt": format_time(now()),
            "program": version("context-registry"),
            "revision": HEAD,
            "database": tx.dialect.name,
            "stats": count_kept(tx),
        }
        writer.add_json(ABOUT, about)
        rows = {}
        for number, name in enumerate(TABLES):
            tell(PartDone(number, len(TABLES), f"table {name}"))
            rows[name] = writer.add_lines(f"registry/{name}.jsonl", table_lines(tx, name))
    except BaseException:
        writer.discard()
        raise
    return Begun(writer, {**about, "rows": rows})


def _new_file(shelf: Shelf, given: str | None, label: str = "") -> Path:
    if given is None:
        return next(_free_names(shelf.folder, label))
    path = Path(given).expanduser().absolute()
    if path.exists() or not path.parent.is_dir() or path.suffix != ".zip":
        raise InvalidRequest(
            "The backup cannot be written there.",
            f"path: given {given!r}; allowed: a new file in a folder that exists, with .zip at its end",
        )
    return path


def _free_names(folder: Path, label: str) -> Iterator[Path]:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as exc:
        raise StorageError("The folder of backups cannot be written.", f"{folder}: {exc.strerror}") from exc
    stamp = f"{now():{STAMP}}{label}"
    names = (folder / f"{stamp}{more}{SUFFIX}" for more in ("", *(f"-{number}" for number in range(2, 1000))))
    yield from (path for path in names if not path.exists())


async def complete(run: Run, request: CreateBackupRequest, data: Begun) -> dict[str, Any]:
    """Add the clients' stores, and let the backup be there."""
    shelf = _shelf(run)
    try:
        stores = []
        if request.query.stores and shelf.places:
            stores = await asyncio.to_thread(add_stores, data.writer, shelf.readers, shelf.places, run.tell)
        await asyncio.to_thread(_finish, data, stores)
    except BaseException:
        data.writer.discard()
        raise
    run.recorder.explain(stores=len(stores), files=sum(store["files"] for store in stores))
    archive = await asyncio.to_thread(Archive.open, data.writer.path)
    thinned = await asyncio.to_thread(_thin, shelf.folder) if request.query.is_scheduled else []
    run.recorder.explain(thinned=thinned)
    return {"path": str(data.writer.path), "manifest": manifest_of(archive)}


Age = Callable[[datetime], object]

KEPT: tuple[tuple[int, Age], ...] = (
    (7, lambda at: at.date()),
    (4, lambda at: tuple(at.isocalendar())[:2]),
    (12, lambda at: (at.year, at.month)),
)
"""The last of each of so many days, weeks and months in which there is one."""


def kept(made: Collection[datetime]) -> set[datetime]:
    """Return the moments whose backups are kept: the newer, the denser; the newest always."""
    newest_first = sorted(made, reverse=True)
    stay: set[datetime] = set()
    for count, age in KEPT:
        last_of = {age(at): at for at in reversed(newest_first)}
        stay.update(islice(sorted(last_of.values(), reverse=True), count))
    return stay


def _thin(folder: Path) -> list[str]:
    """Remove the backups of the series that are too old to be so many; their names."""
    series = {path: _made_at(path) for path in folder.glob(f"*{SCHEDULED}*{SUFFIX}")}
    stay = kept([at for at in series.values() if at])
    gone = [path for path, at in series.items() if at and at not in stay]
    for path in gone:
        path.unlink(missing_ok=True)
    return [path.name for path in gone]


def _made_at(path: Path) -> datetime | None:
    try:
        return datetime.strptime(path.name.partition(SCHEDULED)[0], STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None


def _finish(begun: Begun, stores: list[dict[str, Any]]) -> None:
    try:
        begun.writer.finish({**begun.about, "stores": stores})
    except OSError as exc:
        raise StorageError("The backup could not be written.", f"{begun.writer.path}: {exc.strerror}") from exc


def manifest_of(archive: Archive) -> dict[str, Any]:
    """A backup's manifest, with the size of its file."""
    stats = archive.about.get("stats", {})
    return {**archive.about, "stats": {**stats, "fileSize": archive.path.stat().st_size}}


def _no_query(_tx: ReadTransaction, _run: Run, _request: Any) -> None:
    """Backups are files: nothing of the registry is needed."""


async def listed(run: Run, _request: ListBackupsRequest, _data: None) -> dict[str, Any]:
    """The backups in the folder of backups, newest first."""
    return {"backups": await asyncio.to_thread(_listed, _shelf(run).folder)}


def _listed(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.zip"), key=lambda path: (path.stat().st_mtime, path.name), reverse=True)
    return [_in_short(path) for path in files]


def _in_short(path: Path) -> dict[str, Any]:
    try:
        manifest = manifest_of(Archive.open(path))
    except StorageError as exc:
        return {"path": str(path), "manifest": None, "error": exc.details}
    return {"path": str(path), "manifest": {name: manifest[name] for name in manifest if name not in UNSAID}}


async def validated(run: Run, request: ValidateBackupRequest, _data: None) -> dict[str, Any]:
    """Every part of a backup compared with its SHA-256."""
    path = _existing(_shelf(run), request.query.path)
    archive = await asyncio.to_thread(Archive.open, path)
    damaged = await asyncio.to_thread(_checked, archive, run.tell)
    run.recorder.explain(parts=len(archive.names), damaged=[damage.part for damage in damaged])
    return {
        "path": str(path),
        "valid": not damaged,
        "parts": len(archive.names),
        "damaged": [{"part": damage.part, "why": damage.why} for damage in damaged],
        "manifest": {name: value for name, value in manifest_of(archive).items() if name not in UNSAID},
    }


def _checked(archive: Archive, tell: Callable[[PartDone], None]) -> list[Damage]:
    return archive.check(lambda done: tell(PartDone(done, len(archive.names), "parts compared")))


def _existing(shelf: Shelf, given: str) -> Path:
    path = Path(given).expanduser()
    if not path.is_absolute() and not path.is_file() and (shelf.folder / path).is_file():
        path = shelf.folder / path
    if not path.is_file():
        near = ", ".join(sorted(file.name for file in shelf.folder.glob("*.zip"))[-3:])
        raise NotFound("No such backup", f"path: given {given!r}; there are: {near or 'none yet'}")
    return path.absolute()


@dataclass(slots=True)
class Rehearsed:
    """A backup as it came out in a temporary place, and the copy of what it will replace."""

    archive: Archive
    file: Path
    counts: dict[str, int]
    damaged: list[Damage]
    safety_copy: str | None
    folder: TemporaryDirectory[str] = field(repr=False)


def try_out(tx: ReadTransaction, run: Run, request: RestoreBackupRequest) -> Rehearsed:
    """Check every part, restore into a temporary place, and copy what is stored now; StorageError names the damage."""
    shelf, query = _shelf(run), request.query
    archive = Archive.open(_existing(shelf, query.path))
    damaged = _checked(archive, run.tell)
    if damaged and not query.rest:
        raise damaged_backup(damaged)
    revision = archive.about.get("revision", HEAD)
    if revision > HEAD:
        raise StorageError(
            "The backup was made by a newer version of Context Registry.",
            f"Its tables are at revision {revision}, this version knows {HEAD}: update Context Registry",
        )
    folder = TemporaryDirectory(prefix="ctxr-restore-")
    try:
        return _tried_out(tx, run, request, archive, folder)
    except BaseException:
        folder.cleanup()
        raise


def _tried_out(
    tx: ReadTransaction, run: Run, request: RestoreBackupRequest, archive: Archive, folder: TemporaryDirectory[str]
) -> Rehearsed:
    file, damaged = Path(folder.name, "registry.db"), archive.damaged
    revision = archive.about.get("revision", HEAD)
    counts = rehearse(file, revision, lambda table: archive.lines(f"registry/{table}.jsonl"), is_damaged=bool(damaged))
    told = {name: archive.about.get("stats", {}).get(name) for name in counts}
    if not damaged and not request.query.rest and counts != told:
        raise StorageError(
            "The backup does not hold what it says.",
            f"{archive.path}: damaged part: {MANIFEST} (it tells of {told}, and there are {counts});"
            " `ctxr backup restore --rest` gives what is there",
        )
    is_needed = not request.query.dry_run and any(count_kept(tx).values())
    copy = _safety_copy(tx, run) if is_needed else None
    run.recorder.explain(rehearsed=counts, damaged=[damage.part for damage in damaged], safety_copy=copy)
    return Rehearsed(archive, file, counts, damaged, copy, folder)


def damaged_backup(damaged: list[Damage]) -> StorageError:
    """The refusal of a damaged backup: every part by its name."""
    parts = "; ".join(f"damaged part: {damage.part} ({damage.why})" for damage in damaged[:20])
    more = f"; and {len(damaged) - 20} more" if len(damaged) > 20 else ""
    return StorageError("The backup is damaged.", f"{parts}{more}; `ctxr backup restore --rest` gives what is left")


def _safety_copy(tx: ReadTransaction, run: Run) -> str:
    begun = _registry_in(tx, next(_free_names(_shelf(run).folder, "-before-restore")), run.tell)
    _finish(begun, [])
    return str(begun.writer.path)


async def about_to(_run: Run, request: RestoreBackupRequest, data: Rehearsed) -> dict[str, Any]:
    """Give back the clients' stores, and say what will come of the registry."""
    query, lost = request.query, list[str]()
    written = 0
    if query.stores_to and not query.dry_run:
        try:
            lost = await asyncio.to_thread(give_back, data.archive, Path(query.stores_to))
        except BaseException:
            data.folder.cleanup()
            raise
        written = len(data.archive.files()) - len(lost)
    return {
        "path": str(data.archive.path),
        "filesRestored": written,
        "sessionsRestored": data.counts["sessionCount"],
        "messagesRestored": data.counts["messageCount"],
        "messagesForgotten": 0,
        "safety_copy": data.safety_copy,
        "dry_run": query.dry_run,
        "damaged": [{"part": damage.part, "why": damage.why} for damage in data.damaged],
    }


def put_back(tx: WriteTransaction, run: Run, request: RestoreBackupRequest, state: State) -> dict[str, Any]:
    """Replace what is stored, all of it or nothing: other programs see the one or the other.

    What was forgotten since the backup was made stays forgotten.
    """
    data: Rehearsed = state["data"]
    again = 0
    with data.folder:
        if not request.query.dry_run:
            tombstones = tombstones_of(tx)
            replace_everything(tx, data.file)
            change_state(tx)
            again = forget_again(tx, tombstones)
            run.recorder.explain(forgotten_again=again)
    return {**state["result"], "messagesForgotten": again}


async def _wiped(run: Run, request: RestoreBackupRequest) -> None:
    if not request.query.dry_run:
        await wipe(run.registry)


def _shelf(run: Run) -> Shelf:
    if run.shelf is None:
        raise InvalidRequest("This program keeps no backups.", "ask `ctxr backup` on the machine of the registry")
    return run.shelf


CREATE = Steps[CreateBackupRequest, Begun](query=begin, keep=complete)
LIST = Steps[ListBackupsRequest, None](query=_no_query, keep=listed)
VALIDATE = Steps[ValidateBackupRequest, None](query=_no_query, keep=validated)
RESTORE = Steps[RestoreBackupRequest, Rehearsed](query=try_out, keep=about_to, write=put_back, afterwards=_wiped)
