"""Store the sessions of signed-in browsers, for all servers of a registry and across restarts.

Only a digest of a session's key is stored. A row without a person and a token is a used sign-in code.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from hashlib import sha256
from secrets import token_urlsafe

from sqlalchemy import delete, insert, select, update

from registry.access import Access, Level
from registry.domain import now
from registry.storage.database import ReadTransaction, WriteTransaction, insert_into
from registry.storage.safety.tokens import ValidToken, get_token
from registry.storage.tables import page_session


def begin_session(tx: WriteTransaction, number: int | None, access: Access, seconds: int) -> str:
    """Create a session of a token (its number) or of an access, and return its key. Delete expired sessions."""
    key = token_urlsafe(32)
    values = {"person": access.name, "access": asdict(access)} if number is None else {"token_number": number}
    tx.execute(delete(page_session).where(page_session.c.until <= now()))
    tx.execute(insert(page_session).values(digest=_digest(key), until=now() + timedelta(seconds=seconds), **values))
    return key


def find_session(tx: ReadTransaction, key: str) -> ValidToken | Access | None:
    """Return the session's current token, or its access; None if session or token are no longer valid."""
    valid = page_session.c.digest == _digest(key), page_session.c.until > now()
    row = tx.execute(select(page_session).where(*valid)).first()
    if row is None or (row.token_number is None and row.access is None):
        return None
    if row.token_number is not None:
        return get_token(tx, row.token_number)
    patterns = {name: tuple(row.access[name]) for name in ("channels", "projects")}
    return Access(**{**row.access, **patterns, "level": Level(row.access["level"])})


def renew_sessions(tx: WriteTransaction, person: str, access: Access | None) -> None:
    """Give the open sessions of a person who signed in without a token another access; None: end them."""
    of_person = page_session.c.person == person
    if access is None:
        tx.execute(delete(page_session).where(of_person))
    else:
        tx.execute(update(page_session).where(of_person).values(access=asdict(access)))


def end_session(tx: WriteTransaction, key: str) -> None:
    tx.execute(delete(page_session).where(page_session.c.digest == _digest(key)))


def use_code(tx: WriteTransaction, code: str, seconds: int) -> bool:
    """Mark a sign-in code as used, on all servers and across restarts; False if it was used before."""
    row = {"digest": _digest(f"code:{code}"), "until": now() + timedelta(seconds=seconds)}
    added = insert_into(tx.dialect.name, page_session).values(row).on_conflict_do_nothing()
    return tx.execute(added.returning(page_session.c.until)).first() is not None


def open_sessions(tx: ReadTransaction) -> list[bytes]:
    return [bytes(digest) for digest in tx.execute(select(page_session.c.digest)).scalars()]


def end_other_sessions(tx: WriteTransaction, digests: Sequence[bytes]) -> None:
    """Delete all sessions but these: a restored backup may contain sessions that were ended since."""
    tx.execute(delete(page_session).where(page_session.c.digest.not_in(digests)))


def _digest(key: str) -> bytes:
    return sha256(key.encode()).digest()
