"""Resolve a reference to a session: a channel's name or alias, a native id or its prefix, a nickname, a title, or `#3`.

This module also stores aliases, nicknames, tags, and links between channels that may be the same conversation.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, func, insert, or_, select

from registry.errors import InvalidRequest, NotFound
from registry.storage.conversations.channels import (
    ChannelRow,
    change_channel,
    find_channel,
    get_channel,
    recent_channels,
)
from registry.storage.database import ReadTransaction, WriteTransaction, insert_new
from registry.storage.safety.masking import masked
from registry.storage.safety.visibility import ask_all, refuse_shared
from registry.storage.tables import channel, channel_alias, channel_link, tag


def add_alias(tx: WriteTransaction, name: str, channel_number: int) -> None:
    """Add an alias to a channel, unless the name is taken."""
    insert_new(tx, channel_alias, [{"name": name, "channel_number": channel_number}])


def drop_alias(tx: WriteTransaction, name: str) -> None:
    tx.execute(delete(channel_alias).where(channel_alias.c.name == name))


def aliases_of(tx: ReadTransaction, channel_number: int) -> list[str]:
    return aliases_by_channel(tx, [channel_number]).get(channel_number, [])


def aliases_by_channel(tx: ReadTransaction, numbers: Collection[int]) -> dict[int, list[str]]:
    query = select(channel_alias).where(channel_alias.c.channel_number.in_(numbers)).order_by(channel_alias.c.name)
    found: dict[int, list[str]] = {}
    for row in tx.execute(query):
        found.setdefault(row.channel_number, []).append(row.name)
    return found


def canonical_name(tx: ReadTransaction, name: str | None) -> str | None:
    """Return the channel's own name for one of its names; an unknown name is returned unchanged."""
    row = find_channel(tx, name) if name is not None else None
    return row.name if row else name


def find_settled_channel(tx: ReadTransaction, name: str) -> ChannelRow | None:
    """Return the channel of that name, locked, unless it is linked to sessions that it may be identical with."""
    links = select(channel_link).where(channel_link.c.named == channel.c.number)
    return find_channel(tx, name, or_(channel.c.session_id.is_not(None), ~links.exists()), lock=True)


def set_links(tx: WriteTransaction, named: int, sessions: Iterable[int]) -> None:
    """Link a channel named by a tool to the sessions that it may be identical with; earlier links stay."""
    insert_new(tx, channel_link, [{"named": named, "session": session} for session in sessions])


def drop_link(tx: WriteTransaction, named: int, session: int) -> None:
    tx.execute(channel_link.delete().where(channel_link.c.named == named, channel_link.c.session == session))


def linked_sessions(tx: ReadTransaction, named: int) -> list[int]:
    """Return the numbers of the sessions with which a channel named by a tool may be identical."""
    return list(tx.execute(select(channel_link.c.session).where(channel_link.c.named == named)).scalars())


def links_of(tx: ReadTransaction, number: int) -> list[str]:
    """Return the names of the channels that may be the same conversation as this one."""
    query = select(channel.c.name).join(
        channel_link, or_(channel_link.c.named == channel.c.number, channel_link.c.session == channel.c.number)
    )
    linked = or_(channel_link.c.named == number, channel_link.c.session == number)
    query = query.where(linked, channel.c.number != number, channel.c.deleted.is_(False))
    return list(tx.execute(query.order_by(channel.c.name).distinct()).scalars())


_ORDINAL = re.compile(r"#(\d{1,6})")
_BARE_ORDINAL = re.compile(r"\d{1,5}")
_SHOWN = 5


def resolve_session(tx: ReadTransaction, reference: str) -> ChannelRow:
    """Return the session of a reference; NotFound, or InvalidRequest that names the candidates.

    In a write transaction, raise Unauthorized for a session that is only shared with the token, because a later
    interpretation of the reference could find another session.
    """
    ordinal = _ORDINAL.fullmatch(reference)
    for rank, condition in enumerate(_interpretations(tx, reference)):
        if ordinal and rank:  # only a channel's name has precedence over `#3`
            return _nth_recent(tx, int(ordinal[1]))
        query = select(channel).where(channel.c.deleted.is_(False), condition)
        rows = tx.execute(query.order_by(channel.c.updated_at.desc(), channel.c.number.desc()).limit(_SHOWN + 1)).all()
        if len(rows) == 1:
            return rows[0]
        if rows:
            raise InvalidRequest("That may be several sessions.", f"given {reference!r}; it may be {_names(rows)}")
        refuse_shared(tx, and_(channel.c.deleted.is_(False), condition))
    if _BARE_ORDINAL.fullmatch(reference):
        return _nth_recent(tx, int(reference))
    raise NotFound(
        "No such session", f"No session, channel or nickname {reference!r} in the registry{_similar(tx, reference)}"
    )


def resolve_edited(tx: WriteTransaction, reference: str, done_at: datetime | None) -> ChannelRow:
    """Return the session to edit.

    An edit from another registry (it has a time) also applies to a deleted session, because that may be restored.
    """
    deleted = find_channel(tx, reference, channel.c.deleted.is_(True)) if done_at else None
    return deleted or resolve_session(tx, reference)


def existing_channel(tx: ReadTransaction, name: str) -> ChannelRow:
    """Return the channel of that name, or the session with that reference; NotFound names similar ones."""
    try:
        return get_channel(tx, name)
    except NotFound as exc:
        try:
            return resolve_session(tx, name)
        except NotFound:
            raise NotFound(exc.message, exc.details + _similar(tx, name)) from exc
        except InvalidRequest as ambiguous:
            raise NotFound(exc.message, f"{exc.details}; {ambiguous.details.partition('; ')[2]}") from exc


