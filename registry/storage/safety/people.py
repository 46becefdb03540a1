"""List the people of a registry: what is theirs, what lets them in, and when they were last there."""

from typing import Any

from sqlalchemy import func, select

from registry.access import Access
from registry.domain import format_time, now
from registry.storage.database import ReadTransaction
from registry.storage.safety.tokens import list_tokens
from registry.storage.tables import channel, page_session, token


def list_people(tx: ReadTransaction, access: Access | None) -> list[dict[str, Any]]:
    """Return each person with the counts of conversations, messages, good tokens and sessions on the pages.

    `by_account`: those sessions that a sign-in at the OAuth issuer began; a token ends the others with it.

    `access`: what the asker may do (None: everything); of others than themselves they see nobody, unless they see all.
    """
    people: dict[str, dict[str, Any]] = {}

    def of(name: str) -> dict[str, Any]:
        nothing = {"conversations": 0, "messages": 0, "latest": None, "tokens": 0, "sessions": 0, "by_account": 0}
        return people.setdefault(name, {"person": name, **nothing})

    counts = func.count(), func.sum(channel.c.message_count), func.max(channel.c.updated_at)
    owned = channel.c.owner.is_not(None), channel.c.deleted.is_(False)
    for owner, conversations, messages, latest in tx.execute(
        select(channel.c.owner, *counts).where(*owned).group_by(channel.c.owner)
    ):
        of(owner).update(conversations=conversations, messages=int(messages), latest=format_time(latest))
    for one in list_tokens(tx):
        of(one["owner"])["tokens"] += one["state"] == "active"
    person = func.coalesce(page_session.c.person, token.c.owner, token.c.name)
    counts_of_sessions = select(person, func.count(), func.count(page_session.c.person)).where(
        page_session.c.until > now(), token.c.revoked_at.is_(None)
    )
    with_token = page_session.outerjoin(token, token.c.number == page_session.c.token_number)
    for name, sessions, by_account in tx.execute(counts_of_sessions.select_from(with_token).group_by(person)):
        of(name).update(sessions=sessions, by_account=by_account)
    is_for_all = access is None or not access.is_restricted
    shown = [one for one in people.values() if is_for_all or (access and one["person"] == access.owner)]
    return sorted(shown, key=lambda one: (-one["conversations"], one["person"]))
