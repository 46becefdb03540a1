"""Find a session by a native id or its beginning, a channel, a nickname, `#3` or `3`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from sqlalchemy import ColumnElement, or_, select

from registry.errors import InvalidRequest, NotFound
from registry.storage.conversations.channels import ChannelRow, get_channel, recent_channels
from registry.storage.conversations.nicknames import numbers_called
from registry.storage.database import ReadTransaction
from registry.storage.tables import channel, channel_alias

_ORDINAL = re.compile(r"#(\d{1,6})")
_BARE_ORDINAL = re.compile(r"\d{1,5}")
_SHOWN = 5


def resolve_session(tx: ReadTransaction, reference: str) -> ChannelRow:
    """Return the session that is meant; NotFound, or InvalidRequest naming the candidates."""
    ordinal = _ORDINAL.fullmatch(reference)
    for place, condition in enumerate(_readings(tx, reference)):
        if ordinal and place:  # only a channel's own name comes before `#3`
            return _nth_recent(tx, int(ordinal[1]))
        rows = _matching_channels(tx, condition)
        if len(rows) == 1:
            return rows[0]
        if rows:
            raise InvalidRequest("That may be several sessions.", f"given {reference!r}; it may be {_names(rows)}")
    if _BARE_ORDINAL.fullmatch(reference):
        return _nth_recent(tx, int(reference))
    raise NotFound(
        "No such session", f"No session, channel or nickname {reference!r} in the registry{_nearest(tx, reference)}"
    )


def existing_channel(tx: ReadTransaction, name: str) -> ChannelRow:
    """Return the channel of that name, or the session with that reference; NotFound names similar ones."""
    try:
        return get_channel(tx, name)
    except NotFound as exc:
        try:
            return resolve_session(tx, name)
        except (NotFound, InvalidRequest):
            raise NotFound(exc.message, exc.details + _nearest(tx, name)) from exc


def _nearest(tx: ReadTransaction, reference: str) -> str:
    latest = recent_channels(tx, 300)  # a name with a typo is compared with the latest channels
    nicknames = tx.execute(select(channel.c.nickname).where(channel.c.nickname.is_not(None), ~channel.c.deleted))
    names = {name.casefold(): name for name in [*(row.name for row in latest), *nicknames.scalars()]}
    wanted = reference.casefold()
    near = get_close_matches(wanted, names, 3, 0.7) or [name for name in names if wanted in name][:3]
    return f"; nearest: {', '.join(repr(names[name]) for name in near)}" if near else ""


def _readings(tx: ReadTransaction, reference: str) -> Iterator[ColumnElement[bool]]:
    yield channel.c.name == reference
    yield channel.c.session_id == reference
    yield channel.c.nickname == reference
    yield channel.c.number.in_(select(channel_alias.c.channel_number).where(channel_alias.c.name == reference))
    yield channel.c.number.in_(numbers_called(tx, reference))
    if len(reference) >= 6:
        prefixes = (column.startswith(reference, autoescape=True) for column in (channel.c.session_id, channel.c.name))
        yield or_(*prefixes)


def _matching_channels(tx: ReadTransaction, condition: ColumnElement[bool]) -> Sequence[ChannelRow]:
    query = select(channel).where(channel.c.deleted.is_(False), condition)
    return tx.execute(query.order_by(channel.c.updated_at.desc(), channel.c.number.desc()).limit(_SHOWN + 1)).all()


def _nth_recent(tx: ReadTransaction, place: int) -> ChannelRow:
    if place < 1:
        raise NotFound("No such session", "given '#0'; counting starts at 1: '#1' is the most recent session")
    rows = recent_channels(tx, place)
    if len(rows) < place:
        raise NotFound("No such session", f"given '#{place}'; there are {len(rows)} sessions")
    return rows[-1]


def _names(rows: Sequence[ChannelRow]) -> str:
    ids = [row.session_id for row in rows]
    # Two sub-agents may have the same short id; only their channels' names tell them apart.
    own = [row.name if ids.count(row.session_id) > 1 else row.session_id or row.name for row in rows]
    titles = (row.title or row.first_message_preview or "" for row in rows)
    shown = [f"{name} ({title})" for name, title in zip(own[:_SHOWN], titles, strict=False)]
    return ", ".join([*shown, "…"] if len(rows) > _SHOWN else shown)
