"""Merge two channels that are one conversation. Nothing is lost: names and ids become aliases."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import delete, select, update

from registry.domain import Message, Role
from registry.ingest.dedup import Known, Recognised, known_by_turns
from registry.ingest.paraphrase import SHORTENED, accept_from_model, agreement
from registry.ingest.save import unindex_questions
from registry.ingest.stored import Sent
from registry.storage.conversations.belonging import has_pin, set_pin
from registry.storage.conversations.channels import (
    ChannelRow,
    change_channel,
    lock_channel,
    recount_channel,
    tags_of,
    unindex_title,
)
from registry.storage.conversations.messages import MessageRow, delete_softly, in_turns, replace_messages, revise
from registry.storage.conversations.references import add_alias
from registry.storage.database import ReadTransaction, WriteTransaction, update_rows
from registry.storage.exchange.edits import move_edits
from registry.storage.index.message_index import RECALL, UNINDEXED
from registry.storage.safety.forgetting import forget_messages
from registry.storage.tables import channel, channel_alias, conversation, execution, extract_result, store_session, tag

# taken over if the remaining channel has none
_KEPT = ("title", "summary", "project_path", "project_name", "owner", "shared_with", "shared_until")


def merge_channels(tx: WriteTransaction, named: int, session: int) -> None:
    """Move a channel that a tool has named into the one of its session; both by number.

    A message that both hold stays once, as the session has it, under both ids, deleted if either was.
    """
    gone, into = lock_channel(tx, named), lock_channel(tx, session)
    ours, theirs = in_turns(_messages(tx, named)), _messages(tx, session)
    sent = [Sent(Message(Role(row.role), row.text), bytes(row.digest)) for row in ours]
    old = known_by_turns(tx, theirs, sent, accept_from_model)
    turns = _turns(ours, old, into.seq_count)
    moving = [row for row, twin in zip(ours, old, strict=True) if twin is None]
    doubled = [(row, twin) for row, twin in zip(ours, old, strict=True) if twin is not None]
    to = {"channel": into.name, "channel_number": into.number}
    where = enumerate(zip(moving, Recognised(old, theirs).new_places(), strict=True), into.seq_count)
    revise(tx, [(row, {**to, "seq": seq, "turn": turns[row.number], "place": place}) for seq, (row, place) in where])
    _unite(tx, doubled)
    unindex_questions(tx, into.number, {turns[row.number] for row in moving if row.payload.get(UNINDEXED) == RECALL})
    renumbered = {
        "turns": {row.turn: turns[row.number] for row in ours if row.seq == row.turn},
        "hits": {row.number: twin.number for row, twin in doubled},
    }
    _rename_records(tx, gone, into, renumbered)
    _merge_descriptions(tx, gone, into, into.seq_count + len(moving))


def merge_shortened(tx: WriteTransaction, channel_number: int) -> None:
    """Replace answers that a model shortened by the client's own, which is whole."""
    within = conversation.c.channel_number == channel_number, conversation.c.role == Role.ASSISTANT
    shortened = tx.execute(select(conversation).where(*within, conversation.c.native_id.is_(None))).all()
    if not shortened:
        return
    of_turns = conversation.c.turn.in_({row.turn for row in shortened})
    whole = tx.execute(select(conversation).where(*within, of_turns, conversation.c.native_id.is_not(None))).all()
    pairs = ((row, _whole_of(row, whole)) for row in shortened)
    _unite(tx, [(row, twin) for row, twin in pairs if twin is not None])
    recount_channel(tx, channel_number)


def _whole_of(row: MessageRow, whole: Iterable[MessageRow]) -> MessageRow | None:
    fitting = [twin for twin in whole if twin.turn == row.turn and len(twin.text) >= len(row.text)]
    best = max(fitting, key=lambda twin: agreement(twin.text, row.text), default=None)
    return best if best is not None and agreement(best.text, row.text) >= SHORTENED else None


def _messages(tx: ReadTransaction, number: int) -> Sequence[MessageRow]:
    query = select(conversation).where(conversation.c.channel_number == number)
    return tx.execute(query.order_by(conversation.c.place, conversation.c.number)).all()


def _turns(ours: Sequence[MessageRow], old: Known, next_seq: int) -> dict[int, int]:
    turns: dict[int, int] = {}
    turn = None
    for row, twin in zip(ours, old, strict=True):
        if twin is not None:
            turn = twin.turn
        else:
            turn = next_seq if row.role == Role.USER or turn is None else turn
            next_seq += 1
        turns[row.number] = turn
    return turns


def _unite(tx: WriteTransaction, doubled: Sequence[tuple[MessageRow, MessageRow]]) -> None:
    forget_messages(tx, [twin for row, twin in doubled if row.forgotten and not twin.forgotten])
    deleted = {twin.number: twin for row, twin in doubled if row.deleted and not twin.deleted}
    delete_softly(tx, list(deleted.values()))
    replace_messages(tx, [(row, twin.number) for row, twin in doubled])


def _rename_records(
    tx: WriteTransaction, gone: ChannelRow, into: ChannelRow, renumbered: Mapping[str, Mapping[int, int]]
) -> None:
    query = select(extract_result.c.number, extract_result.c.metadata).where(extract_result.c.channel == gone.name)
    ranked = {row.number: _renumbered(row.metadata or {}, renumbered) for row in tx.execute(query)}
    changed = [{"number": number, "metadata": metadata} for number, metadata in ranked.items() if metadata]
    update_rows(tx, extract_result, changed)
    for table in (extract_result, execution):
        tx.execute(update(table).where(table.c.channel == gone.name).values(channel=into.name))


def _renumbered(metadata: Mapping[str, Any], renumbered: Mapping[str, Mapping[int, int]]) -> dict[str, Any] | None:
    rankings = {key: [new.get(n, n) for n in metadata[key]] for key, new in renumbered.items() if key in metadata}
    return {**metadata, **rankings} if rankings else None


def _merge_descriptions(tx: WriteTransaction, gone: ChannelRow, into: ChannelRow, seq_count: int) -> None:
    """Move names, tags and what else was known of a channel to the one it is merged into."""
    tags = tags_of(tx, [gone.number, into.number])
    if news := [name for name in tags[gone.number] if name not in tags[into.number]]:
        tx.execute(tag.insert(), [{"channel_number": into.number, "name": name} for name in news])
    if has_pin(tx, gone.number):
        set_pin(tx, into.number, is_pinned=True)
    for table in (channel_alias, store_session):
        tx.execute(update(table).where(table.c.channel_number == gone.number).values(channel_number=into.number))
    move_edits(tx, gone.number, into.number)
    unindex_title(tx, gone)
    tx.execute(delete(channel).where(channel.c.number == gone.number))
    add_alias(tx, gone.name, into.number)
    changes = {key: getattr(gone, key) for key in _KEPT if getattr(gone, key) and not getattr(into, key)}
    if gone.nickname and into.nickname:
        add_alias(tx, gone.nickname, into.number)
    elif gone.nickname:
        changes["nickname"] = gone.nickname
    changes["last_accessed"] = max(filter(None, (gone.last_accessed, into.last_accessed)), default=None)
    changes["access_count"] = gone.access_count + into.access_count
    changes["tokens_delivered"] = gone.tokens_delivered + into.tokens_delivered
    change_channel(tx, into, {**changes, "meta": {**gone.meta, **into.meta}, "seq_count": seq_count})
    recount_channel(tx, into.number)
