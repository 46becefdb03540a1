"""Merge two channels of the same conversation. Names and ids of the merged one remain valid as aliases."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import delete, select, update

from registry.domain import Message, Role
from registry.ingest.dedup import Recognition, RowMatches, match_rows_by_turns
from registry.ingest.paraphrase import MIN_SURE_AGREEMENT, accept_from_model, agreement
from registry.ingest.save import unindex_questions
from registry.ingest.stored_messages import Sent
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
from registry.storage.conversations.references import add_alias, edit_channel
from registry.storage.database import ReadTransaction, WriteTransaction, update_rows
from registry.storage.exchange.edits import NICKNAME, PINNED, SHARED, TAGGED, TITLE, move_edits
from registry.storage.index.message_index import RECALL, UNINDEXED
from registry.storage.safety.forgetting import forget_messages
from registry.storage.tables import channel, channel_alias, conversation, execution, extract_result, store_session

_KEPT = {"title": TITLE, "nickname": NICKNAME, "shared_with": SHARED, "shared_until": SHARED}
_KEPT |= dict.fromkeys(("summary", "project_path", "project_name", "owner"), "")
"""Columns with the fields of their edits. The channel with the later edit gives the value; without edits the merged one
gives what is empty in the remaining one."""


def merge_channels(tx: WriteTransaction, named: int, session: int) -> None:
    """Merge a channel that a tool has named into its session's channel; both are given by number.

    A message that is in both remains once, with the session's text and under both ids, deleted if either was.
    """
    merged, target = lock_channel(tx, named), lock_channel(tx, session)
    named_rows, session_rows = in_turns(_messages(tx, named)), _messages(tx, session)
    sent = [Sent(Message(Role(row.role), row.text), bytes(row.digest)) for row in named_rows]
    matches = match_rows_by_turns(tx, session_rows, sent, accept_from_model)
    turns = _turns(named_rows, matches, target.seq_count)
    moving = [row for row, match in zip(named_rows, matches, strict=True) if match is None]
    duplicates = [(row, match) for row, match in zip(named_rows, matches, strict=True) if match is not None]
    moves: list[tuple[MessageRow, dict[str, Any]]] = []
    for row, place in zip(moving, Recognition(matches, session_rows).new_places(), strict=True):
        position = {"seq": target.seq_count + len(moves), "turn": turns[row.number], "place": place}
        moves.append((row, {"channel": target.name, "channel_number": target.number, **position}))
    revise(tx, moves)
    _merge_duplicates(tx, duplicates)
    unindex_questions(tx, target.number, {turns[row.number] for row in moving if row.payload.get(UNINDEXED) == RECALL})
    renumbered = {
        "turns": {row.turn: turns[row.number] for row in named_rows if row.seq == row.turn},
        "hits": {row.number: match.number for row, match in duplicates},
    }
    _rename_records(tx, merged, target, renumbered)
    _merge_descriptions(tx, merged, target, target.seq_count + len(moving))


def merge_shortened(tx: WriteTransaction, channel_number: int) -> None:
    """Replace answers that a model shortened by the client's own full ones."""
    within = conversation.c.channel_number == channel_number, conversation.c.role == Role.ASSISTANT
    shortened = tx.execute(select(conversation).where(*within, conversation.c.native_id.is_(None))).all()
    if not shortened:
        return
    is_original = conversation.c.turn.in_({row.turn for row in shortened}), conversation.c.native_id.is_not(None)
    originals = tx.execute(select(conversation).where(*within, *is_original)).all()
    pairs = ((row, _original_of(row, originals)) for row in shortened)
    _merge_duplicates(tx, [(row, match) for row, match in pairs if match is not None])
    recount_channel(tx, channel_number)


def _original_of(row: MessageRow, originals: Iterable[MessageRow]) -> MessageRow | None:
    candidates = [match for match in originals if match.turn == row.turn and len(match.text) >= len(row.text)]
    best = max(candidates, key=lambda match: agreement(match.text, row.text), default=None)
    return best if best is not None and agreement(best.text, row.text) >= MIN_SURE_AGREEMENT else None


