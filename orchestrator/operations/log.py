"""Storing conversations: what a tool or a hook sends of one, and what a reader finds in a client's own store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orchestrator.requests.shapes import HookRequest, ImportRequest, LogRequest, MessageIn, PulledRequest
from orchestrator.state import Run, State, Steps
from registry.domain import Message, Role, format_time, now
from registry.errors import InvalidRequest
from registry.ingest.dedup import STORED_ID
from registry.ingest.from_client import ingest_all
from registry.ingest.from_hook import ingest_from_hook
from registry.ingest.from_tool import ends_with, ingest_from_tool
from registry.ingest.message_rows import Ready
from registry.ingest.save import Saved
from registry.storage.client_stores import SeenSession, save_seen_sessions
from registry.storage.conversations.channels import find_channel
from registry.storage.database import WriteTransaction
from registry.storage.exchange.counterparts import NOT_GROWN, grown_to
from registry.storage.exchange.edits import Edit, channels_meant
from registry.storage.exchange.remote import last_messages, note_here, note_messages, numbers_of_ids


def conversation_log(
    tx: WriteTransaction, run: Run, request: LogRequest | HookRequest | PulledRequest, _state: State
) -> dict[str, Any]:
    """Store what is new of a conversation."""
    if isinstance(request, PulledRequest):
        return _pulled(tx, run, request)
    if isinstance(request, HookRequest):
        channel, saved = ingest_from_hook(tx, request.source, request.session)
        return _logged(run, channel, saved, len(request.session.messages))
    if request.follows and not ends_with(tx, request.channel, request.follows):
        raise InvalidRequest(
            "The conversation does not end there.",
            f"follows: given {request.follows!r}; allowed: the id of its last message, or the messages before instead",
        )
    if request.grows and grown_to(tx, request.grows, request.messages[0].text) is None:
        raise InvalidRequest(
            NOT_GROWN,
            f"grows: given {request.grows!r}; allowed: the id of one that was sent, with these words or fewer",
        )
    stored = _store_rest(tx, request) if request.known else None
    channel, saved = stored or _ingest(tx, request.whole(), is_end=bool(request.follows))
    return {**_logged(run, channel, saved, request.count), "channel": request.channel}


def _pulled(tx: WriteTransaction, run: Run, request: PulledRequest) -> dict[str, Any]:
    """Store what is not here, and note what it is called there: at once, for another process may pull the same now."""
    said = request.said
    named = Edit("", None, now(), (said.channel,), said.source, said.metadata.model_dump().get("session_id"))
    messages = dict(zip(request.ids, map(_message, said.messages), strict=True))
    new = note_here(tx, request.url, next(iter(channels_meant(tx, named)), None), messages)
    if not new:
        return _logged(run, said.channel, Saved([], 0, now(), 0), 0)
    found = find_channel(tx, said.channel)
    before = last_messages(tx, found.number) if found else []
    context = [Message(Role(row.role), row.text, row.timestamp, more={STORED_ID: row.id}) for row in before]
    channel, saved = _stored(tx, said, [*context, *(messages[there] for there in new)])
    ids = saved.ids[len(before) :]
    numbers = numbers_of_ids(tx, ids)
    note_messages(tx, request.url, {numbers[here]: there for here, there in zip(ids, new, strict=False)})
    return _logged(run, channel, replace(saved, ids=ids), len(ids))


def _store_rest(tx: WriteTransaction, request: LogRequest) -> tuple[str, Saved] | None:
    """Store what comes behind messages that are known; None where the channel does not end with these."""
    if not ends_with(tx, request.channel, request.known[-1]):
        return None
    channel, saved = _ingest(tx, request, is_end=True)
    return channel, replace(saved, ids=[*request.known, *saved.ids])


def _ingest(tx: WriteTransaction, request: LogRequest, *, is_end: bool = False) -> tuple[str, Saved]:
    return _stored(tx, request, [*map(_message, request.messages)], is_end=is_end)


def _message(sent: MessageIn) -> Message:
    return Message(Role(sent.role), sent.text, sent.timestamp, sent.context, sent.model_extra or {})


def _stored(
    tx: WriteTransaction, request: LogRequest, messages: list[Message], *, is_end: bool = False
) -> tuple[str, Saved]:
    return ingest_from_tool(
        tx,
        request.channel,
        messages,
        source=request.source,
        metadata=request.metadata.model_dump(exclude_none=True),
        received_at=now(),
        is_end=is_end,
    )


def _logged(run: Run, channel: str, saved: Saved, count: int) -> dict[str, Any]:
    run.recorder.channel = channel
    if saved.kept_out:
        run.recorder.explain(channel=channel, kept_out=saved.kept_out)
        return _not_kept(channel, saved, count)
    run.recorder.explain(channel=channel, new=saved.new, duplicates=count - saved.new)
    return {
        "stored_ids": saved.ids,
        "timestamp": format_time(saved.received_at),
        "channel": channel,
        "message_count": count,
        "new_count": saved.new,
        "duplicate_count": count - saved.new,
    }


def _not_kept(channel: str, saved: Saved, count: int) -> dict[str, Any]:
    return {
        "stored_ids": [],
        "timestamp": format_time(saved.received_at),
        "channel": channel,
        "message_count": count,
        "new_count": 0,
        "duplicate_count": 0,
        "not_kept": f"Nothing of this conversation is kept: {saved.kept_out}.",
    }


def import_sessions(tx: WriteTransaction, run: Run, request: ImportRequest, _state: State) -> dict[str, Any]:
    """Store what is new in some sessions of a client's own store, and that they were read."""
    told = [found for found in request.found if found.session.messages]
    made_ready = {at: found.ready for at, found in enumerate(told) if isinstance(found.ready, Ready)}
    stored = ingest_all(tx, request.source, [found.session for found in told], made_ready)
    numbers = iter([saved.channel_number or None for saved in stored])
    seen = [
        SeenSession(found.key, found.fingerprint, next(numbers) if found.session.messages else None)
        for found in request.found
    ]
    new, sent = sum(saved.new for saved in stored), sum(len(saved.ids) for saved in stored)
    save_seen_sessions(tx, request.source, request.store, seen)
    run.recorder.explain(store=request.store, sessions=len(request.found), new=new, duplicates=sent - new)
    return {"sessions": len(request.found), "new_count": new, "duplicate_count": sent - new}


LOG = Steps[LogRequest | HookRequest | PulledRequest, None](write=conversation_log)
IMPORT = Steps[ImportRequest, None](write=import_sessions)
