"""restore_backup: replace the whole registry by a backup."""

import asyncio
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from orchestrator.archive.container import MANIFEST, Archive, BadPart, restore_stores
from orchestrator.operations.create_backup import folder_of_backups, free_names, write_registry
from orchestrator.operations.share import restrict_again
from orchestrator.operations.validate_backup import NamedBackup, ValidateBackupQuery, existing_backup
from orchestrator.requests.shapes import Request
from orchestrator.state import GeneralState, Operation, Run, Steps, local_files_of
from orchestrator.tool import Effect, Tool
from registry.access import Level
from registry.errors import InvalidRequest, StorageError
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.exchange.edits import sharing_edits
from registry.storage.migrations import HEAD
from registry.storage.paging import invalidate_feed_positions
from registry.storage.safety.forgetting import forget_again, tombstones_of, wipe
from registry.storage.safety.page_sessions import end_other_sessions, open_sessions
from registry.storage.safety.tokens import revoke_again, revoked_tokens
from registry.storage.upkeep.table_export import count_stored, import_into_file, replace_everything
from registry.temporary_folder import TemporaryFolder


class RestoreBackupQuery(ValidateBackupQuery):
    """The backup to restore."""

    rest: bool = Field(False, description="restore what is left of a damaged backup")
    stores_to: str | None = Field(None, min_length=1, description="a new folder for the clients' own histories")
    dry_run: bool = Field(False, description="try it in a temporary place, and change nothing")


class RestoreBackupRequest(Request):
    operation = "restore_backup"
    takes_long = True
    query: RestoreBackupQuery


@dataclass(slots=True)
class Rehearsed:
    """A backup restored into a temporary folder, and the path of the safety copy."""

    archive: Archive
    file: Path
    counts: dict[str, int]
    damaged: list[BadPart]
    safety_copy: str | None
    folder: TemporaryFolder = field(repr=False)


def try_restore(tx: ReadTransaction, run: Run, request: RestoreBackupRequest) -> Rehearsed:
    """Check the backup, restore it into a temporary folder, and back up the current registry. Raises StorageError."""
    local_files, query = local_files_of(run), request.query
    archive = Archive.open(existing_backup(local_files, query.path))
    if "owner" in archive.about:
        raise InvalidRequest(
            "That file contains the conversations of one person, not a registry.",
            f"{archive.path}: `ctxr import` adds them to a registry",
        )
    damaged = archive.check()
    if damaged and not query.rest:
        parts = "; ".join(f"damaged part: {damage.part} ({damage.why})" for damage in damaged[:20])
        more = f"; and {len(damaged) - 20} more" if len(damaged) > 20 else ""
        left = f"{parts}{more}; `ctxr backup restore --rest` gives what is left"
        raise StorageError("The backup is damaged.", left)
    revision = archive.about.get("revision", HEAD)
    if revision > HEAD:
        raise StorageError(
            "The backup was made by a newer version of Context Registry.",
            f"Its tables are at revision {revision}, this version knows {HEAD}: update Context Registry",
        )
    backups = folder_of_backups(run)
    with ExitStack() as unfinished:
        folder = TemporaryFolder(backups)
        unfinished.callback(folder.cleanup)
        file = Path(folder.name, "registry.db")
        counts = import_into_file(
            file, revision, lambda table: archive.lines(f"registry/{table}.jsonl"), is_damaged=bool(damaged)
        )
        stated = {name: archive.about.get("stats", {}).get(name) for name in counts}
        if not damaged and not query.rest and counts != stated:
            raise StorageError(
                "The backup's contents differ from its manifest.",
                f"{archive.path}: damaged part: {MANIFEST} (it lists {stated}, found: {counts});"
                " `ctxr backup restore --rest` gives what is there",
            )
        copy = None
        if not query.dry_run and any(count_stored(tx).values()):
            writer = write_registry(tx, free_names(backups, "-before-restore"))
            writer.finish([])
            copy = str(writer.path)
        run.recorder.explain(rehearsed=counts, damaged=[damage.part for damage in damaged], safety_copy=copy)
        unfinished.pop_all()
    return Rehearsed(archive, file, counts, damaged, copy, folder)


async def write_stores(_run: Run, request: RestoreBackupRequest, data: Rehearsed) -> dict[str, Any]:
    """Write the clients' stores to the given folder, and return the figures of the restored registry."""
    query, damaged = request.query, list[str]()
    written = 0
    if query.stores_to and not query.dry_run:
        try:
            damaged = await asyncio.to_thread(restore_stores, data.archive, Path(query.stores_to))
        except BaseException:
            data.folder.cleanup()
            raise
        written = len(data.archive.files()) - len(damaged)
    return {
        "path": str(data.archive.path),
        "filesRestored": written,
        "sessionsRestored": data.counts["sessionCount"],
        "messagesRestored": data.counts["messageCount"],
        "messagesForgotten": 0,
        "safety_copy": data.safety_copy,
        "dry_run": query.dry_run,
        "damaged": [asdict(damage) for damage in data.damaged],
    }


def replace_all(tx: WriteTransaction, run: Run, request: RestoreBackupRequest, state: GeneralState) -> dict[str, Any]:
    """Replace the registry in one transaction; what was erased, revoked or unshared since stays so."""
    data: Rehearsed = state["data"]
    forgotten_again = 0
    with data.folder:
        if not request.query.dry_run:
            tombstones, sharing = tombstones_of(tx), sharing_edits(tx)
            revoked, sessions = revoked_tokens(tx), open_sessions(tx)
            replace_everything(tx, data.file)
            invalidate_feed_positions(tx)
            revoke_again(tx, revoked)
            end_other_sessions(tx, sessions)
            restrict_again(tx, sharing)
            forgotten_again = forget_again(tx, tombstones)
            run.recorder.explain(forgotten_again=forgotten_again)
    return {**state["result"], "messagesForgotten": forgotten_again}


async def _wipe_after(run: Run, request: RestoreBackupRequest) -> None:
    if not request.query.dry_run:
        await wipe(run.registry)


class RestoreArguments(NamedBackup):
    request_type = RestoreBackupRequest
    rest: Annotated[bool, Field(description="of a damaged backup, what is left")] = False
    dry_run: Annotated[bool, Field(description="only say what would come back")] = False


RESTORE_TOOL = Tool(
    name="restore_backup",
    title="Restore a backup",
    description="Put a backup in the place of everything the registry holds, only when the user asks for exactly that. "
    "What is there now is backed up first. Try it with dry_run before.",
    effect=Effect.REPLACES,
    arguments=RestoreArguments,
    returns=[
        "path",
        "filesRestored",
        "sessionsRestored",
        "messagesRestored",
        "messagesForgotten",
        "safety_copy",
        "dry_run",
        "damaged",
    ],
    example={"path": "2026-01-31T083000Z.ctxr-backup.zip", "dry_run": True},
    toolset="archive",
)
OPERATION = Operation(
    request=RestoreBackupRequest,
    level=Level.ADMIN,
    is_local=True,
    steps=Steps[RestoreBackupRequest, Rehearsed](
        query=try_restore, answer=write_stores, write=replace_all, afterwards=_wipe_after
    ),
    tools=[RESTORE_TOOL],
    labels={
        "stores_to": ("clients' histories to", "클라이언트 기록을 둘 곳"),
        "rest": ("what is left of it", "남은 것만"),
    },
)
