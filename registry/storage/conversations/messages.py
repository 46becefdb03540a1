"""Read, change, delete and restore messages. Storing new ones is `registry.ingest.save`."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter, eq, ge, le
from typing import Any

from sqlalchemy import ColumnElement, Row, bindparam, delete, exists, false, func, insert, or_, select, true, update

from registry.domain import Role
from registry.errors import NotFound
from registry.storage.column_types import shown
from registry.storage.conditions import FilterRules, Filters, filter_conditions, is_in, is_one_of
from registry.storage.conversations.channels import (
    ChannelRow,
    find_channel,
    get_channel,
    recount_channel,
    unindex_title,
)
from registry.storage.conversations.images import drop_images
from registry.storage.conversations.references import canonical_name
from registry.storage.database import ReadTransaction, WriteTransaction, update_rows
from registry.storage.index.message_index import index_of, message_entry, searched_tokens
from registry.storage.paging import Page, is_past, read_page
from registry.storage.tables import channel, conversation, edit, message_alias
from registry.text.analysis.analyzer import ANALYZER_VERSION

MessageRow = Row[*tuple[Any, ...]]  # a row of `conversation`

LATEST_FIRST = (conversation.c.timestamp.desc(), conversation.c.number.desc())


def messages_of(
    tx: ReadTransaction,
    channel_number: int,
    *,
    limit: int | None = None,
    roles: Sequence[str] | None = None,
    from_: datetime | None = None,
    to: datetime | None = None,
    before: tuple[datetime, int] | None = None,
    include_deleted: bool = False,
    only_valid: bool = False,
) -> list[MessageRow]:
    """Return the last `limit` messages of a channel, oldest first; `before`: a position (timestamp, number).

    `only_valid`: without those that the user undid, or that others replaced.
    """
    wanted = {"roles": roles, "from_": from_, "to": to, "include_deleted": include_deleted, "only_valid": only_valid}
    conditions = _conditions(wanted)
    if before:
        conditions.append(is_past(conversation.c.timestamp, before, "desc"))
    query = select(conversation).where(conversation.c.channel_number == channel_number, *conditions)
    return list(tx.execute(query.order_by(*LATEST_FIRST).limit(limit)).all()[::-1])


def first_and_last(
    tx: ReadTransaction, channel_numbers: Sequence[int], begin: int, end: int
) -> dict[int, list[MessageRow]]:
    """Return each channel's first and last messages in order, by channel number, in one statement."""
    order = conversation.c.timestamp, conversation.c.number
    of_channel = conversation.c.channel_number
    numbered = (
        select(
            conversation.c.number,
            func.row_number().over(order_by=order, partition_by=of_channel).label("rank"),
            func.count().over(partition_by=of_channel).label("total"),
        )
        .where(conversation.c.channel_number.in_(channel_numbers), conversation.c.deleted.is_(False))
        .subquery()
    )
    wanted = select(numbered.c.number).where(or_(numbered.c.rank <= begin, numbered.c.rank > numbered.c.total - end))
    found: dict[int, list[MessageRow]] = {number: [] for number in channel_numbers}
    for row in tx.execute(select(conversation).where(conversation.c.number.in_(wanted)).order_by(*order)):
        found[row.channel_number].append(row)
    return found


def superseded_among(tx: ReadTransaction, numbers: Sequence[int]) -> set[int]:
    """Return those of the messages that the user undid, or that others replaced."""
    these = is_one_of(conversation.c.number, numbers), _SUPERSEDED.is_not(None)
    return set(tx.execute(select(conversation.c.number).where(*these)).scalars())


_SUPERSEDED = conversation.c.payload["superseded"].as_string()


def message_position(tx: ReadTransaction, channel_number: int, seq: int) -> tuple[datetime, int]:
    """Return the position (timestamp, number) of the message with that seq; NotFound if there is none."""
    query = select(conversation.c.timestamp, conversation.c.number).where(
        conversation.c.channel_number == channel_number, conversation.c.seq == seq
    )
    row = tx.execute(query).first()
    if row is None:
        raise NotFound("No such message", f"No message with sequence {seq + 1} in this session")
    return row.timestamp, row.number


