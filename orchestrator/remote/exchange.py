"""Sending what is new here to a registry elsewhere, and bringing in what is new there.

Both go the way of every conversation that a tool logs, so each side recognises what it has: what is sent twice, after
a crash on either side or from two machines with the same history, is stored once. What is noted (`registry.storage.
remote`) only spares sending it again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from orchestrator.remote.client import Changes, Refused, RemoteRegistry
from registry.errors import OperationTimeout, StorageError
from registry.storage.channels import find_channel
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.messages import MessageRow, message_item
from registry.storage.remote import (
    Unsent,
    ids_known,
    last_messages,
    next_unsent,
    note_all_sent,
    note_answer,
    note_messages,
    numbers_of_ids,
    reached,
)

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator

logger = logging.getLogger(__name__)

MOST = 200
"""Messages sent at a time."""
CLIENT = "ctxr pull"
_PASSING = {error.code: error for error in (StorageError, OperationTimeout)}
"""What could not be stored for these reasons is asked for again."""
_OWN = frozenset({"role", "text", "timestamp", "context"})


@dataclass(slots=True)
class Exchanged:
    """How many messages went, came and were refused, and why the last of these was."""

    sent: int = 0
    received: int = 0
    refused: int = 0
    why: str | None = field(default=None)


async def push(orchestrator: Orchestrator, remote: RemoteRegistry, done: Exchanged) -> None:
    """Send what is not there yet, oldest first; Unreachable ends it, and the rest waits."""
    registry = orchestrator.registry
    sent = (await registry.read(lambda tx: reached(tx, remote.url))).sent
    while unsent := await registry.read(lambda tx: next_unsent(tx, remote.url, MOST, sent)):
        ids = await _sent(remote, unsent, done)
        noted = dict(ids)

        def note(tx: WriteTransaction, noted: Mapping[int, str | None] = noted) -> None:
            note_messages(tx, remote.url, noted)
            note_answer(tx, remote.url)

        await registry.write(note)
    await registry.write(lambda tx: note_all_sent(tx, remote.url))


async def _sent(remote: RemoteRegistry, unsent: Unsent, done: Exchanged) -> dict[int, str | None]:
    """What the new messages are called there; one that it does not take goes by itself, and holds up no other."""
    new = unsent.messages[unsent.known :]
    try:
        answer = await remote.log(_conversation(unsent))
    except Refused as exc:
        if len(new) > 1:
            ids: dict[int, str | None] = {}
            for row in new:
                ids |= await _sent(remote, Unsent(unsent.channel, [row], 0), done)
            return ids
        logger.warning("Not taken elsewhere: %s", exc)
        done.refused, done.why = done.refused + 1, str(exc)
        return {new[0].number: None}
    stored = answer["stored_ids"][unsent.known :]
    if not stored:  # it is not kept there: private, forgotten, or by a rule
        done.refused, done.why = done.refused + len(new), answer.get("not_kept")
        return {row.number: None for row in new}
    done.sent += len(new)
    return dict(zip((row.number for row in new), stored, strict=True))


def _conversation(unsent: Unsent) -> dict[str, Any]:
    row = unsent.channel
    about = {"session_id": row.session_id, "title": row.title, "project": row.meta.get("project") or row.project_path}
    return {
        "channel": row.name,
        "source": row.source,
        "messages": [_message(one) for one in unsent.messages],
        "meta": {name: value for name, value in about.items() if value},
    }


def _message(row: MessageRow) -> dict[str, Any]:
    named = {"native_id": row.native_id} if row.native_id else {}
    return {**named, **_as_sent(message_item(row))}


def _as_sent(item: Mapping[str, Any]) -> dict[str, Any]:
    more = {name: value for name, value in item["payload"].items() if name not in _OWN}
    context = {"context": item["context"]} if item["context"] else {}
    return {**more, **context, "role": item["role"], "text": item["text"], "timestamp": item["timestamp"]}


async def pull(orchestrator: Orchestrator, remote: RemoteRegistry, done: Exchanged) -> None:
    """Bring in what is new there; what ends it leaves the rest for the next time.

    Raises Unreachable; StorageError or OperationTimeout where it cannot be stored here.
    """
    registry = orchestrator.registry
    place = (await registry.read(lambda tx: reached(tx, remote.url))).place
    while True:
        changes = await remote.changes(place)
        for name, items in await _by_channel(orchestrator, remote, changes):
            await _received(orchestrator, remote, name, items, done)
        place = changes.place
        await registry.write(partial(note_answer, url=remote.url, place=place))
        if changes.is_all:
            return


async def _by_channel(
    orchestrator: Orchestrator, remote: RemoteRegistry, changes: Changes
) -> list[tuple[str, list[dict[str, Any]]]]:
    """What is not from here, by channel."""
    ids = [item["id"] for item in changes.items]
    known = await orchestrator.registry.read(lambda tx: ids_known(tx, remote.url, ids))
    new = sorted((item for item in changes.items if item["id"] not in known), key=lambda item: str(item["channel"]))
    return [(name, list(items)) for name, items in groupby(new, key=lambda item: str(item["channel"]))]


async def _received(
    orchestrator: Orchestrator, remote: RemoteRegistry, name: str, items: Sequence[dict[str, Any]], done: Exchanged
) -> None:
    try:
        about = await remote.channel(name)
    except Refused as exc:  # it was deleted there meanwhile
        done.refused, done.why = done.refused + len(items), str(exc)
        return
    session_id = about["session_id"] if about["session_id"] != name else None
    before = await orchestrator.registry.read(lambda tx: _end_of(tx, name))
    meta = {"session_id": session_id, "title": about["title"], "project": about["project_path"]}
    answer = await orchestrator.run(
        {
            "operation": "conversation_log",
            "channel": name,
            "source": about["source"],
            "messages": [*before, *(_as_sent(item) for item in items)],
            "metadata": {key: value for key, value in meta.items() if value},
        },
        CLIENT,
    )
    if not answer["success"]:
        error = answer["error"]
        if error["code"] in _PASSING:
            raise _PASSING[error["code"]](error["message"], error["details"])
        done.refused, done.why = done.refused + len(items), error["message"]
        return
    stored = answer["stored_ids"][len(before) :]
    done.received += len(stored)
    theirs = [item["id"] for item in items]

    def note(tx: WriteTransaction) -> None:
        numbers = numbers_of_ids(tx, stored)
        pairs = zip(stored, theirs, strict=False)
        note_messages(tx, remote.url, {numbers[here]: there for here, there in pairs if here in numbers})

    await orchestrator.registry.write(note)


def _end_of(tx: ReadTransaction, name: str) -> list[dict[str, Any]]:
    row = find_channel(tx, name)
    return [_message(one) for one in last_messages(tx, row.number)] if row else []
