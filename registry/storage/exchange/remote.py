"""Record the exchange of messages with another registry: their ids there, and the progress in both directions."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, delete, exists, func, insert, or_, select, update

from registry.domain import Message, Role, digest_of, format_time, now, parse_time
from registry.storage.conditions import is_one_of
from registry.storage.conversations.channels import ChannelRow
from registry.storage.conversations.messages import MessageRow
from registry.storage.database import ReadTransaction, WriteTransaction, acquire_lock, upsert
from registry.storage.exchange.change_feed import SELECT_SIZES, read_batch
from registry.storage.exchange.counterparts import client_id_of, digest_without_marks, masked_messages
from registry.storage.exchange.edits import GROWN, SUPERSEDED, is_edit_to_send
from registry.storage.safety.masking import key_of
from registry.storage.safety.visibility import ask_all
from registry.storage.tables import channel, conversation, edit, remote, remote_edit, remote_message
from registry.text.privacy.masking import mask_value
from registry.text.privacy.secrets import is_masked

SETTLED = timedelta(minutes=1)  # longer than any write may take
MIN_NOTE_INTERVAL = timedelta(seconds=20)  # minimum interval between updates of answered_at alone
MAX_CONTEXT = 10  # messages sent before the first new one, to locate it in the conversation


@dataclass(frozen=True, slots=True)
class Unsent:
    """Messages of one channel to send. The first `known` are there already; `ids`: the ids there, by number.

    `grown`: numbers of edits that need not be sent, because these messages have the latest text and state.
    `key`: masks secrets before they are sent.
    """

    channel: ChannelRow
    messages: Sequence[MessageRow]
    known: int
    ids: Mapping[int, str | None]
    grown: Sequence[int] = ()
    key: bytes = b""


_OF_MESSAGES = GROWN, SUPERSEDED  # edits that a message has with it when it is sent
_UNDELETED = conversation.c.deleted.is_(False), conversation.c.forgotten.is_(False)
_OWN = conversation.c.of_other_person.is_(False)


def _is_noted(url: str, number: ColumnElement[int], *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return a condition: the message's id there is recorded."""
    return exists().where(remote_message.c.url == url, remote_message.c.number == number, *conditions)


def _is_unsent(url: str) -> ColumnElement[bool]:
    return and_(~_is_noted(url, conversation.c.number), _OWN, *_UNDELETED)


def next_unsent(tx: ReadTransaction, url: str, most: int, after: int = 0) -> Unsent | None:
    """Return the oldest unsent messages of one channel, in conversation order; None if all are sent.

    `after`: the message number to begin after.
    """
    behind = select(conversation).where(conversation.c.number > after, _is_unsent(url))
    first = tx.execute(behind.order_by(conversation.c.number).limit(1)).first()
    if first is None:
        return None
    within = conversation.c.channel_number == first.channel_number
    some, _ = read_batch(tx, SELECT_SIZES.where(within, _is_unsent(url)).order_by(conversation.c.number).limit(most))
    new = sorted(some, key=lambda row: (row.place, row.number))
    is_refused = _is_noted(url, conversation.c.number, remote_message.c.id.is_(None))
    before = last_messages(tx, first.channel_number, conversation.c.place < new[0].place, ~is_refused)
    row = tx.execute(select(channel).where(channel.c.number == first.channel_number)).one()
    called = select(remote_message.c.number, remote_message.c.id).where(remote_message.c.url == url)
    ids = tx.execute(called.where(remote_message.c.number.in_([one.number for one in before])))
    is_included = edit.c.field.in_(_OF_MESSAGES), edit.c.message_number.in_([one.number for one in new])
    grown = select(edit.c.number).where(*is_included)
    return Unsent(row, [*before, *new], len(before), dict(ids.all()), tx.execute(grown).scalars().all())