def _messages(tx: ReadTransaction, number: int) -> Sequence[MessageRow]:
    query = select(conversation).where(conversation.c.channel_number == number)
    return tx.execute(query.order_by(conversation.c.place, conversation.c.number)).all()


def _turns(named_rows: Sequence[MessageRow], matches: RowMatches, next_seq: int) -> dict[int, int]:
    turns: dict[int, int] = {}
    turn = None
    for row, match in zip(named_rows, matches, strict=True):
        if match is not None:
            turn = match.turn
        else:
            turn = next_seq if row.role == Role.USER or turn is None else turn
            next_seq += 1
        turns[row.number] = turn
    return turns


def _merge_duplicates(tx: WriteTransaction, duplicates: Sequence[tuple[MessageRow, MessageRow]]) -> None:
    forget_messages(tx, [match for row, match in duplicates if row.forgotten and not match.forgotten])
    deleted = {match.number: match for row, match in duplicates if row.deleted and not match.deleted}
    delete_softly(tx, list(deleted.values()))
    replace_messages(tx, [(row, match.number) for row, match in duplicates])


def _rename_records(
    tx: WriteTransaction, merged: ChannelRow, target: ChannelRow, renumbered: Mapping[str, Mapping[int, int]]
) -> None:
    query = select(extract_result.c.number, extract_result.c.metadata).where(extract_result.c.channel == merged.name)
    renumbered_metadata = {row.number: _renumbered(row.metadata or {}, renumbered) for row in tx.execute(query)}
    changed = [{"number": number, "metadata": metadata} for number, metadata in renumbered_metadata.items() if metadata]
    update_rows(tx, extract_result, changed)
    for table in (extract_result, execution):
        tx.execute(update(table).where(table.c.channel == merged.name).values(channel=target.name))


def _renumbered(metadata: Mapping[str, Any], renumbered: Mapping[str, Mapping[int, int]]) -> dict[str, Any] | None:
    rankings = {key: [new.get(n, n) for n in metadata[key]] for key, new in renumbered.items() if key in metadata}
    return {**metadata, **rankings} if rankings else None


def _merge_descriptions(tx: WriteTransaction, merged: ChannelRow, target: ChannelRow, seq_count: int) -> None:
    """Move names, tags, pin, links and metadata of a merged channel to the remaining one."""
    latest = move_edits(tx, merged.number, target.number)

    def sources_of(field: str) -> list[ChannelRow]:
        return [row for row in (target, merged) if latest.get(field, row.number) == row.number]

    tags = tags_of(tx, [target.number, merged.number])
    every = dict.fromkeys(name for some in tags.values() for name in some)
    kept = [name for name in every if any(name in tags[row.number] for row in sources_of(TAGGED + name))]
    pins = {row.number: has_pin(tx, row.number) for row in (target, merged)}
    is_pinned = any(pins[row.number] for row in sources_of(PINNED))
    for table in (channel_alias, store_session):
        tx.execute(update(table).where(table.c.channel_number == merged.number).values(channel_number=target.number))
    unindex_title(tx, merged)
    tx.execute(delete(channel).where(channel.c.number == merged.number))
    add_alias(tx, merged.name, target.number)
    values = {
        column: next(filter(None, (getattr(row, column) for row in sources_of(field))), None)
        for column, field in _KEPT.items()
    }
    changes = {column: value for column, value in values.items() if value != getattr(target, column)}
    if merged.nickname and target.nickname:
        add_alias(tx, target.nickname if "nickname" in changes else merged.nickname, target.number)
    changes["last_accessed"] = max(filter(None, (merged.last_accessed, target.last_accessed)), default=None)
    changes["access_count"] = merged.access_count + target.access_count
    changes["tokens_delivered"] = merged.tokens_delivered + target.tokens_delivered
    change_channel(tx, target, {**changes, "meta": {**merged.meta, **target.meta}, "seq_count": seq_count})
    if kept != tags[target.number]:
        edit_channel(tx, target.name, {}, kept)
    if is_pinned != pins[target.number]:
        set_pin(tx, target.number, is_pinned=is_pinned)
    recount_channel(tx, target.number)
