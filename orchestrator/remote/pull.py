"""Store new messages and edits of the remote registry here."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from orchestrator.operations.conversation_log import PulledRequest
from orchestrator.remote.client import RemoteRefused, RemoteRegistry, Unreachable
from orchestrator.remote.exchange import Exchanged, as_sent
from orchestrator.remote.replayed_edits import apply_edit
from orchestrator.requests.refusals import Refusal, invalid_request
from orchestrator.requests.shapes import Request
from registry.domain import storable
from registry.errors import OperationTimeout, StorageError
from registry.ingest.stored_messages import STORED_ID
from registry.storage.conversations.channels import REPOSITORY
from registry.storage.exchange import remote as notes
from registry.storage.exchange.change_feed import Changes
from registry.storage.exchange.counterparts import grown_to
from registry.storage.exchange.edits import DELETED, FORGOTTEN, GROWN, SHARED, Edit, note_edit_known
from registry.storage.paging import feed_beginning

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator
    from registry.registry import Registry

logger = logging.getLogger(__name__)

CLIENT = "ctxr pull"
_TRANSIENT = {error.code: error for error in (StorageError, OperationTimeout)}
"""Errors that end the exchange; it is repeated later."""


async def pull(orchestrator: Orchestrator, remote: RemoteRegistry, done: Exchanged) -> None:
    """Store the new messages and edits of the remote registry here.

    Raises Unreachable, also if another registry answers in between; StorageError or OperationTimeout if it cannot be
    stored here. The next pull continues.
    """
    changes = await _new_changes(orchestrator, remote, done)
    while True:
        await _store_missing(orchestrator, remote, changes.items, done)
        await orchestrator.registry.write(partial(notes.note_answer, url=remote.notes_url, place=changes.place))
        if changes.is_all:
            break
        changes = await _compare_if_replaced(orchestrator, remote, await _changes_after(remote, changes), done)
    await _pull_edits(orchestrator, remote, done)


async def detect_replacement(orchestrator: Orchestrator, remote: RemoteRegistry, done: Exchanged) -> None:
    """Before a push without a pull, detect a replaced registry, so that missing messages are sent again."""
    changes = await _new_changes(orchestrator, remote, done)
    if not await _position(orchestrator.registry, remote):  # nothing is read, but a later restore must be detected
        beginning = feed_beginning(changes.place)
        await orchestrator.registry.write(partial(notes.note_answer, url=remote.notes_url, place=beginning))


async def _new_changes(orchestrator: Orchestrator, remote: RemoteRegistry, done: Exchanged) -> Changes[dict[str, Any]]:
    """Return the changes since the last exchange, even if the registry had another address then."""
    registry = orchestrator.registry
    remote.notes_url = await registry.read(lambda tx: notes.known_address(tx, remote.url))
    changes = await remote.changes(await _position(registry, remote))
    if changes.registry and changes.registry != await registry.read(lambda tx: notes.registry_at(tx, remote.notes_url)):
        address = await registry.write(lambda tx: notes.note_registry(tx, remote.url, changes.registry))
        if address != remote.notes_url:
            remote.notes_url = address
            changes = await remote.changes(await _position(registry, remote))
    return await _compare_if_replaced(orchestrator, remote, changes, done)


async def _position(registry: Registry, remote: RemoteRegistry) -> int:
    return (await registry.read(lambda tx: notes.sync_progress(tx, remote.notes_url))).place


async def _compare_if_replaced(
    orchestrator: Orchestrator, remote: RemoteRegistry, first: Changes[dict[str, Any]], done: Exchanged
) -> Changes[dict[str, Any]]:
    """Return the changes. If the registry was replaced or restored from a backup, compare all its messages first.

    What it has deleted or forgotten is deleted or forgotten here before that: it is named by ids, which are then no
    longer recorded. A message that it has taken out of the trash has to wait: under a new id it would be stored twice.
    """
    changes = first
    if first.starts_over:
        logger.warning("The remote registry was replaced or restored, so all of it is compared: %s", remote.url)
        ids = {item["id"] for item in first.items}
        while not changes.is_all:
            changes = await _changes_after(remote, changes)
            ids.update(item["id"] for item in changes.items)
        await _pull_edits(orchestrator, remote, done, is_restoring=False)
        await orchestrator.registry.write(lambda tx: notes.note_only_there(tx, remote.notes_url, ids))
    return first


async def _changes_after(remote: RemoteRegistry, before: Changes[dict[str, Any]]) -> Changes[dict[str, Any]]:
    """Return the next changes. Raises Unreachable if another registry answers: its feed positions differ."""
    changes = await remote.changes(before.place)
    if changes.registry != before.registry:
        raise Unreachable(f"{remote.url}: another registry answers there than a moment ago")
    return changes


async def _pull_edits(
    orchestrator: Orchestrator, remote: RemoteRegistry, done: Exchanged, *, is_restoring: bool = True
) -> None:
    registry = orchestrator.registry
    position = (await registry.read(lambda tx: notes.sync_progress(tx, remote.notes_url))).edit_place
    while True:
        try:
            found = await remote.edits(position)
        except RemoteRefused as exc:  # not allowed by the token
            logger.warning("Names, tags and deletions were not received: %s", exc)
            return
        for edit in found.items:
            if is_restoring or edit.field != DELETED or edit.value:
                await _apply_here(orchestrator, remote, edit, done)
        if found.place == position:
            return
        position = found.place
        await registry.write(partial(notes.note_answer, url=remote.notes_url, edit_place=position))
        if found.is_all:
            return


async def _apply_here(orchestrator: Orchestrator, remote: RemoteRegistry, edit: Edit, done: Exchanged) -> None:
    """Apply an edit of the remote registry here; fetch what was restored or shared and is not here yet."""
    if edit.field == GROWN:
        await _pull_grown(orchestrator, remote, edit.value["id"], edit.value["digest"])
        return
    if edit.field == SHARED and edit.of_other_person:  # its earlier messages were hidden from this machine
        await _pull_missing(orchestrator, remote, edit, done)
    remote_ids = edit.value["ids"] if edit.field == FORGOTTEN else [edit.message_id] if edit.message_id else []
    local_ids = await orchestrator.registry.read(lambda tx: notes.ids_here(tx, remote.notes_url, remote_ids))
    if edit.field == FORGOTTEN:
        local_edit = replace(edit, value={**edit.value, "ids": list(local_ids.values())})
    else:
        local_edit = replace(edit, message_id=local_ids.get(edit.message_id) if edit.message_id else None)
    if not edit.message_id or local_edit.message_id:
        error = await apply_edit(partial(orchestrator.run, client=CLIENT), orchestrator.registry, local_edit)
        _raise_transient(error)
        if error:
            logger.warning(
                "An edit of the remote registry was not applied here: %s %s", error["message"], error["details"]
            )
        done.edits += error is None
        await orchestrator.registry.write(partial(note_edit_known, url=remote.notes_url, received=local_edit))
    if edit.field == DELETED and not edit.value:
        await _pull_missing(orchestrator, remote, edit, done)


async def _pull_grown(orchestrator: Orchestrator, remote: RemoteRegistry, their_id: str, digest: str) -> None:
    """Fetch the extended text of a message that came from the remote registry."""
    our_id = await orchestrator.registry.read(
        lambda tx: notes.id_of_changed_message(tx, remote.notes_url, their_id, digest)
    )
    if our_id is None:
        return
    try:
        item = await remote.message(their_id)
    except RemoteRefused:  # it was deleted there meanwhile
        return
    row = await orchestrator.registry.read(lambda tx: grown_to(tx, our_id, str(item["text"])))
    if row and row.text != item["text"]:
        given = {"operation": "conversation_log", "channel": row.channel, "source": row.source}
        answer = await orchestrator.run({**given, "messages": [{**as_sent(item), STORED_ID: our_id}]}, client=CLIENT)
        _raise_transient(answer.get("error"))


async def _pull_missing(orchestrator: Orchestrator, remote: RemoteRegistry, edit: Edit, done: Exchanged) -> None:
    try:
        items = [await remote.message(edit.message_id)] if edit.message_id else await remote.messages(edit.names[0])
    except RemoteRefused:  # it was deleted, or its sharing ended, meanwhile
        return
    await _store_missing(orchestrator, remote, items, done)


async def _store_missing(
    orchestrator: Orchestrator, remote: RemoteRegistry, items: Sequence[dict[str, Any]], done: Exchanged
) -> None:
    """Store the messages that are not here yet, one channel at a time."""
    ids = [item["id"] for item in items]
    known = await orchestrator.registry.read(lambda tx: notes.ids_here(tx, remote.notes_url, ids))
    new = sorted((item for item in items if item["id"] not in known), key=lambda item: str(item["channel"]))
    for name, group in groupby(new, key=lambda item: str(item["channel"])):
        await _store_channel(orchestrator, remote, name, list(group), done)


async def _store_channel(
    orchestrator: Orchestrator, remote: RemoteRegistry, name: str, items: Sequence[dict[str, Any]], done: Exchanged
) -> None:
    try:
        channel = await remote.channel(name)
    except RemoteRefused as exc:  # it was deleted there meanwhile
        done.refused, done.why = done.refused + len(items), str(exc)
        return
    session_id = channel["session_id"] if channel["session_id"] != name else None
    meta = {"session_id": session_id, "title": channel["title"], "project": channel["project_path"]}
    meta[REPOSITORY] = channel.get(REPOSITORY)
    given = storable(
        {
            "channel": name,
            "source": channel["source"],
            "messages": [as_sent(item) for item in items],
            "metadata": {key: value for key, value in meta.items() if value},
        }
    )
    try:
        ids = [item["id"] for item in items]
        of_other_person = remote.is_of_other_person(channel.get("owner"))
        own_name = name if of_other_person else remote.name_here(name)
        noted = {"url": remote.notes_url, "ids": ids, "of_other_person": of_other_person, "own_name": own_name}
        request: Request | Refusal = PulledRequest.model_validate({**given, **noted})
    except ValidationError as exc:
        refused = invalid_request(exc.errors(include_url=False))
        request = Refusal(PulledRequest.operation, given["source"], refused, given["channel"])
    answer = await orchestrator.run(request, CLIENT)
    if answer["success"]:
        done.received += len(answer["stored_ids"])
        return
    error = answer["error"]
    _raise_transient(error)
    done.refused, done.why = done.refused + len(items), error["message"]


def _raise_transient(error: Mapping[str, Any] | None) -> None:
    if error and error["code"] in _TRANSIENT:
        raise _TRANSIENT[error["code"]](error["message"], error["details"])