def grown_message(tx: ReadTransaction, edit_number: int, there: str) -> Unsent | None:
    """Return the message whose text has grown according to an edit, to send it again; None if it is deleted."""
    of_edit = select(edit.c.message_number).where(edit.c.number == edit_number).scalar_subquery()
    row = tx.execute(select(conversation).where(conversation.c.number == of_edit, *_UNDELETED)).first()
    if row is None:
        return None
    within = tx.execute(select(channel).where(channel.c.number == row.channel_number)).one()
    return Unsent(within, [row], 0, {row.number: there})


def last_messages(tx: ReadTransaction, channel_number: int, *conditions: ColumnElement[bool]) -> list[MessageRow]:
    """Return the last messages of a channel that meet the conditions, in conversation order."""
    query = SELECT_SIZES.where(conversation.c.channel_number == channel_number, *_UNDELETED, *conditions)
    rows, _ = read_batch(
        tx, query.order_by(conversation.c.place.desc(), conversation.c.number.desc()).limit(MAX_CONTEXT)
    )
    return sorted(rows, key=lambda row: (row.place, row.number))


def note_messages(tx: WriteTransaction, url: str, ids: Mapping[int, str | None]) -> None:
    """Record the ids of messages there, by number here, and lock this table for other writers."""
    acquire_lock(tx, "remote messages")
    known = select(remote_message.c.number).where(remote_message.c.url == url, remote_message.c.number.in_(ids))
    noted = set(tx.execute(known).scalars())
    there = select(conversation.c.number).where(conversation.c.number.in_(ids)).order_by(conversation.c.number)
    # lock them, so that none is deleted before this transaction ends
    numbers = tx.execute(there.with_for_update(read=True, key_share=True)).scalars()
    new = [{"url": url, "number": number, "id": ids[number]} for number in numbers if number not in noted]
    if new:
        tx.execute(insert(remote_message), new)


def note_of_other_person(tx: WriteTransaction, numbers: Collection[int]) -> None:
    """Record that messages came from another person's chat: if they are no longer there, they are not sent again."""
    tx.execute(update(conversation).where(is_one_of(conversation.c.number, numbers)).values(of_other_person=True))


def note_copies(tx: WriteTransaction, ids: Mapping[str, str], after: int) -> None:
    """Record which messages are another person's: those stored after a number that were sent with another id from here.

    A person adds to a chat that another person shares: the messages before come with the addition. `ids`: their ids, by
    those with which they were sent.
    """
    others = ask_all(tx, select(conversation.c.id).where(conversation.c.id.in_(ids))).scalars()
    numbers = numbers_of_ids(tx, [ids[one] for one in others])
    note_of_other_person(tx, [number for number in numbers.values() if number > after])


def note_other_ids(tx: WriteTransaction, url: str, ids: Mapping[int, str]) -> None:
    """Update the ids of messages there. They change if a person adds to a chat that another person shares: the
    other registry then copies the messages before."""
    for number, id_ in ids.items():
        is_it = remote_message.c.url == url, remote_message.c.number == number
        tx.execute(update(remote_message).where(*is_it, remote_message.c.id != id_).values(id=id_))


def resend_refused_messages(tx: WriteTransaction, url: str) -> None:
    """Mark refused messages as unsent: the token or a proxy may allow more now."""
    refused = delete(remote_message).where(remote_message.c.url == url, remote_message.c.id.is_(None))
    if tx.execute(refused).rowcount:
        tx.execute(update(remote).where(remote.c.url == url).values(sent=0))


def note_only_there(tx: WriteTransaction, url: str, ids: Collection[str]) -> None:
    """Record that only these messages are there, and reset the progress in both directions."""
    noted = select(remote_message.c.number, remote_message.c.id).where(remote_message.c.url == url)
    gone = [number for number, there in tx.execute(noted).all() if there not in ids]
    tx.execute(delete(remote_message).where(remote_message.c.url == url, is_one_of(remote_message.c.number, gone)))
    tx.execute(delete(remote_edit).where(remote_edit.c.url == url))
    tx.execute(update(remote).where(remote.c.url == url).values(place=0, sent=0, edit_place=0))


