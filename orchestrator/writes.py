"""What `cr_write` stores, for each operation that stores. Each runs inside the one write transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestrator.operations import Operation
from orchestrator.queries import delivered
from orchestrator.relevance import tokens_in
from orchestrator.requests import (
    BriefingRequest,
    DeleteRequest,
    ExtractRequest,
    HeardRequest,
    ImportRequest,
    LogRequest,
    RestoreRequest,
    TagQuery,
    TagRequest,
)
from orchestrator.state import GeneralState, Run
from registry.domain import Message, Role, format_time, new_id, now
from registry.errors import InvalidRequest
from registry.ingest.from_client import ingest_from_client
from registry.ingest.from_hook import ingest_from_hook
from registry.ingest.from_tool import ingest_from_tool
from registry.ingest.save import Saved
from registry.storage.channels import ChannelRow, channel_item, edit_channel, get_channel, tags_of
from registry.storage.client_stores import SeenSession, save_seen_sessions
from registry.storage.database import WriteTransaction
from registry.storage.extract_results import save_result
from registry.storage.messages import delete_channel, delete_message, restore_channel, restore_message
from registry.storage.references import latest_channel, resolve_session


def conversation_log(
    tx: WriteTransaction, run: Run, request: LogRequest | HeardRequest, _state: GeneralState
) -> dict[str, Any]:
    """Store what is new of a conversation."""
    if isinstance(request, HeardRequest):
        channel, saved = ingest_from_hook(tx, request.source, request.session)
        return _logged(run, channel, saved, len(request.session.messages))
    messages = [
        Message(Role(sent.role), sent.text, sent.timestamp, sent.context, sent.model_extra or {})
        for sent in request.messages
    ]
    channel, saved = ingest_from_tool(
        tx,
        request.channel,
        messages,
        source=request.source,
        metadata=request.metadata.model_dump(exclude_none=True),
        received_at=now(),
    )
    return {**_logged(run, channel, saved, len(messages)), "channel": request.channel}


def _logged(run: Run, channel: str, saved: Saved, count: int) -> dict[str, Any]:
    run.recorder.channel = channel
    run.recorder.explain(channel=channel, new=saved.new, duplicates=count - saved.new)
    return {
        "stored_ids": saved.ids,
        "timestamp": format_time(saved.received_at),
        "channel": channel,
        "message_count": count,
        "new_count": saved.new,
        "duplicate_count": count - saved.new,
    }


def import_sessions(tx: WriteTransaction, run: Run, request: ImportRequest, _state: GeneralState) -> dict[str, Any]:
    """Store what is new in some sessions of a client's own store, and that they were read."""
    new = sent = 0
    seen = []
    for found in request.found:
        number = None
        if found.session.messages:
            saved = ingest_from_client(tx, request.source, found.session)
            new, sent, number = new + saved.new, sent + len(saved.ids), saved.channel_number
        seen.append(SeenSession(found.key, found.fingerprint, number))
    save_seen_sessions(tx, request.source, request.store, seen)
    run.recorder.explain(store=request.store, sessions=len(request.found), new=new, duplicates=sent - new)
    return {"sessions": len(request.found), "new_count": new, "duplicate_count": sent - new}


def extract(tx: WriteTransaction, run: Run, request: ExtractRequest, state: GeneralState) -> dict[str, Any]:
    """Keep what was delivered, to whom: ids, never texts."""
    found: dict[str, Any] = state["result"]
    ids = [message["id"] for message in found["messages"]]
    about = {
        "execution_id": run.recorder.id,
        "source": request.source,
        "client": run.recorder.client,
        "query": request.query.model_dump(mode="json", by_alias=True, exclude_none=True),
        **found.pop("ranking", {}),
    }
    result_id = found.pop("extract_id")
    save_result(
        tx,
        result_id,
        record_type="extract_result",
        channel=found["channel"],
        result_type=request.query.mode,
        items=ids,
        metadata=about,
        timestamp=now(),
    )
    # A summary stands for its messages; their ids are kept with the result.
    shown = [] if "summary" in found else [delivered(message) for message in found["messages"]]
    texts = [str(found["summary"])] if "summary" in found else [message["text"] for message in shown]
    run.recorder.explain(extract_result=result_id, delivered=ids, tokens=sum(map(tokens_in, texts)))
    return {**found, "messages": shown}


def tag(tx: WriteTransaction, run: Run, request: TagRequest, _state: GeneralState) -> dict[str, Any]:
    """Name a channel."""
    changes = request.query.model_dump(exclude_unset=True, include={"title", "nickname"})
    meant = resolve_session(tx, request.channel) if request.channel else latest_channel(tx, request.source)
    run.recorder.channel = meant.name
    row = edit_channel(tx, meant.name, changes, _tags_after(tx, meant, request.query))
    run.recorder.explain(channel=meant.name, changed=sorted(request.query.model_fields_set))
    return {"channel": channel_item(row, tags_of(tx, [row.number])[row.number])}


def _tags_after(tx: WriteTransaction, row: ChannelRow, query: TagQuery) -> list[str] | None:
    """All tags the channel shall have; None leaves them."""
    if not (query.add_tags or query.remove_tags):
        return query.tags
    kept = tags_of(tx, [row.number])[row.number] if query.tags is None else query.tags
    return [name for name in [*kept, *query.add_tags] if name not in query.remove_tags]


def delete(tx: WriteTransaction, run: Run, request: DeleteRequest, _state: GeneralState) -> dict[str, Any]:
    """Delete a message, or a whole channel."""
    run.recorder.explain(id=request.query.id, channel=request.channel, soft=request.query.soft)
    if request.query.id:
        return _one_message(run, delete_message(tx, request.query.id, soft=request.query.soft))
    if request.channel is None:
        raise InvalidRequest("Nothing to delete was named.", "query.id: missing; allowed: an id, or a channel")
    row = get_channel(tx, request.channel)
    item = channel_item(row, tags_of(tx, [row.number])[row.number])
    delete_channel(tx, row, soft=request.query.soft)
    return {"channel": {**item, "deleted": True}}


def restore(tx: WriteTransaction, run: Run, request: RestoreRequest, _state: GeneralState) -> dict[str, Any]:
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


def daily_briefing(tx: WriteTransaction, run: Run, request: BriefingRequest, state: GeneralState) -> dict[str, Any]:
    """Keep a briefing: the ids it was made of, and its text."""
    result_id = new_id("brief")
    text = state["transformed_data"]
    save_result(
        tx,
        result_id,
        record_type="briefing",
        channel=f"briefing_{request.query.date}",
        result_type="summary",
        items=[message["id"] for message in state["data"]],
        metadata={"execution_id": run.recorder.id, "date": str(request.query.date), "text": text},
        timestamp=now(),
    )
    run.recorder.explain(briefing=result_id)
    return {"briefing": {"id": result_id, "date": str(request.query.date), "text": text}}


WRITES: dict[Operation, Callable[..., dict[str, Any]]] = {
    Operation.CONVERSATION_LOG: conversation_log,
    Operation.IMPORT: import_sessions,
    Operation.EXTRACT: extract,
    Operation.TAG: tag,
    Operation.DELETE: delete,
    Operation.RESTORE: restore,
    Operation.DAILY_BRIEFING: daily_briefing,
}
