"""restore: undo a soft deletion."""

from typing import Any

from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import GeneralState, Operation, Run, Steps
from registry.access import Level
from registry.errors import InvalidRequest
from registry.storage.conversations.channels import find_channel, item_of
from registry.storage.conversations.messages import (
    get_message,
    message_item,
    restore_channel,
    restore_message,
    set_deleted_with_channel,
)
from registry.storage.database import WriteTransaction
from registry.storage.exchange.edits import DELETED, deletion_of, record_edits, record_restored_messages


class RestoreQuery(QueryShape):
    """The deleted message; without an id, all messages of the request's channel."""

    id: str | None = None


class RestoreRequest(Request):
    operation = "restore"
    query: RestoreQuery


def restore(tx: WriteTransaction, run: Run, request: RestoreRequest, _state: GeneralState) -> dict[str, Any]:
    run.recorder.explain(id=request.query.id, channel=request.channel)
    if request.query.id:
        message = get_message(tx, request.query.id, include_deleted=True)
        is_newer = record_edits(tx, message.channel_number, {DELETED: False}, request.timestamp, message.number)
        deletion = deletion_of(tx, message.channel_number) if request.timestamp and is_newer else None
        if deletion and deletion.done_at > request.timestamp:  # the channel was deleted later, with this message
            is_newer = {}
            set_deleted_with_channel(tx, message)
        run.recorder.set_channel(message.channel)
        return {"message": restore_message(tx, message.id) if is_newer else message_item(message)}
    if request.channel is None:
        raise InvalidRequest("Nothing to restore was named.", "query.id: missing; allowed: an id, or a channel")
    row = find_channel(tx, request.channel)
    if row and request.timestamp is None:
        record_restored_messages(tx, row.number)
    if row is None or record_edits(tx, row.number, {DELETED: False}, request.timestamp):
        row = restore_channel(tx, request.channel)
    return {"channel": item_of(tx, row)}


OPERATION = Operation(
    request=RestoreRequest,
    level=Level.WRITE,
    names_channel=True,
    steps=Steps[RestoreRequest, None](write=restore),
)
