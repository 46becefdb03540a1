"""Naming, deleting and restoring what is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from orchestrator.answer.digests.summaries import add_summaries
from orchestrator.requests.queries import TagQuery
from orchestrator.requests.shapes import DeleteRequest, RestoreRequest, TagRequest
from orchestrator.state import Run, State, Steps
from registry.errors import InvalidRequest
from registry.storage.conversations.channels import channel_item, edit_channel, find_channel, get_channel, tags_of
from registry.storage.conversations.messages import (
    delete_channel,
    delete_message,
    get_message,
    message_item,
    restore_channel,
    restore_message,
)
from registry.storage.conversations.pins_and_views import set_pin
from registry.storage.conversations.references import latest_channel, resolve_session
from registry.storage.database import WriteTransaction
from registry.storage.exchange.edits import DELETED, NICKNAME, PINNED, TAGGED, TITLE, nickname_of_later, standing
from registry.storage.safety.forgetting import Affected, Wanted, affected_by, dry_receipt, forget, wipe
from registry.storage.safety.masking import masked


def tag(tx: WriteTransaction, run: Run, request: TagRequest, _state: State) -> dict[str, Any]:
    """Name a channel. What another machine says of it counts where nothing later was said."""
    meant = resolve_session(tx, request.channel) if request.channel else latest_channel(tx, request.source)
    run.recorder.channel = meant.name
    tags = tags_of(tx, [meant.number])[meant.number]
    said = masked(tx, request.query.model_dump(exclude_unset=True, include={"title", "nickname"}))
    said |= {} if request.query.pinned is None else {PINNED: request.query.pinned}
    said |= {TAGGED + name: is_held for name, is_held in _tags_said(tags, _masked_tags(tx, request.query)).items()}
    news = standing(tx, meant.number, said, request.timestamp)
    if request.timestamp and news.get(NICKNAME):
        news[NICKNAME] = nickname_of_later(tx, news[NICKNAME], meant, request.timestamp)
    changes = {name: news[name] for name in (TITLE, NICKNAME) if name in news}
    row = edit_channel(tx, meant.name, changes, _tags_after(tags, news))
    if PINNED in news:
        set_pin(tx, row.number, is_pinned=news[PINNED])
    run.recorder.explain(channel=meant.name, changed=sorted(request.query.model_fields_set))
    session = channel_item(row, tags_of(tx, [row.number])[row.number])
    add_summaries(tx, run, [session])
    return {"channel": session}


def _masked_tags(tx: WriteTransaction, query: TagQuery) -> TagQuery:
    named = query.model_dump(include={"tags", "add_tags", "remove_tags"})
    return query.model_copy(update=masked(tx, named))


def _tags_said(tags: Sequence[str], query: TagQuery) -> dict[str, bool]:
    all_of_them = {} if query.tags is None else {name: name in query.tags for name in (*tags, *query.tags)}
    return all_of_them | dict.fromkeys(query.add_tags, True) | dict.fromkeys(query.remove_tags, False)


def _tags_after(tags: Sequence[str], news: Mapping[str, Any]) -> list[str] | None:
    """All tags the channel shall have; None leaves them."""
    said = {name.removeprefix(TAGGED): is_held for name, is_held in news.items() if name.startswith(TAGGED)}
    kept = [name for name in tags if said.get(name, True)]
    return [*kept, *(name for name, is_held in said.items() if is_held)] if said else None


def delete(tx: WriteTransaction, run: Run, request: DeleteRequest, _state: State) -> dict[str, Any]:
    """Delete a message, or a whole channel."""
    if not request.query.soft:
        return _forget(tx, run, request)
    run.recorder.explain(id=request.query.id, channel=request.channel, soft=request.query.soft)
    if request.query.id:
        return _one_message(run, _said_of_message(tx, request.query.id, request.timestamp, is_deleted=True))
    if request.channel is None:
        raise InvalidRequest("Nothing to delete was named.", "query.id: missing; allowed: an id, or a channel")
    row = get_channel(tx, request.channel)
    item = channel_item(row, tags_of(tx, [row.number])[row.number])
    if standing(tx, row.number, {DELETED: True}, request.timestamp):
        delete_channel(tx, row, soft=True, until=request.timestamp)
    return {"channel": {**item, "deleted": True}}


def _said_of_message(tx: WriteTransaction, id_: str, done_at: datetime | None, *, is_deleted: bool) -> dict[str, Any]:
    """The message as it is when that has been said of it: deleted, or restored."""
    row = get_message(tx, id_, include_deleted=True)
    if not standing(tx, row.channel_number, {DELETED: is_deleted}, done_at, row.number):
        return message_item(row)
    return delete_message(tx, id_) if is_deleted else restore_message(tx, id_)


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
    if wanted.id:
        return {"message": {**message_item(found.messages[0]), "deleted": True}}
    if wanted == Wanted(channel=wanted.channel):
        [row] = found.channels
        return {"channel": {**channel_item(row, tags_of(tx, [row.number])[row.number]), "deleted": True}}
    return {}


async def _wiped(run: Run, request: DeleteRequest) -> None:
    if not (request.query.soft or request.query.dry_run):
        await wipe(run.registry)


def restore(tx: WriteTransaction, run: Run, request: RestoreRequest, _state: State) -> dict[str, Any]:
    """Take the soft deletion of a message back, or of all in a channel."""
    run.recorder.explain(id=request.query.id, channel=request.channel)
    if request.query.id:
        return _one_message(run, _said_of_message(tx, request.query.id, request.timestamp, is_deleted=False))
    if request.channel is None:
        raise InvalidRequest("Nothing to restore was named.", "query.id: missing; allowed: an id, or a channel")
    row = find_channel(tx, request.channel)
    if row is None or standing(tx, row.number, {DELETED: False}, request.timestamp):
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