def _similar(tx: ReadTransaction, reference: str) -> str:
    latest = recent_channels(tx, 300)  # compare a mistyped name with the latest channels only
    nicknames = tx.execute(select(channel.c.nickname).where(channel.c.nickname.is_not(None), ~channel.c.deleted))
    names = {name.casefold(): name for name in [*(row.name for row in latest), *nicknames.scalars()]}
    wanted = reference.casefold()
    similar = get_close_matches(wanted, names, 3, 0.7) or [name for name in names if wanted in name][:3]
    return f"; nearest: {', '.join(repr(names[name]) for name in similar)}" if similar else ""


def _interpretations(tx: ReadTransaction, reference: str) -> Iterator[ColumnElement[bool]]:
    yield channel.c.name == reference
    yield channel.c.session_id == reference
    yield channel.c.nickname == reference
    yield channel.c.number.in_(select(channel_alias.c.channel_number).where(channel_alias.c.name == reference))
    yield channel.c.number.in_(numbers_with_nickname(tx, reference))
    if not _BARE_ORDINAL.fullmatch(reference):
        title = func.lower(func.coalesce(channel.c.title, channel.c.first_message_preview))
        shown, ellipsis, _ = reference.strip().lower().partition("…")  # lists shorten titles
        yield title.startswith(shown, autoescape=True) if shown and ellipsis else title == shown
    # The name of a deleted session is not the beginning of another one's.
    if len(reference) >= 6 and find_channel(tx, reference) is None:
        prefixes = (column.startswith(reference, autoescape=True) for column in (channel.c.session_id, channel.c.name))
        yield or_(*prefixes)


def _nth_recent(tx: ReadTransaction, position: int) -> ChannelRow:
    if position < 1:
        raise NotFound("No such session", "given '#0'; counting starts at 1: '#1' is the most recent session")
    rows = recent_channels(tx, position, is_as_listed=True)
    if len(rows) < position:
        raise NotFound("No such session", f"given '#{position}'; there are {len(rows)} sessions")
    refuse_shared(tx, channel.c.number == rows[-1].number)
    return rows[-1]


def _names(rows: Sequence[ChannelRow]) -> str:
    ids = [row.session_id for row in rows]
    # Two sub-agents may have the same short id; only their channels' names tell them apart.
    names = [row.name if ids.count(row.session_id) > 1 else row.session_id or row.name for row in rows]
    titles = (row.title or row.first_message_preview or "" for row in rows)
    shown = [f"{name} ({title})" for name, title in zip(names[:_SHOWN], titles, strict=False)]
    return ", ".join([*shown, "…"] if len(rows) > _SHOWN else shown)


_LIST_POSITION = re.compile(r"#?\d+")


def check_nickname(tx: ReadTransaction, nickname: str, number: int) -> None:
    """Raise InvalidRequest, with the reason, unless a channel may have this nickname."""
    _check_characters(nickname)
    with_nickname = (
        row.number for row in ask_all(tx, _WITH_NICKNAME) if _is_same(row.nickname, nickname) and row.number != number
    )
    holder = _other_with_name(tx, nickname, number) or next(with_nickname, None)
    if holder is not None:
        visible_name = tx.execute(select(channel.c.name).where(channel.c.number == holder)).scalar()
        owner = f"channel {visible_name!r}" if visible_name is not None else "another channel"
        raise InvalidRequest(
            "The nickname is taken.",
            f"nickname: given {nickname!r}, which names {owner}; allowed: a name that no other session has",
        )


def numbers_with_nickname(tx: ReadTransaction, nickname: str) -> list[int]:
    """Return the numbers of channels with this nickname, case-insensitively; compared here because databases differ."""
    return [row.number for row in tx.execute(_WITH_NICKNAME) if _is_same(row.nickname, nickname)]


_WITH_NICKNAME = select(channel.c.number, channel.c.nickname).where(channel.c.nickname.is_not(None))


def _is_same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


def _check_characters(nickname: str) -> None:
    kinds = [unicodedata.category(letter) for letter in nickname]
    if "Cc" in kinds or all(kind[0] in "CZ" for kind in kinds):
        raise _refusal(nickname, "visible characters, and no control characters")
    if _LIST_POSITION.fullmatch(nickname):
        raise _refusal(nickname, "a name; numbers and `#3` mean a position in the list")


def _refusal(nickname: str, allowed: str) -> InvalidRequest:
    return InvalidRequest("That cannot be a nickname.", f"nickname: given {nickname!r}; allowed: {allowed}")


def _other_with_name(tx: ReadTransaction, name: str, number: int) -> int | None:
    other = channel.c.number != number, or_(channel.c.name == name, channel.c.session_id == name)
    alias = channel_alias.c.channel_number != number, channel_alias.c.name == name
    queries = select(channel.c.number).where(*other), select(channel_alias.c.channel_number).where(*alias)
    return next((number for query in queries for number in ask_all(tx, query).scalars()), None)


def edit_channel(tx: WriteTransaction, name: str, changes: Mapping[str, Any], tags: Sequence[str] | None) -> ChannelRow:
    """Set title and nickname, if given, and replace the tags, if given. InvalidRequest for a bad nickname."""
    row = get_channel(tx, name, with_deleted=True)
    nickname = changes.get("nickname")
    if nickname not in (None, row.nickname):  # a stored nickname stays valid if the rules change
        check_nickname(tx, nickname, row.number)
    if changes:
        change_channel(tx, row, changes)
    if tags is not None:
        tx.execute(delete(tag).where(tag.c.channel_number == row.number))
        rows = [{"channel_number": row.number, "name": name} for name in dict.fromkeys(masked(tx, tags))]
        if rows:
            tx.execute(insert(tag), rows)
    return get_channel(tx, name, with_deleted=True)