def messages_of_turns(tx: ReadTransaction, channel_number: int, turns: Sequence[int]) -> list[MessageRow]:
    """Return all messages of some turns (seqs of their first messages) of a channel, in order."""
    within = conversation.c.channel_number == channel_number, conversation.c.turn.in_(turns)
    return _in_order(tx.execute(select(conversation).where(*within, conversation.c.deleted.is_(False))).all())


def seqs_of(tx: ReadTransaction, channel_number: int, roles: Sequence[str]) -> list[int]:
    """Return the sequence numbers of a channel's messages of some roles, in the order of the conversation."""
    query = select(conversation.c.seq).where(
        conversation.c.channel_number == channel_number,
        conversation.c.role.in_(roles),
        conversation.c.deleted.is_(False),
    )
    return list(tx.execute(query.order_by(conversation.c.timestamp, conversation.c.number)).scalars())


def _in_order(rows: Iterable[MessageRow]) -> list[MessageRow]:
    """Sort in Python: for ORDER BY, SQLite would scan the time index of all messages even for a few rows."""
    return sorted(rows, key=attrgetter("timestamp", "number"))


def rows_where(tx: ReadTransaction, channel_number: int, *conditions: ColumnElement[bool]) -> Sequence[MessageRow]:
    """Return the messages of a channel that meet the conditions, deleted or not, in order of arrival."""
    query = select(conversation).where(conversation.c.channel_number == channel_number, *conditions)
    return tx.execute(query.order_by(conversation.c.number)).all()


def in_turns(rows: Sequence[MessageRow]) -> list[MessageRow]:
    """Sort a channel's messages turn by turn: a regenerated answer is stored behind the rest of the conversation."""
    turns: dict[int, list[MessageRow]] = defaultdict(list)
    for row in rows:
        turns[row.turn].append(row)
    opened = {turn: next((row.place for row in some if row.seq == turn), some[0].place) for turn, some in turns.items()}
    ordered = sorted(turns, key=lambda turn: opened[turn])
    return [row for turn in ordered for row in sorted(turns[turn], key=lambda row: (row.role != Role.USER, row.place))]


def by_numbers(tx: ReadTransaction, numbers: Sequence[int]) -> list[MessageRow]:
    """Return the messages with these numbers that are not deleted, in conversation order."""
    these = is_one_of(conversation.c.number, numbers), conversation.c.deleted.is_(False)
    return _in_order(tx.execute(select(conversation).where(*these))) if numbers else []


def by_ids(tx: ReadTransaction, ids: Sequence[str]) -> list[MessageRow]:
    """Return the messages with these ids or aliases that are not deleted, in conversation order."""
    aliased = select(message_alias.c.number).where(message_alias.c.id.in_(ids))
    named = or_(conversation.c.id.in_(ids), conversation.c.number.in_(aliased))
    return _in_order(tx.execute(select(conversation).where(named, conversation.c.deleted.is_(False))))


def messages_between(tx: ReadTransaction, from_: datetime, to: datetime, most: int) -> dict[int, list[MessageRow]]:
    """Return the last `most` messages of each channel between two instants, by channel number."""
    latest = func.row_number().over(partition_by=conversation.c.channel_number, order_by=LATEST_FIRST).label("latest")
    conditions = _conditions({"from_": from_, "to": to})
    found = select(conversation, latest).where(*conditions).subquery()
    query = select(found).join(channel, channel.c.number == found.c.channel_number).where(found.c.latest <= most)
    in_order = channel.c.updated_at, channel.c.number, found.c.timestamp, found.c.number
    rows = tx.execute(query.order_by(*in_order)).all()
    return {number: list(some) for number, some in groupby(rows, key=attrgetter("channel_number"))}


def list_messages(tx: ReadTransaction, wanted: Filters, page: Page) -> dict[str, Any]:
    conditions = _conditions({**wanted, "channel": canonical_name(tx, wanted.get("channel"))})
    return read_page(tx, conversation.c.timestamp, conditions, page, lambda rows: list(map(message_item, rows)))


def _conditions(wanted: Filters) -> list[ColumnElement[bool]]:
    return filter_conditions(_FILTERS, {"include_deleted": False, **wanted})