def ids_here(tx: ReadTransaction, url: str, ids: Sequence[str]) -> dict[str, str]:
    """Return the ids of messages that are here, by their ids in the other registry."""
    query = select(remote_message.c.id, conversation.c.id).join(
        conversation, conversation.c.number == remote_message.c.number
    )
    return dict(tx.execute(query.where(remote_message.c.url == url, remote_message.c.id.in_(ids))).all())


def id_of_changed_message(tx: ReadTransaction, url: str, there: str, digest: str) -> str | None:
    """Return the id here of a message with that id there, if its digest here differs from `digest` (hex)."""
    query = select(conversation.c.id).join(remote_message, remote_message.c.number == conversation.c.number)
    is_it = remote_message.c.url == url, remote_message.c.id == there
    return tx.execute(query.where(*is_it, conversation.c.digest != bytes.fromhex(digest))).scalar()


def note_here(tx: WriteTransaction, url: str, into: ChannelRow | None, messages: Mapping[str, Message]) -> list[str]:
    """Return the ids there of messages that are not here; record those with the same text and time here."""
    note_messages(tx, url, {})
    known = ids_here(tx, url, list(messages))
    new = {there: message for there, message in messages.items() if there not in known}
    matches = _matches(tx, url, into.number, new) if into and new else {}
    note_messages(tx, url, matches)
    return [there for there in new if there not in matches.values()]


def _matches(tx: WriteTransaction, url: str, channel_number: int, messages: Mapping[str, Message]) -> dict[int, str]:
    """Match messages of a channel with these of the other registry; return their ids there, by number here.

    The connection broke before the answer to a request, or both registries have them from a client. If the other
    machine has masked a secret in a message, only the client's id identifies it.
    """
    wanted: dict[tuple[bytes, str | None], str] = {
        (digest_of(one.role, one.text), format_time(one.timestamp)): there
        for there, one in messages.items()
        if one.timestamp
    }
    is_free = ~_is_noted(url, conversation.c.number)
    query = select(conversation.c.number, conversation.c.digest, conversation.c.timestamp).where(
        conversation.c.channel_number == channel_number,
        conversation.c.digest.in_([digest for digest, _ in wanted]),
        is_free,
    )
    rows = ((row.number, (bytes(row.digest), format_time(row.timestamp))) for row in tx.execute(query))
    matches = {number: wanted.pop(key) for number, key in rows if key in wanted}
    matches |= _match_unmasked(tx, channel_number, is_free & conversation.c.number.not_in(matches), wanted)
    masked_there: dict[tuple[bytes, str | None], str] = {
        (digest_without_marks(one.role, one.text), client_id): there
        for there, one in messages.items()
        if is_masked(one.text) and (client_id := client_id_of(None, one.more))
    }
    for row in masked_messages(tx, channel_number, is_free) if masked_there else ():
        named = digest_without_marks(row.role, row.text), client_id_of(row.native_id, row.payload)
        if row.number not in matches and named in masked_there and masked_there[named] in wanted.values():
            matches[row.number] = masked_there.pop(named)
    return matches


def _match_unmasked(
    tx: WriteTransaction, channel_number: int, is_free: ColumnElement[bool], wanted: dict[tuple[bytes, str | None], str]
) -> dict[int, str]:
    then = [parse_time(moment) for _, moment in wanted if moment]
    holding = conversation.c.channel_number == channel_number, conversation.c.timestamp.in_(then), is_free
    columns = conversation.c.number, conversation.c.role, conversation.c.text, conversation.c.timestamp
    key, found = key_of(tx), dict[int, str]()
    for row in tx.execute(select(*columns).where(*holding)).all() if then else ():
        words = digest_of(Role(row.role), mask_value(row.text, key)), format_time(row.timestamp)
        if words in wanted:
            found[row.number] = wanted.pop(words)
    return found


def numbers_of_ids(tx: ReadTransaction, ids: Iterable[str]) -> dict[str, int]:
    rows = tx.execute(select(conversation.c.id, conversation.c.number).where(conversation.c.id.in_(list(ids))))
    return {row.id: row.number for row in rows}


