"""Aliases of channels, and links between channels that may be the same conversation."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlalchemy import delete, or_, select

from registry.storage.conversations.channels import ChannelRow, find_channel
from registry.storage.database import ReadTransaction, WriteTransaction, insert_into
from registry.storage.tables import channel, channel_alias, channel_link


def add_alias(tx: WriteTransaction, name: str, channel_number: int) -> None:
    """Let a channel be found by this name too, unless the name is taken."""
    new = insert_into(tx.dialect.name, channel_alias).values(name=name, channel_number=channel_number)
    tx.execute(new.on_conflict_do_nothing())


def drop_alias(tx: WriteTransaction, name: str) -> None:
    tx.execute(delete(channel_alias).where(channel_alias.c.name == name))


def aliases_of(tx: ReadTransaction, channel_number: int) -> list[str]:
    query = select(channel_alias.c.name).where(channel_alias.c.channel_number == channel_number)
    return list(tx.execute(query.order_by(channel_alias.c.name)).scalars())


def aliases_by_channel(tx: ReadTransaction, numbers: Collection[int]) -> dict[int, list[str]]:
    query = select(channel_alias.c.channel_number, channel_alias.c.name)
    found: dict[int, list[str]] = {}
    for number, name in tx.execute(
        query.where(channel_alias.c.channel_number.in_(numbers)).order_by(channel_alias.c.name)
    ):
        found.setdefault(number, []).append(name)
    return found


def canonical_name(tx: ReadTransaction, name: str | None) -> str | None:
    """Return the name in a channel's rows for one of its names; an unknown name is returned as it is."""
    row = find_channel(tx, name) if name is not None else None
    return row.name if row else name


def find_settled_channel(tx: ReadTransaction, name: str) -> ChannelRow | None:
    """Return the channel of that name, locked, unless it may turn out to be a session of another channel."""
    links = select(channel_link).where(channel_link.c.named == channel.c.number)
    return find_channel(tx, name, or_(channel.c.session_id.is_not(None), ~links.exists()), lock=True)


def set_links(tx: WriteTransaction, named: int, sessions: Iterable[int]) -> None:
    """Link a channel that only a tool has named to the sessions that it may be; earlier links stay."""
    links = [{"named": named, "session": session} for session in sessions]
    if links:
        tx.execute(insert_into(tx.dialect.name, channel_link).on_conflict_do_nothing(), links)


def drop_link(tx: WriteTransaction, named: int, session: int) -> None:
    tx.execute(channel_link.delete().where(channel_link.c.named == named, channel_link.c.session == session))


def linked_sessions(tx: ReadTransaction, named: int) -> list[int]:
    """Return the numbers of the sessions that a channel which only a tool has named may be."""
    return list(tx.execute(select(channel_link.c.session).where(channel_link.c.named == named)).scalars())


def links_of(tx: ReadTransaction, number: int) -> list[str]:
    """Return the channels that may be the same conversation as this one."""
    query = select(channel.c.name).join(
        channel_link, or_(channel_link.c.named == channel.c.number, channel_link.c.session == channel.c.number)
    )
    linked = or_(channel_link.c.named == number, channel_link.c.session == number)
    query = query.where(linked, channel.c.number != number, channel.c.deleted.is_(False))
    return list(tx.execute(query.order_by(channel.c.name).distinct()).scalars())
