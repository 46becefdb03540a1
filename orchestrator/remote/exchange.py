"""Send new messages and edits to the remote registry (push), and store its new ones here (pull).

Messages are logged as usual, so each side recognises duplicates: messages that are sent twice, or by two machines with
the same history, are stored once. The notes in `registry.storage.exchange` only save repeated transfers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from orchestrator.operations.conversation_log import PulledRequest
from orchestrator.remote.client import ChannelRefused, NotGrown, RemoteRefused, RemoteRegistry, Unreachable
from orchestrator.remote.replayed_edits import apply_edit
from orchestrator.requests.refusals import Refusal, invalid_request
from orchestrator.requests.shapes import Request
from registry.domain import storable
from registry.errors import OperationTimeout, StorageError
from registry.ingest.stored_messages import STORED_ID
from registry.storage.conversations.messages import MessageRow, message_item
from registry.storage.conversations.references import add_alias
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.exchange import remote as notes
from registry.storage.exchange.change_feed import Changes
from registry.storage.exchange.counterparts import grown_to
from registry.storage.exchange.edits import (
    DELETED,
    FORGOTTEN,
    GROWN,
    Edit,
    is_anything_restored,
    note_edit_known,
    note_edits_sent,
    unsent_edits,
)
from registry.storage.paging import feed_beginning
from registry.storage.safety.masking import find_key, key_of
from registry.text.privacy.masking import mask_value

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator
    from registry.registry import Registry

logger = logging.getLogger(__name__)

MAX_MESSAGES = 200  # messages in one request
CLIENT = "ctxr pull"
_TRANSIENT = {error.code: error for error in (StorageError, OperationTimeout)}
"""Errors that end the exchange; it is repeated later."""
_SENT_APART = frozenset({"role", "text", "timestamp", "context"})


@dataclass(slots=True)
class Exchanged:
    """Counts of an exchange; `why`: the last refusal."""

    sent: int = 0
    received: int = 0
    refused: int = 0
    edits: int = 0
    why: str | None = None


async def push(orchestrator: Orchestrator, remote: RemoteRegistry, done: Exchanged) -> None:
    """Send messages and edits that the remote registry does not have, oldest first. Raises Unreachable."""
    registry = orchestrator.registry
    stored_key = await registry.read(find_key)
    key = stored_key if stored_key else await registry.write(key_of)
    url = remote.notes_url = await registry.read(lambda tx: notes.known_address(tx, remote.url))
    # all messages up to this number were sent; 0 after a restoration
    sent = await registry.read(lambda tx: 0 if is_anything_restored(tx, url) else notes.sync_progress(tx, url).sent)
    after = sent

    def find(tx: ReadTransaction) -> notes.Unsent | None:
        # continue after the last batch first: scanning all sent messages each time would take longest
        return notes.next_unsent(tx, url, MAX_MESSAGES, after) or (
            notes.next_unsent(tx, url, MAX_MESSAGES, sent) if after > sent else None
        )

    while unsent := await registry.read(find):
        after = min(row.number for row in unsent.messages[unsent.known :])
        ids = await _send(registry, remote, replace(unsent, key=key), done)
        await registry.write(partial(_note_sent, url=url, ids=ids, grown=unsent.grown))
    await registry.write(lambda tx: notes.note_all_sent(tx, url, sent))
    await _push_edits(registry, remote, key, done)


def _note_sent(tx: WriteTransaction, url: str, ids: Mapping[int, str | None], grown: Sequence[int]) -> None:
    notes.note_messages(tx, url, ids)
    note_edits_sent(tx, url, dict.fromkeys(grown))
    notes.note_answer(tx, url)


async def _push_edits(registry: Registry, remote: RemoteRegistry, key: bytes, done: Exchanged) -> None:
    while unsent := await registry.read(lambda tx: unsent_edits(tx, remote.notes_url)):
        edits = {number: edit for number, edit in unsent.items() if edit}
        edits |= {
            number: replace(edit, value=mask_value(edit.value, key))
            for number, edit in edits.items()
            if isinstance(edit.value, str)
        }
        numbers = [number for number, edit in edits.items() if edit.field == GROWN]
        grown = {number: await _push_grown(registry, remote, number, edits.pop(number), key) for number in numbers}
        try:
            answers = await remote.apply_edits(list(edits.values())) if edits else []
        except RemoteRefused as exc:  # not allowed by the token
            logger.warning("Names, tags and deletions were not sent: %s", exc)
            return
        errors = dict.fromkeys(unsent) | grown | dict(zip(edits, answers, strict=True))
        await registry.write(partial(note_edits_sent, url=remote.notes_url, whys=errors))
        done.edits += sum(error is None for error in answers)
        done.why = next(filter(None, errors.values()), done.why)


async def _push_grown(registry: Registry, remote: RemoteRegistry, number: int, edit: Edit, key: bytes) -> str | None:
    """Send a message that its client has extended; return an error if it must be retried."""
    unsent = await registry.read(lambda tx: notes.grown_message(tx, number, edit.value["id"]))
    if unsent:
        try:
            await remote.log({**await _conversation(replace(unsent, key=key)), "grows": edit.value["id"]})
        except NotGrown as exc:  # its text was changed there
            logger.warning("The remote registry has changed a message, so its longer text was not sent: %s", exc)
        except RemoteRefused as exc:  # not allowed by the token
            logger.warning("The remote registry refused the longer text of a message: %s", exc)
            return str(exc)
    return None


async def _send(
    registry: Registry, remote: RemoteRegistry, unsent: notes.Unsent, done: Exchanged
) -> dict[int, str | None]:
    """Send the new messages of a batch; return their ids there by number, None for a refused message."""
    new = unsent.messages[unsent.known :]
    try:
        answer = await remote.log(await _conversation(unsent))
    except RemoteRefused as exc:
        if len(new) > 1 and not isinstance(exc, ChannelRefused):
            return await _send_one_by_one(registry, remote, unsent, done)
        logger.warning("The remote registry refused messages: %s", exc)
        answer = {"stored_ids": [], "not_kept": str(exc)}
    stored = answer["stored_ids"][unsent.known :]
    if not stored:  # refused, or not stored there: private, forgotten, or excluded by a rule
        done.refused, done.why = done.refused + len(new), answer.get("not_kept")
        return {row.number: None for row in new}
    name, number = str(answer["channel"]), unsent.channel.number
    if name != unsent.channel.name:  # the name belongs to another person there; answers use the new one
        known = {
            row.number: id_ for row, id_ in zip(unsent.messages, answer["stored_ids"][: unsent.known], strict=False)
        }

        def note(tx: WriteTransaction) -> None:
            add_alias(tx, name, number)
            notes.note_other_ids(tx, remote.notes_url, known)

        await registry.write(note)
    done.sent += len(new)
    return dict(zip((row.number for row in new), stored, strict=True))


async def _send_one_by_one(
    registry: Registry, remote: RemoteRegistry, unsent: notes.Unsent, done: Exchanged
) -> dict[int, str | None]:
    """Send messages one by one, each with the accepted ones before it as context."""
    taken = list(unsent.messages[: unsent.known])
    ids: dict[int, str | None] = {}
    for row in unsent.messages[unsent.known :]:
        before = taken[-notes.MAX_CONTEXT :]
        known = {**unsent.ids, **ids}
        one = replace(unsent, messages=[*before, row], known=len(before), ids=known)
        ids |= await _send(registry, remote, one, done)
        taken += [row] if ids[row.number] else []
    return ids


async def _conversation(unsent: notes.Unsent) -> dict[str, Any]:
    messages = [_message(one, unsent.ids.get(one.number)) for one in unsent.messages]
    row = unsent.channel
    title = mask_value(row.title, unsent.key)
    about = {"session_id": row.session_id, "title": title, "project": row.meta.get("project") or row.project_path}
    return {
        "channel": row.name,
        "source": row.source,
        "messages": await asyncio.to_thread(mask_value, messages, unsent.key),
        "meta": {name: value for name, value in about.items() if value},
    }


def _message(row: MessageRow, stored_id: str | None) -> dict[str, Any]:
    ids = {"native_id": row.native_id} if row.native_id else {}
    ids |= {"stored_id": stored_id} if stored_id else {}
    return {**ids, **_as_sent(message_item(row))}


def _as_sent(item: Mapping[str, Any]) -> dict[str, Any]:
    more = {name: value for name, value in item["payload"].items() if name not in _SENT_APART}
    context = {"context": item["context"]} if item["context"] else {}
    return {**more, **context, "role": item["role"], "text": item["text"], "timestamp": item["timestamp"]}


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
    """Apply an edit of the remote registry here; fetch a restored message that is not here yet."""
    if edit.field == GROWN:
        await _pull_grown(orchestrator, remote, edit.value["id"], edit.value["digest"])
        return
    remote_ids = edit.value["ids"] if edit.field == FORGOTTEN else [edit.message_id] if edit.message_id else []
    local_ids = await orchestrator.registry.read(lambda tx: notes.ids_here(tx, remote.notes_url, remote_ids))
    if edit.field == FORGOTTEN:
        is_channel = edit.value["is_channel"] and not await orchestrator.registry.read(
            lambda tx: notes.has_messages_of_others(tx, remote.notes_url, remote_ids)
        )
        local_edit = replace(edit, value={"is_channel": is_channel, "ids": list(local_ids.values())})
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
        await _pull_restored(orchestrator, remote, edit, done)


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
        answer = await orchestrator.run({**given, "messages": [{**_as_sent(item), STORED_ID: our_id}]}, client=CLIENT)
        _raise_transient(answer.get("error"))


async def _pull_restored(orchestrator: Orchestrator, remote: RemoteRegistry, edit: Edit, done: Exchanged) -> None:
    try:
        items = [await remote.message(edit.message_id)] if edit.message_id else await remote.messages(edit.names[0])
    except RemoteRefused:  # it was deleted again meanwhile
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
    given = storable(
        {
            "channel": name,
            "source": channel["source"],
            "messages": [_as_sent(item) for item in items],
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