class SyncProgress(NamedTuple):
    """The progress with another registry: positions up to which its messages (`place`) and edits were read, the number
    up to which messages were sent, and the time of its last answer.
    """

    place: int = 0
    sent: int = 0
    edit_place: int = 0
    answered_at: datetime | None = None


def sync_progress(tx: ReadTransaction, url: str) -> SyncProgress:
    """Return the progress of the exchange with a registry."""
    columns = remote.c.place, remote.c.sent, remote.c.edit_place, remote.c.answered_at
    row = tx.execute(select(*columns).where(remote.c.url == url)).first()
    return SyncProgress(*row) if row else SyncProgress()


def known_address(tx: ReadTransaction, address: str) -> str:
    """Return the url under which the records of the registry at an address are stored: its first address."""
    return tx.execute(select(remote.c.known_as).where(remote.c.url == address)).scalar() or address


def registry_at(tx: ReadTransaction, url: str) -> str | None:
    """Return the id of the registry to which the records of a url belong; None if unknown."""
    return tx.execute(select(remote.c.registry).where(remote.c.url == url)).scalar()


def note_registry(tx: WriteTransaction, address: str, registry_id: str) -> str:
    """Record which registry answers at an address, and return the url under which its records are stored.

    If another registry answered at this address before, the records of the new one are stored under its id.
    """
    acquire_lock(tx, "remote messages")
    url = tx.execute(select(remote.c.url).where(remote.c.registry == registry_id)).scalar()
    if url is None:
        is_known = or_(remote.c.registry.is_not(None), remote.c.known_as.is_not(None))
        met_before = tx.execute(select(remote.c.url).where(remote.c.url == address, is_known)).first()
        url = registry_id if met_before else address
    met = {"place": 0, "sent": 0, "answered_at": now()}
    upsert(tx, remote, ["url"], [{**met, "url": url, "registry": registry_id}], unchanged=met)
    upsert(tx, remote, ["url"], [{**met, "url": address, "known_as": url}], unchanged=met)
    return url


def note_answer(tx: WriteTransaction, url: str, **progress: Any) -> None:
    """Record an answer of the registry, and new values of `place`, `sent` or `edit_place`."""
    before = sync_progress(tx, url)
    after = before._replace(**progress)
    if before.answered_at and abs(now() - before.answered_at) < MIN_NOTE_INTERVAL and before == after:
        return
    upsert(tx, remote, ["url"], [{"url": url, **after._asdict(), "answered_at": now()}])


def note_all_sent(tx: WriteTransaction, url: str, after: int) -> None:
    """Record that all settled messages were sent; a transaction with a smaller number may still commit.

    `after`: the number where sending began. Another process may have reset the progress to before it meanwhile.
    """
    settled = select(func.max(conversation.c.number)).where(conversation.c.received_at < now() - SETTLED)
    if sync_progress(tx, url).sent >= after:
        note_answer(tx, url, sent=tx.execute(settled).scalar() or 0)


def exchange_counts(tx: ReadTransaction, url: str) -> dict[str, Any]:
    """Return counts of messages sent, refused and waiting, and the time of the other registry's last answer.

    `edits`: the number of waiting edits. `edit_refused`: the latest reason why an edit was refused there.
    """
    noted = select(func.count()).select_from(remote_message).where(remote_message.c.url == url)
    sent = tx.execute(noted.where(remote_message.c.id.is_not(None))).scalar_one()
    refused = tx.execute(noted.where(remote_message.c.id.is_(None))).scalar_one()
    waiting = tx.execute(select(func.count()).select_from(conversation).where(_is_unsent(url))).scalar_one()
    edits = tx.execute(select(func.count()).select_from(edit).where(is_edit_to_send(url))).scalar_one()
    whys = select(remote_edit.c.why).where(remote_edit.c.url == url, remote_edit.c.why.is_not(None))
    answered_at = sync_progress(tx, url).answered_at
    return {
        "sent": sent,
        "refused": refused,
        "waiting": waiting,
        "answered_at": format_time(answered_at) if answered_at else None,
        "edits": edits,
        "edit_refused": tx.execute(whys.order_by(remote_edit.c.number.desc()).limit(1)).scalar(),
    }