_FILTERS: FilterRules = {
    "channel": (eq, conversation.c.channel),
    "source": (eq, conversation.c.source),
    "roles": (is_in, conversation.c.role),
    "from_": (ge, conversation.c.timestamp),
    "to": (le, conversation.c.timestamp),
    "numbers": (is_in, conversation.c.number),  # of messages found by a search
    "include_deleted": (
        lambda deleted, all_: (conversation.c.forgotten if all_ else deleted) == false(),
        conversation.c.deleted,
    ),
    "only_valid": (lambda superseded, is_only: superseded.is_(None) if is_only else true(), _SUPERSEDED),
}


def get_message(tx: ReadTransaction, message_id: str, *, include_deleted: bool = False) -> MessageRow:
    """Return the message with that id; NotFound if there is none, or it was deleted."""
    aliased = select(message_alias.c.number).where(message_alias.c.id == message_id).scalar_subquery()
    row = tx.execute(select(conversation).where(conversation.c.id == message_id)).first()
    row = row or tx.execute(select(conversation).where(conversation.c.number == aliased)).first()
    if row is None or row.forgotten or (row.deleted and not include_deleted):
        raise NotFound("No such message", f"No message {message_id!r} in the registry")
    return row


def numbers_of_message(tx: ReadTransaction, message_id: str) -> tuple[int, int] | None:
    """Return the numbers of a message's channel and of the message; None if there is none, or it is forgotten."""
    query = select(conversation.c.channel_number, conversation.c.number)
    row = tx.execute(query.where(conversation.c.id == message_id, conversation.c.forgotten.is_(False))).first()
    return (row.channel_number, row.number) if row else None


def delete_message(tx: WriteTransaction, message_id: str) -> dict[str, Any]:
    """Delete a message softly and return it: no search finds it, but it can be restored."""
    row = get_message(tx, message_id, include_deleted=True)
    delete_softly(tx, [row])
    recount_channel(tx, row.channel_number)
    return {**message_item(row), "deleted": True}


def delete_softly(tx: WriteTransaction, rows: Sequence[MessageRow]) -> None:
    """Delete messages softly, independently of their channel: restoring that does not restore them."""
    unindex(tx, rows)
    these = is_one_of(conversation.c.number, [row.number for row in rows])
    tx.execute(update(conversation).where(these).values(deleted=True, with_channel=False))


def set_deleted_with_channel(tx: WriteTransaction, row: MessageRow) -> None:
    """Let restoring the channel restore a deleted message too."""
    is_it = conversation.c.number == row.number, conversation.c.deleted
    tx.execute(update(conversation).where(*is_it).values(with_channel=True))


def remove(tx: WriteTransaction, rows: Sequence[MessageRow]) -> None:
    unindex(tx, rows)
    tx.execute(delete(conversation).where(is_one_of(conversation.c.number, [row.number for row in rows])))


def replace_messages(tx: WriteTransaction, replaced: Sequence[tuple[MessageRow, int]]) -> None:
    """Remove duplicates: pairs of a message and the number of the one that takes over its id as an alias."""
    if not replaced:
        return
    moved = update(message_alias).where(message_alias.c.number == bindparam("was"))
    tx.execute(moved.values(number=bindparam("is_now")), [{"was": row.number, "is_now": to} for row, to in replaced])
    tx.execute(insert(message_alias), [{"id": row.id, "number": to} for row, to in replaced])
    remove(tx, [row for row, _ in replaced])


def current_ids(tx: ReadTransaction, ids: Sequence[str]) -> dict[str, str]:
    """Return the current ids of messages whose ids have changed."""
    query = select(message_alias.c.id, conversation.c.id).join(
        conversation, conversation.c.number == message_alias.c.number
    )
    return dict(tx.execute(query.where(message_alias.c.id.in_(ids))).all())


def restore_message(tx: WriteTransaction, message_id: str) -> dict[str, Any]:
    """Restore a softly deleted message and return it; NotFound if it is gone for good."""
    row = get_message(tx, message_id, include_deleted=True)
    if row.deleted:
        revise(tx, [(row, _RESTORED)])
        recount_channel(tx, row.channel_number)
    return {**message_item(row), "deleted": False}


_RESTORED = {"deleted": False, "with_channel": False}


