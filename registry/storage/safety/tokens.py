"""Create, list, revoke and recognise tokens, and list people. Only a digest of a token's secret is stored."""

import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import Row, delete, exists, func, insert, or_, select, true, update

from registry.access import Access, Level
from registry.domain import format_time, new_id, now
from registry.errors import InvalidRequest, NotFound
from registry.storage.column_types import shown
from registry.storage.conversations.channels import ChannelRow
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.safety.visibility import ask_all, may_see
from registry.storage.tables import channel, page_session, token

PREFIX = "ctxr_"  # identifies the product if a token is found somewhere
USE_PRECISION = timedelta(minutes=1)  # the last use is recorded at most once a minute
_NAME = re.compile(r"[\w.@ -]{1,64}")


class NewToken(NamedTuple):
    """A new token: its secret, which is shown only once, its list item, and the patterns that match no channel yet."""

    secret: str
    item: dict[str, Any]
    unmatched: Sequence[str]


def create_token(
    tx: WriteTransaction,
    name: str,
    level: Level,
    channels: Sequence[str] = (),
    projects: Sequence[str] = (),
    expires_at: datetime | None = None,
    owner: str | None = None,
    per_minute: int | None = None,
) -> NewToken:
    """Create a token; InvalidRequest if a token has that name, even a revoked one, because records refer to it.

    `owner`: the person, if not the token's name. All tokens of a person see the same chats.
    `per_minute`: as `Access.per_minute`.
    """
    _check(tx, name, [*channels, *projects, *([] if owner is None else [owner])])
    secret = PREFIX + secrets.token_urlsafe(32)
    values = {
        "id": new_id("tok"),
        "name": name,
        "digest": _digest(secret),
        "scope": level.value,
        "channels": list(channels),
        "projects": list(projects),
        "owner": owner,
        "per_minute": per_minute,
        "created_at": now(),
        "expires_at": expires_at,
    }
    row = tx.execute(insert(token).values(**values).returning(token)).one()
    access_by_pattern = {one: Access(name, Level.ADMIN, channels=(one,)) for one in channels}
    access_by_pattern |= {one: Access(name, Level.ADMIN, projects=(one,)) for one in projects}
    unmatched = [one for one, access in access_by_pattern.items() if not may_see(tx, access, true())]
    return NewToken(secret, token_item(row), unmatched)


def _check(tx: ReadTransaction, name: str, patterns: Sequence[str]) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidRequest("That cannot be a token's name.", f"name: given {name!r}; allowed: letters, digits, ._@-")
    if tx.execute(select(token.c.number).where(token.c.name == name)).first():
        raise InvalidRequest(
            "A token with that name exists, or was revoked.", f"name: given {name!r}; allowed: a new name"
        )
    unusable = next((text for text in patterns if not text or not text.isprintable()), None)
    if unusable is not None:
        raise InvalidRequest(
            "That is not a pattern for channels.", f"given {unusable!r}; allowed: names; * and ? match other characters"
        )


def list_tokens(tx: ReadTransaction) -> list[dict[str, Any]]:
    return [token_item(row) for row in tx.execute(select(token).order_by(token.c.number.desc()))]


def revoke_token(tx: WriteTransaction, reference: str) -> dict[str, Any]:
    """Revoke a token by name or id. NotFound if there is none.

    The name of a person who signed in without a token, such as `oauth:kim`, ends their sessions on the pages.
    """
    if ended := tx.execute(delete(page_session).where(page_session.c.person == reference)).rowcount:
        return {"name": reference, "sessions": ended}
    named = or_(token.c.name == reference, token.c.id == reference)
    if tx.execute(select(token.c.number).where(named)).first() is None:
        raise NotFound("No such token", f"No token {reference!r}; `ctxr token list` shows them")
    tx.execute(update(token).where(named, token.c.revoked_at.is_(None)).values(revoked_at=now()))
    return token_item(tx.execute(select(token).where(named)).one())


def revoked_tokens(tx: ReadTransaction) -> dict[str, datetime]:
    """Return the times of revocation of the revoked tokens, by id."""
    revoked = select(token.c.id, token.c.revoked_at).where(token.c.revoked_at.is_not(None))
    return dict(tx.execute(revoked).all())


def revoke_again(tx: WriteTransaction, revoked: Mapping[str, datetime]) -> None:
    """Revoke tokens that were revoked already, but are active in a restored backup."""
    for id_, at in revoked.items():
        active = token.c.id == id_, token.c.revoked_at.is_(None)
        tx.execute(update(token).where(*active).values(revoked_at=at))


