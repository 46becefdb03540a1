"""Naming, deleting and restoring what is stored."""

from __future__ import annotations

from typing import Any

from orchestrator.answer.summaries import add_summaries
from orchestrator.queries import TagQuery
from orchestrator.requests import DeleteRequest, RestoreRequest, TagRequest
from orchestrator.state import Run, State, Steps
from registry.errors import InvalidRequest
from registry.storage.channels import ChannelRow, channel_item, edit_channel, get_channel, tags_of
from registry.storage.database import WriteTransaction
from registry.storage.kept import set_pin
from registry.storage.messages import delete_channel, delete_message, message_item, restore_channel, restore_message
from registry.storage.references import latest_channel, resolve_session
from registry.storage.safety.forgetting import Affected, Wanted, affected_by, dry_receipt, forget, wipe


def tag(tx: WriteTransaction, run: Run, request: TagRequest, _state: State) -> dict[str, Any]:
    """Name a channel."""
    changes = request.query.model_dump(exclude_unset=True, include={"title", "nickname"})
    meant = resolve_session(tx, request.channel) if request.channel else latest_channel(tx, request.source)
    run.recorder.channel = meant.name
    row = edit_channel(tx, meant.name, changes, _tags_after(tx, meant, request.query))
    if request.query.pinned is not None:
        set_pin(tx, row.number, is_pinned=request.query.pinned)
    run.recorder.explain(channel=meant.name, changed=sorted(request.query.model_fields_set))
    session = channel_item(row, tags_of(tx, [row.number])[row.number])
    add_summaries(tx, run, [session])
    return {"channel": session}


def _tags_after(tx: WriteTransaction, row: ChannelRow, query: TagQuery) -> list[str] | None:
    """All tags the channel shall have; None leaves them."""
    if not (query.add_tags or query.remove_tags):
        return query.tags
    kept = tags_of(tx, [row.number])[row.number] if query.tags is None else query.tags
    return [name for name in [*kept, *query.add_tags] if name not in query.remove_tags]


def delete(tx: WriteTransaction, run: Run, request: DeleteRequest, _state: State) -> dict[str, Any]:
    """Delete a message, or a whole channel."""
    if not request.query.soft:
        return _forget(tx, run, request)
    run.recorder.explain(id=request.query.id, channel=request.channel, soft=request.query.soft)
    if request.query.id:
        return _one_message(run, delete_message(tx, request.query.id))
    if request.channel is None:
        raise InvalidRequest("Nothing to delete was named.", "query.id: missing; allowed: an id, or a channel")
    row = get_channel(tx, request.channel)
    item = channel_item(row, tags_of(tx, [row.number])[row.number])
    delete_channel(tx, row, soft=True)
    return {"channel": {**item, "deleted": True}}


def _forget(tx: WriteTransaction, run: Run, request: DeleteRequest) -> dict[str, Any]:
    """For good. The record names nothing of it but its receipt."""
    query = request.query
    run.recorder.channel = None
    wanted = Wanted(query.id, request.channel, query.project, query.before, query.matching)
    if wanted == Wanted():
        raise InvalidRequest("Nothing to forget was named.", "allowed: query.id, channel, project, before, matching")
    found = affected_by(tx, wanted)
    shown = _shown(tx, found, wanted)
    receipt = dry_receipt(found) if query.dry_run else forget(tx, found, query.matching)
    run.recorder.explain(receipt=receipt.as_dict())
    return {**shown, "receipt": {**receipt.as_dict(), "backups": _backups(run)}}


def _backups(run: Run) -> list[str]:
    """The backups there are: what was forgotten still stands in those that were made before."""
    return sorted(path.name for path in run.shelf.folder.glob("*.zip")) if run.shelf else []


def _shown(tx: WriteTransaction, found: Affected, wanted: Wanted) -> dict[str, Any]:
    """The one thing that was named, as it was."""
    if wanted.id:
        return {"message": {**message_item(found.messages[0]), "deleted": True}}
    if wanted == Wanted(channel=wanted.channel):
        [row] = found.channels
        return {"channel": {**channel_item(row, tags_of(tx, [row.number])[row.number]), "deleted": True}}
    return {}


async def _wiped(run: Run, request: DeleteRequest) -> None:
    """What was forgotten is overwritten, too."""
    if not (request.query.soft or request.query.dry_run):
        await wipe(run.registry)


def restore(tx: WriteTransaction, run: Run, request: RestoreRequest, _state: State) -> dict[str, Any]:
    """Take the soft deletion of a message back, or of all in a channel."""
    run.recorder.explain(id=request.query.id, channel=request.channel)
    if request.query.id:
        return _one_message(run, restore_message(tx, request.query.id))
    if request.channel is None:
        raise InvalidRequest("Nothing to restore was named.", "query.id: missing; allowed: an id, or a channel")
    row = restore_channel(tx, request.channel)
    return {"channel": channel_item(row, tags_of(tx, [row.number])[row.number])}


def _one_message(run: Run, item: dict[str, Any]) -> dict[str, Any]:
    """The answer about one message; its run is one of its channel's."""
    run.recorder.channel = item["channel"]
    run.recorder.explain(channel=item["channel"])
    return {"message": item}


TAG = Steps[TagRequest, None](write=tag)
DELETE = Steps[DeleteRequest, None](write=delete, afterwards=_wiped)
RESTORE = Steps[RestoreRequest, None](write=restore)
