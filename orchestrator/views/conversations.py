"""Read channels and messages for lists and pages."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from orchestrator.answer.conversation_state import touched_files
from orchestrator.operations.fetch_session import document_of, other_names
from registry.domain import Role, format_time, preview_of
from registry.errors import NotFound, RegistryError
from registry.monitor.token_usage import usage_of_channel
from registry.storage.conversations import channels, message_windows, messages
from registry.storage.conversations.belonging import drop_view as drop_view
from registry.storage.conversations.belonging import has_pin
from registry.storage.conversations.belonging import list_views as list_views
from registry.storage.conversations.belonging import pinned_channels as pinned_channels
from registry.storage.conversations.belonging import save_view as save_view
from registry.storage.conversations.channels import REPOSITORY, ChannelRow, find_channel, get_channel, item_of
from registry.storage.conversations.facets import known_names, repositories_by_activity
from registry.storage.conversations.images import image_at, image_positions
from registry.storage.conversations.messages import MessageRow, by_ids, by_numbers, get_message, message_item
from registry.storage.conversations.messages import list_messages as list_messages
from registry.storage.conversations.references import links_of, resolve_session
from registry.storage.database import ReadTransaction
from registry.storage.exchange.change_feed import newest_position
from registry.storage.paging import Page as Page
from registry.storage.records.executions import get_execution, runs_of_others
from registry.storage.records.extract_results import get_result
from registry.storage.records.extract_results import latest_briefings as latest_briefings
from registry.storage.records.extract_results import list_results as list_results

LATEST = "latest"


def list_channels(tx: ReadTransaction, filters: dict[str, Any], page: Page) -> dict[str, Any]:
    """Return a page of channels by last activity; deleted ones with the facts of `described_deleted`."""
    found = channels.list_channels(tx, filters, page)
    if filters.get("deleted"):
        found["items"] = described_deleted(tx, found["items"])
    return found


def described_deleted(tx: ReadTransaction, items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add to deleted channels the number of their messages and, if they have no title, the first question."""
    counts = message_windows.counts_with_deleted(tx, [item["channel"] for item in items])
    unnamed = [item["channel"] for item in items if not (item["title"] or item["first_message_preview"])]
    questions = message_windows.first_questions(tx, unnamed) if unnamed else {}
    return [
        {
            **item,
            "message_count": counts.get(item["channel"], 0),
            "first_message_preview": item["first_message_preview"]
            or preview_of(questions.get(item["channel"], ""))
            or None,
            "deleted": True,
        }
        for item in items
    ]


def show_channel(tx: ReadTransaction, name: str) -> dict[str, Any]:
    row = get_channel(tx, name)
    repository = {REPOSITORY: row.repository} if row.repository else {}
    return {**item_of(tx, row), **other_names(tx, row), **repository}


def show_message(tx: ReadTransaction, message_id: str, *, include_deleted: bool = True) -> dict[str, Any]:
    return message_item(get_message(tx, message_id, include_deleted=include_deleted))


def show_message_with_images(tx: ReadTransaction, message_id: str) -> dict[str, Any]:
    [item] = _items_with_images(tx, [get_message(tx, message_id, include_deleted=True)])
    return item


def attached_image(tx: ReadTransaction, message_id: str, position: int) -> bytes:
    content = image_at(tx, get_message(tx, message_id, include_deleted=True).number, position)
    if content is None:
        raise NotFound("No such picture", f"Message {message_id!r} has no picture {position}")
    return content


def _items_with_images(tx: ReadTransaction, rows: Sequence[MessageRow]) -> list[dict[str, Any]]:
    """Return conversation items, each with the positions of those attachments that are stored."""
    found = image_positions(tx, [row.number for row in rows])
    return [{**message_item(row), "images": found.get(row.number, [])} for row in rows]


def list_header(tx: ReadTransaction, *, is_newest: bool) -> dict[str, Any]:
    """Return the feed position and the clients for the list of conversations."""
    return {"place": str(newest_position(tx)) if is_newest else None, "sources": sorted(known_names(tx).sources)[:50]}


def rail(tx: ReadTransaction) -> dict[str, Any]:
    """Return the sidebar of every page: pinned conversations, saved views, projects."""
    return {
        "pinned": pinned_channels(tx, 20),
        "views": list_views(tx),
        "projects": [
            {"name": name, "path": path, "channels": count} for name, path, count in repositories_by_activity(tx, 8)
        ],
    }


def find_by_id(tx: ReadTransaction, pasted: str) -> tuple[str, str] | None:
    """Return the kind ("channel", "message" or "execution") and id of a pasted id; None if it is unknown."""
    try:
        return _FINDERS.get(pasted.partition("_")[0], _find_channel)(tx, pasted)
    except RegistryError:
        return None


