"""supersede: mark a message that was undone or replaced in its client on another machine, or is valid again."""

from typing import Any

from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import GeneralState, Operation, Run, Steps
from registry.access import Level
from registry.storage.conversations.messages import get_message, message_item, set_superseded
from registry.storage.database import WriteTransaction
from registry.storage.exchange.edits import SUPERSEDED, record_edits


class SupersedeQuery(QueryShape):
    """The message, and whether it is superseded."""

    id: str
    superseded: bool = True


class SupersedeRequest(Request):
    operation = "supersede"
    query: SupersedeQuery


def supersede(tx: WriteTransaction, run: Run, request: SupersedeRequest, _state: GeneralState) -> dict[str, Any]:
    query = request.query
    run.recorder.explain(id=query.id, superseded=query.superseded)
    message = get_message(tx, query.id, include_deleted=True)
    run.recorder.set_channel(message.channel)
    edit = {SUPERSEDED: query.superseded}
    if record_edits(tx, message.channel_number, edit, request.timestamp, message.number):
        set_superseded(tx, [message], query.superseded)
    return {"message": message_item(get_message(tx, message.id, include_deleted=True))}


OPERATION = Operation(
    request=SupersedeRequest,
    level=Level.WRITE,
    steps=Steps[SupersedeRequest, None](write=supersede),
    labels={"superseded": ("undone or replaced", "되돌렸거나 교체함")},
)