def has_tokens(tx: ReadTransaction) -> bool:
    """Return True if any token is not revoked, also an expired one: then every request needs a token."""
    return bool(tx.execute(select(exists().where(token.c.revoked_at.is_(None)))).scalar())


class ValidToken(NamedTuple):
    """A valid token of a request: its number, its access, and whether its last use must be updated."""

    number: int
    access: Access
    is_use_unrecorded: bool


def find_token(tx: ReadTransaction, secret: str) -> ValidToken | None:
    """Return the token with that secret; None if there is none, or it has expired or was revoked."""
    return _valid_token(tx.execute(select(token).where(token.c.digest == _digest(secret))).first())


def get_token(tx: ReadTransaction, number: int) -> ValidToken | None:
    return _valid_token(tx.execute(select(token).where(token.c.number == number)).first())


def tokens_seeing(tx: ReadTransaction, row: ChannelRow) -> dict[str, str | None]:
    """Return the tokens, admins' too, whose person can see a channel: owners by token name."""
    valid = [valid_token.access.as_person() for one in ask_all(tx, select(token)) if (valid_token := _valid_token(one))]
    is_it = channel.c.number == row.number
    return {access.name: access.owner for access in valid if access.is_restricted and may_see(tx, access, is_it)}


def note_use(tx: WriteTransaction, number: int) -> None:
    tx.execute(update(token).where(token.c.number == number).values(used_at=now()))


def _valid_token(row: Row[Any] | None) -> ValidToken | None:
    if row is None or _state(row) != "active":
        return None
    patterns = tuple(row.channels), tuple(row.projects)
    access = Access(row.name, Level(row.scope), *patterns, row.owner or row.name, per_minute=row.per_minute)
    return ValidToken(row.number, access, row.used_at is None or row.used_at < now() - USE_PRECISION)


def _state(row: Row[Any]) -> str:
    if row.revoked_at is not None:
        return "revoked"
    return "expired" if row.expires_at is not None and row.expires_at <= now() else "active"


def _digest(secret: str) -> bytes:
    """Digest a secret: it has as many bits as a key, so it needs no salt and no slow hash."""
    return sha256(secret.encode()).digest()


def token_item(row: Row[Any]) -> dict[str, Any]:
    """Return a token's list item, without its secret."""
    return {
        **shown(row, "id", "name", "scope", "channels", "projects"),
        "owner": row.owner or row.name,
        "state": _state(row),
        "per_minute": row.per_minute,
        **shown(row, "created_at", "expires_at", "revoked_at", "used_at"),
    }


def list_people(tx: ReadTransaction, access: Access | None) -> list[dict[str, Any]]:
    """Return each person with the counts of conversations, messages, valid tokens and sessions on the pages.

    `by_account`: the sessions that began with a sign-in at the OAuth issuer; revoking a token ends the others.

    `access`: the caller's access (None: everything); a restricted caller gets only their own entry.
    """
    people: dict[str, dict[str, Any]] = {}

    def entry_of(name: str) -> dict[str, Any]:
        empty = {"conversations": 0, "messages": 0, "latest": None, "tokens": 0, "sessions": 0, "by_account": 0}
        return people.setdefault(name, {"person": name, **empty})

    counts = func.count(), func.sum(channel.c.message_count), func.max(channel.c.updated_at)
    owned = channel.c.owner.is_not(None), channel.c.deleted.is_(False)
    for owner, conversations, messages, latest in tx.execute(
        select(channel.c.owner, *counts).where(*owned).group_by(channel.c.owner)
    ):
        entry_of(owner).update(conversations=conversations, messages=int(messages), latest=format_time(latest))
    for one in list_tokens(tx):
        entry_of(one["owner"])["tokens"] += one["state"] == "active"
    person = func.coalesce(page_session.c.person, token.c.owner, token.c.name)
    counts_of_sessions = select(person, func.count(), func.count(page_session.c.person)).where(
        page_session.c.until > now(), token.c.revoked_at.is_(None), person.is_not(None)
    )
    with_token = page_session.outerjoin(token, token.c.number == page_session.c.token_number)
    for name, sessions, by_account in tx.execute(counts_of_sessions.select_from(with_token).group_by(person)):
        entry_of(name).update(sessions=sessions, by_account=by_account)
    is_for_all = access is None or not access.is_restricted
    listed = [one for one in people.values() if is_for_all or (access and one["person"] == access.owner)]
    return sorted(listed, key=lambda one: (-one["conversations"], one["person"]))
