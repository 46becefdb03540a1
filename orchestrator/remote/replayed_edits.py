"""Repeat edits of another machine here, by the operations that made them there."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from registry.domain import format_time, parse_time
from registry.storage.conversations.messages import place_of_message
from registry.storage.database import Database, ReadTransaction
from registry.storage.exchange import edits

Ask = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]  # runs an operation
SOURCE = "remote"


async def replay(ask: Ask, registry: Database, edit: Mapping[str, Any]) -> dict[str, Any] | None:
    """Repeat an edit as another registry sent it (`Edit.as_dict`); return the error if it fails."""
    return await carry_out(ask, registry, edits.Edit(**{**edit, "done_at": parse_time(edit["done_at"])}))


async def carry_out(ask: Ask, registry: Database, said: edits.Edit) -> dict[str, Any] | None:
    """Repeat an edit, with ids of this registry; return the error if it fails."""
    for request in await registry.read(lambda tx: _requests(tx, said)):
        answer = await ask({**request, "source": SOURCE, "timestamp": format_time(said.done_at)})
        if not answer["success"]:
            error: dict[str, Any] = answer["error"]
            return error
    return None


def _requests(tx: ReadTransaction, said: edits.Edit) -> list[dict[str, Any]]:
    """Return the operations that repeat an edit; none if it is done already, or its target is not here."""
    if said.field == edits.FORGOTTEN:
        return _forgetting(tx, said)
    if said.field == edits.GROWN:  # the message itself is sent
        return []
    if said.message_id:
        found = place_of_message(tx, said.message_id)
        if found is None or edits.is_known(tx, *found, said):
            return []
        return [{"operation": _DELETING[said.value], "query": {"id": said.message_id}}]
    rows = [row for row in edits.channels_meant(tx, said) if not edits.is_known(tx, row.number, None, said)]
    if said.field == edits.DELETED:
        changed = [row for row in rows if row.deleted != said.value]
        return [{"operation": _DELETING[said.value], "channel": row.name, "query": {}} for row in changed]
    operation, query = ("share", said.value) if said.field == edits.SHARED else ("tag", _naming(said))
    return [{"operation": operation, "channel": row.name, "query": query} for row in rows]


_DELETING = {True: "delete", False: "restore"}


def _naming(said: edits.Edit) -> dict[str, Any]:
    if not said.field.startswith(edits.TAGGED):
        return {said.field: said.value}
    return {"add_tags" if said.value else "remove_tags": [said.field.removeprefix(edits.TAGGED)]}


def _forgetting(tx: ReadTransaction, said: edits.Edit) -> list[dict[str, Any]]:
    channels = edits.channels_of_messages(tx, said.value["ids"])
    if said.value["is_channel"]:
        names = dict.fromkeys(channels.values())
        return [{"operation": "delete", "channel": name, "query": {"soft": False}} for name in names]
    return [{"operation": "delete", "query": {"soft": False, "id": id_}} for id_ in channels]