def restore_channel(tx: WriteTransaction, name: str) -> ChannelRow:
    """Restore a softly deleted channel; NotFound if it is gone for good.

    Messages that were deleted individually stay deleted.
    """
    row = find_channel(tx, name)
    if row is None:
        raise NotFound("No such channel", f"No channel {name!r} in the registry")
    within = conversation.c.channel_number == row.number, conversation.c.with_channel.is_(True)
    revise(tx, [(message, _RESTORED) for message in tx.execute(select(conversation).where(*within)).all()])
    recount_channel(tx, row.number)
    return get_channel(tx, name)


def delete_channel(
    tx: WriteTransaction, row: ChannelRow, *, soft: bool, until: datetime | None = None, after: int = 0
) -> None:
    """Delete a channel with its messages; after a soft deletion each of them can be restored.

    `until`: another registry deleted it at that time; messages said or restored later stay, and the channel with them.
    `after`: a soft deletion is only of messages with higher numbers.
    """
    within = conversation.c.channel_number == row.number
    if soft:
        to_delete = [
            within,
            conversation.c.number > after,
            conversation.c.deleted.is_(False),
            *([conversation.c.timestamp <= until, ~_is_edited_after(until)] if until else []),
        ]
        unindex(tx, tx.execute(select(conversation).where(*to_delete)).all())
        tx.execute(update(channel).where(channel.c.number == row.number).values(deleted=True))
        tx.execute(update(conversation).where(*to_delete).values(deleted=True, with_channel=True))
        recount_channel(tx, row.number)  # undeletes the channel if messages are left
    else:
        unindex(tx, tx.execute(select(conversation).where(within)).all())
        unindex_title(tx, row)
        tx.execute(delete(conversation).where(within))
        drop_images(tx, ())
        tx.execute(delete(channel).where(channel.c.number == row.number))


def _is_edited_after(moment: datetime) -> ColumnElement[bool]:
    of_message = edit.c.message_number == conversation.c.number, edit.c.field == "deleted"
    return exists().where(*of_message, edit.c.done_at > moment)


def revise(tx: WriteTransaction, news: Sequence[tuple[MessageRow, Mapping[str, Any]]]) -> None:
    """Update stored messages and their index entries, in a fixed number of statements."""
    if not news:
        return
    tokens = [searched_tokens({**row._mapping, **changes}) for row, changes in news]
    revised = [
        {**row._mapping, **changes, "length": len(found), "analyzer_version": ANALYZER_VERSION}
        for (row, changes), found in zip(news, tokens, strict=True)
    ]
    unindex(tx, [row for row, _ in news])
    changed = {"number", "length", "analyzer_version"}.union(*(changes for _, changes in news))
    update_rows(tx, conversation, [{name: row[name] for name in changed} for row in revised])
    undeleted = [(row, found) for row, found in zip(revised, tokens, strict=True) if not row["deleted"]]
    index_of(tx).add(tx, [message_entry(row, found) for row, found in undeleted])


def set_superseded(tx: WriteTransaction, rows: Sequence[MessageRow], is_superseded: bool) -> None:
    """Mark messages of a channel that were undone or replaced in their client, or that are valid again."""
    if not rows:
        return
    mark = {"superseded": True} if is_superseded else {}
    payloads = ({name: value for name, value in row.payload.items() if name != "superseded"} for row in rows)
    revise(tx, [(row, {"payload": payload | mark}) for row, payload in zip(rows, payloads, strict=True)])
    recount_channel(tx, rows[0].channel_number)  # its summary may quote them


def unindex(tx: WriteTransaction, rows: Sequence[MessageRow]) -> None:
    """Remove messages from the index, which has no deleted ones."""
    present = [row._asdict() for row in rows if not row.deleted]
    index_of(tx).remove(tx, [message_entry(row, searched_tokens(row)) for row in present])


def message_item(row: MessageRow) -> dict[str, Any]:
    """Return a message as a conversation item (docs/interface.md)."""
    return {
        **shown(row, "id", "channel", "source", "role", "text", "timestamp", "actor", "deleted", "payload"),
        **shown(row, "record_type", "received_at"),
        "context": row.payload.get("context"),
    }
