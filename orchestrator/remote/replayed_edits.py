"""Apply edits of another registry, by running the same operations here."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from registry.domain import format_time, parse_time
from registry.storage.conversations.messages import numbers_of_message
from registry.storage.database import Database, ReadTransaction
from registry.storage.exchange import edits

RunRequest = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]  # runs an operation
SOURCE = "remote"


async def replay(run_request: RunRequest, registry: Database, edit: Mapping[str, Any]) -> dict[str, Any] | None:
    """Apply an edit that another registry sent as `Edit.as_dict`; return the error if it fails."""
    return await apply_edit(run_request, registry, edits.Edit(**{**edit, "done_at": parse_time(edit["done_at"])}))


async def apply_edit(run_request: RunRequest, registry: Database, edit: edits.Edit) -> dict[str, Any] | None:
    """Apply an edit that has ids of this registry; return the error if it fails."""
    for request in await registry.read(lambda tx: _requests(tx, edit)):
        answer = await run_request({**request, "source": SOURCE, "timestamp": format_time(edit.done_at)})
        if not answer["success"]:
            error: dict[str, Any] = answer["error"]
            return error
    return None


def _requests(tx: ReadTransaction, edit: edits.Edit) -> list[dict[str, Any]]:
    """Return the operations that apply an edit; none if it is applied already, or its target is unknown."""
    if edit.field == edits.FORGOTTEN:
        return _deletion_requests(tx, edit)
    if edit.field == edits.GROWN:  # the message itself is sent
        return []
    if edit.message_id:
        found = numbers_of_message(tx, edit.message_id)
        if found is None or edits.is_edit_known(tx, *found, edit):
            return []
        if edit.field == edits.SUPERSEDED:
            return [{"operation": "supersede", "query": {"id": edit.message_id, "superseded": edit.value}}]
        return [{"operation": _OPERATION_IF_DELETED[edit.value], "query": {"id": edit.message_id}}]
    rows = [row for row in edits.matching_channels(tx, edit) if not edits.is_edit_known(tx, row.number, None, edit)]
    if edit.field == edits.DELETED:
        changed = [row for row in rows if not (edit.value and row.deleted)]
        return [{"operation": _OPERATION_IF_DELETED[edit.value], "channel": row.name, "query": {}} for row in changed]
    operation, query = ("share", edit.value) if edit.field == edits.SHARED else ("tag", _tag_query(edit))
    return [{"operation": operation, "channel": row.name, "query": query} for row in rows]


_OPERATION_IF_DELETED = {True: "delete", False: "restore"}


def _tag_query(edit: edits.Edit) -> dict[str, Any]:
    if not edit.field.startswith(edits.TAGGED):
        return {edit.field: edit.value}
    return {"add_tags" if edit.value else "remove_tags": [edit.field.removeprefix(edits.TAGGED)]}


def _deletion_requests(tx: ReadTransaction, edit: edits.Edit) -> list[dict[str, Any]]:
    """Return what forgets the messages; a channel as a whole, unless it has messages that were unknown there."""
    channels = edits.channels_of_messages(tx, edit.value["ids"])
    whole = dict.fromkeys(channels.values()) if edit.value["is_channel"] else {}
    kept = edits.channels_with_others(tx, whole, edit.value["ids"])
    ids = [id_ for id_, name in channels.items() if name in kept or name not in whole]
    return [
        *({"operation": "delete", "channel": name, "query": {"soft": False}} for name in whole if name not in kept),
        *([{"operation": "delete", "query": {"soft": False, "ids": ids}}] if ids else []),
    ]
