"""Check new nicknames, and find sessions by nickname, case-insensitively."""

from __future__ import annotations

import re
import unicodedata

from sqlalchemy import or_, select

from registry.errors import InvalidRequest
from registry.storage.database import ReadTransaction
from registry.storage.safety.visibility import ask_all
from registry.storage.tables import channel, channel_alias

_PLACE = re.compile(r"#?\d+")


def check_nickname(tx: ReadTransaction, nickname: str, number: int) -> None:
    """Raise InvalidRequest, which names what is allowed, unless a channel may have this nickname."""
    _check_letters(nickname)
    called = (
        row.number for row in ask_all(tx, _NICKNAMED) if _is_same(row.nickname, nickname) and row.number != number
    )
    holder = _other_with_name(tx, nickname, number) or next(called, None)
    if holder is not None:
        seen = tx.execute(select(channel.c.name).where(channel.c.number == holder)).scalar()
        whose = f"channel {seen!r}" if seen is not None else "another channel"
        raise InvalidRequest(
            "The nickname is taken.",
            f"nickname: given {nickname!r}, which names {whose}; allowed: what names no other session",
        )


def numbers_called(tx: ReadTransaction, nickname: str) -> list[int]:
    """Return the numbers of channels with this nickname, case-insensitively; compared here because databases differ."""
    return [row.number for row in tx.execute(_NICKNAMED) if _is_same(row.nickname, nickname)]


_NICKNAMED = select(channel.c.number, channel.c.nickname).where(channel.c.nickname.is_not(None))


def _is_same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


def _check_letters(nickname: str) -> None:
    kinds = [unicodedata.category(letter) for letter in nickname]
    if "Cc" in kinds or all(kind[0] in "CZ" for kind in kinds):
        raise _refusal(nickname, "visible characters, and no control characters")
    if _PLACE.fullmatch(nickname):
        raise _refusal(nickname, "a name; numbers and `#3` mean a place in the list")


def _refusal(nickname: str, allowed: str) -> InvalidRequest:
    return InvalidRequest("That cannot be a nickname.", f"nickname: given {nickname!r}; allowed: {allowed}")


def _other_with_name(tx: ReadTransaction, name: str, number: int) -> int | None:
    other = channel.c.number != number, or_(channel.c.name == name, channel.c.session_id == name)
    alias = channel_alias.c.channel_number != number, channel_alias.c.name == name
    queries = select(channel.c.number).where(*other), select(channel_alias.c.channel_number).where(*alias)
    return next((number for query in queries for number in ask_all(tx, query).scalars()), None)
