"""Send new messages and edits to the remote registry."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from orchestrator.remote.client import ChannelRefused, NotGrown, RemoteRefused, RemoteRegistry
from orchestrator.remote.exchange import Exchanged, as_sent
from registry.storage.conversations.channels import REPOSITORY
from registry.storage.conversations.messages import MessageRow, message_item
from registry.storage.conversations.references import add_alias
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.exchange import remote as notes
from registry.storage.exchange.edits import GROWN, Edit, is_anything_restored, note_edits_sent, unsent_edits
from registry.storage.safety.masking import find_key, key_of
from registry.text.privacy.masking import mask_value

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator
    from registry.registry import Registry

logger = logging.getLogger(__name__)

MAX_MESSAGES = 200  # messages in one request


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
    if name != unsent.channel.name:  # the name belongs to another person or session there; answers use the new one
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
    about = {
        "session_id": row.session_id,
        "title": title,
        "project": row.meta.get("project") or row.project_path,
        REPOSITORY: row.repository,
    }
    return {
        "channel": row.name,
        "source": row.source,
        "is_pushed": True,
        "messages": await asyncio.to_thread(mask_value, messages, unsent.key),
        "meta": {name: value for name, value in about.items() if value},
    }


def _message(row: MessageRow, stored_id: str | None) -> dict[str, Any]:
    ids = {"native_id": row.native_id} if row.native_id else {}
    ids |= {"stored_id": stored_id} if stored_id else {}
    return {**ids, **as_sent(message_item(row))}