def _find_channel(tx: ReadTransaction, pasted: str) -> tuple[str, str] | None:
    row = resolve_session(tx, pasted)
    return ("channel", row.name) if pasted in (row.name, row.session_id, row.nickname) else None


def _find_message(tx: ReadTransaction, pasted: str) -> tuple[str, str]:
    return "message", get_message(tx, pasted, include_deleted=True).id


_FINDERS: dict[str, Callable[[ReadTransaction, str], tuple[str, str] | None]] = {
    "conv": _find_message,
    "snap": _find_message,
    "exec": lambda tx, id_: ("execution", get_execution(tx, id_)["id"]),
    "ext": lambda tx, id_: ("execution", get_result(tx, id_).metadata["execution_id"]),
}


class MessageRange(NamedTuple):
    size: int  # messages in it
    ahead: int  # messages before the one of `at`
    at: str | None = None  # a message's id, or `latest`
    after: str | None = None
    before: str | None = None  # cursors
    deleted: bool = False  # only deleted messages; ignored for a deleted conversation, which is shown in full


def conversation(tx: ReadTransaction, name: str, wanted: MessageRange, *, has_outline: bool = True) -> dict[str, Any]:
    """Return a range of a conversation's messages with the facts for its page."""
    position = str(newest_position(tx))
    row = find_channel(tx, name)
    if row is None:
        raise NotFound("No such conversation", f"No channel {name!r} in the registry")
    window = _window(tx, row, wanted)
    questions = message_windows.questions_of(tx, row.number, deleted=row.deleted) if has_outline else []
    item = item_of(tx, row)
    if row.deleted:
        [item] = described_deleted(tx, [item])
    return {
        "place": position,
        "channel": item,
        "maybe_same_as": links_of(tx, row.number),
        "model": channels.model_facts(row),
        "usage": usage_of_channel(tx, row.number),
        "is_deleted": row.deleted,
        "is_pinned": has_pin(tx, row.number),
        "questions": [
            {
                "id": one.id,
                "preview": preview_of(one.text),
                "timestamp": format_time(one.timestamp),
                "is_undone": one.superseded is not None,
            }
            for one in questions
        ],
        "messages": _items_with_images(tx, window.rows),
        "earlier": window.earlier,
        "later": window.later,
    }


def _window(tx: ReadTransaction, row: ChannelRow, wanted: MessageRange) -> message_windows.Window:
    size, ahead, at, after, before, _ = wanted
    deleted = None if row.deleted else wanted.deleted
    if at and at != LATEST:
        message = get_message(tx, at, include_deleted=deleted is not False)
        if message.channel_number != row.number:
            raise NotFound("No such message", f"Message {at!r} is not in this conversation")
        return message_windows.window_around(tx, message, ahead, size, deleted=deleted)
    goes_back = at == LATEST or before is not None
    page = Page(size, before if goes_back else after, "desc" if goes_back else "asc")
    return message_windows.read_window(tx, row.number, page, deleted=deleted)


def hits_in(tx: ReadTransaction, channel: str, ids: Sequence[str], words: str, most: int) -> list[dict[str, Any]]:
    """Return these messages of a channel and those that contain the exact words, in order of time."""
    containing = message_windows.numbers_containing(tx, get_channel(tx, channel).number, words, most)
    rows = {row.number: row for row in [*by_ids(tx, ids), *by_numbers(tx, containing)]}
    found = sorted(rows.values(), key=lambda row: (row.timestamp, row.number))[:most]
    return [
        {
            "id": row.id,
            "timestamp": format_time(row.timestamp),
            "text": row.text,
            "is_undone": "superseded" in row.payload,
        }
        for row in found
    ]


def transcript(tx: ReadTransaction, name: str) -> dict[str, Any]:
    """Return a session and its messages for an export; with `channel`, so that the reading is recorded."""
    row = get_channel(tx, name)
    session, messages_of_it = document_of(tx, row)
    return {"channel": row.name, "session": session, "messages": messages_of_it}


def margin(tx: ReadTransaction, name: str) -> dict[str, Any]:
    """Return the margin of a conversation's page: files its tools touched, deliveries of its messages, readers."""
    row = get_channel(tx, name)
    calls = messages.messages_of(tx, row.number, limit=200, roles=(Role.TOOL,))
    files = dict.fromkeys(path for call in reversed(calls) for path in touched_files(call.payload))
    results = list_results(tx, row.name, Page(8, None, "desc"))["items"]
    return {
        "channel": item_of(tx, row),
        "files": [path for path in files if path != row.project_path],
        "deliveries": [one for one in results if one["metadata"]],
        "readers": runs_of_others(tx, row, 20),
    }
