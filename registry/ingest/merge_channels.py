"""Two channels that turned out to be one conversation become one. Nothing is lost: names and ids go on meaning it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row, delete, select, update

from registry.domain import Message, Role
from registry.ingest.dedup import Recognised
from registry.ingest.paraphrase import SHORTENED, agreement, by_model
from registry.ingest.paraphrase_rows import Sent, in_turns, retold_rows
from registry.storage.aliases import add_alias
from registry.storage.channels import ChannelRow, recount_channel, reindex_title, tags_of, unindex_title
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.messages import delete_message, replace_message, revise
from registry.storage.tables import channel, channel_alias, conversation, execution, extract_result, store_session, tag

_KEPT = ("title", "summary", "project_path", "project_name")
"""What the channel that stays takes over where it has none."""


def join(tx: WriteTransaction, told: int, session: int) -> None:
    """Put a channel that was told by a tool into the one of its session; both by number.

    A message that both hold stays once, as the session has it, under both ids, deleted if either was.
    """
    gone, into = _locked(tx, told), _locked(tx, session)
    ours, theirs = in_turns(_messages(tx, told)), _messages(tx, session)
    sent = [Sent(Message(Role(row.role), row.text), bytes(row.digest)) for row in ours]
    old = retold_rows(tx, theirs, sent, by_model)
    turns = _turns(ours, old, into.seq_count)
    places = iter(Recognised(old, theirs).new_places())
    seq = into.seq_count
    for row, twin in zip(ours, old, strict=True):
        if twin is None:
            _move(tx, row, into, seq=seq, turn=turns[row.number], place=next(places))
            seq += 1
        else:
            _unite(tx, row, twin)
    renumbered = {
        "turns": {row.turn: turns[row.number] for row in ours if row.seq == row.turn},
        "hits": {row.number: twin.number for row, twin in zip(ours, old, strict=True) if twin},
    }
    _rename_records(tx, gone, into, renumbered)
    _unite_channels(tx, gone, into, seq)


def unite_shortened(tx: WriteTransaction, channel_number: int) -> None:
    """Answers that a model shortened in several ways, when the client itself has told the whole: that one stays."""
    within = conversation.c.channel_number == channel_number, conversation.c.role == Role.ASSISTANT
    pushed = tx.execute(select(conversation).where(*within, conversation.c.native_id.is_(None))).all()
    if not pushed:
        return
    of_turns = conversation.c.turn.in_({row.turn for row in pushed})
    whole = tx.execute(select(conversation).where(*within, of_turns, conversation.c.native_id.is_not(None))).all()
    for row in pushed:
        fitting = [twin for twin in whole if twin.turn == row.turn and len(twin.text) >= len(row.text)]
        best = max(fitting, key=lambda twin: agreement(twin.text, row.text), default=None)
        if best is not None and agreement(best.text, row.text) >= SHORTENED:
            _unite(tx, row, best)
    recount_channel(tx, channel_number)


def _locked(tx: WriteTransaction, number: int) -> ChannelRow:
    return tx.execute(select(channel).where(channel.c.number == number).with_for_update()).one()


def _messages(tx: ReadTransaction, number: int) -> Sequence[Row[Any]]:
    query = select(conversation).where(conversation.c.channel_number == number)
    return tx.execute(query.order_by(conversation.c.place, conversation.c.number)).all()


def _turns(ours: Sequence[Row[Any]], old: Sequence[Any], next_seq: int) -> dict[int, int]:
    """The turn that each message will belong to, by its number."""
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


def _move(tx: WriteTransaction, row: Row[Any], into: ChannelRow, **where: Any) -> None:
    revise(tx, row, {"channel": into.name, "channel_number": into.number, **where})


def _unite(tx: WriteTransaction, row: Row[Any], twin: Row[Any]) -> None:
    if row.deleted and not twin.deleted:
        delete_message(tx, twin.id, soft=True)
    replace_message(tx, row, twin.number)


def _rename_records(
    tx: WriteTransaction, gone: ChannelRow, into: ChannelRow, renumbered: Mapping[str, Mapping[int, int]]
) -> None:
    """What was extracted from the channel, and done in it, is of the one that stays; rankings name turns and hits."""
    of_channel = extract_result.c.channel == gone.name
    for row in tx.execute(select(extract_result.c.number, extract_result.c.metadata).where(of_channel)).all():
        known: dict[str, Any] = row.metadata or {}
        rankings = {key: [new.get(n, n) for n in known[key]] for key, new in renumbered.items() if key in known}
        if rankings:
            changed = update(extract_result).where(extract_result.c.number == row.number)
            tx.execute(changed.values({"metadata": {**known, **rankings}}))
    for table in (extract_result, execution):
        tx.execute(update(table).where(table.c.channel == gone.name).values(channel=into.name))


def _unite_channels(tx: WriteTransaction, gone: ChannelRow, into: ChannelRow, seq_count: int) -> None:
    tags = tags_of(tx, [gone.number, into.number])
    for name in set(tags[gone.number]) - set(tags[into.number]):
        tx.execute(tag.insert().values(channel_number=into.number, name=name))
    for table in (channel_alias, store_session):
        tx.execute(update(table).where(table.c.channel_number == gone.number).values(channel_number=into.number))
    unindex_title(tx, gone)
    tx.execute(delete(channel).where(channel.c.number == gone.number))
    add_alias(tx, gone.name, into.number)
    changes = {key: getattr(gone, key) for key in _KEPT if getattr(gone, key) and not getattr(into, key)}
    if gone.nickname and into.nickname:
        add_alias(tx, gone.nickname, into.number)
    elif gone.nickname:
        changes["nickname"] = gone.nickname
    news = {**changes, "meta": {**gone.meta, **into.meta}, "seq_count": seq_count}
    tx.execute(update(channel).where(channel.c.number == into.number).values(**news))
    reindex_title(tx, into, changes)
    recount_channel(tx, into.number)
