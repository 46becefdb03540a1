"""Compute the digests that identify what was forgotten, keyed with the registry's key."""

from collections.abc import Iterable
from hashlib import blake2b

from registry.storage.safety.visibility import renamed_for

CHANNEL, OWNED, SESSION, WORDS, DERIVED, MESSAGE = "channel", "owned", "session", "said", "derived", "message"
"""Kinds of digests: of a channel's name, of a name, id or message in a person's channel, of a session id, of a role and
text, of a derived record, and of the id of a message whose row is missing since a backup was restored."""
SESSION_NAME = "session_name"
"""Kind of the digest of a session's name, which another session may have: it refuses only a channel without an id."""


def channel_digests_to_note(
    key: bytes, names: Iterable[str], session_id: str | None, owner: str | None
) -> list[tuple[bytes, str]]:
    """Return the digests to record for a forgotten channel; for a person's, of its names with and without suffix."""
    if owner is not None:
        base_names = [name.removesuffix(renamed_for("", owner)) for name in names]
        names = [*base_names, *(renamed_for(name, owner) for name in base_names)]
    kind = SESSION_NAME if session_id else CHANNEL
    marks = [mark for name in names for mark in digests_to_note(key, kind, name.encode(), owner)]
    return marks + (digests_to_note(key, SESSION, session_id.encode(), owner) if session_id else [])


def channel_digests_to_check(
    key: bytes, names: Iterable[str], session_id: str | None, owner: str | None
) -> list[tuple[bytes, str]]:
    """Return the digests that refuse a channel of a person, if one is recorded."""
    kinds = [CHANNEL] if session_id else [CHANNEL, SESSION_NAME]
    named = [(kind, name.encode()) for name in names for kind in kinds]
    marks = [mark for kind, name in named for mark in digests_to_check(key, kind, name, owner)]
    return marks + (digests_to_check(key, SESSION, session_id.encode(), owner) if session_id else [])


def digests_to_note(key: bytes, what: str, of: bytes, owner: str | None) -> list[tuple[bytes, str]]:
    """Return the digests to record for a forgotten name, id or message. A person's is not forgotten for others."""
    if owner is None:
        return [(keyed_digest(key, what, of), what)]
    return [(_person_digest(key, what, of, owner), what), (_owned_digest(key, what, of), OWNED)]


def digests_to_check(key: bytes, what: str, of: bytes, owner: str | None) -> list[tuple[bytes, str]]:
    """Return the digests that refuse a name, id or message of a person; without an owner, those of all people."""
    other = (_owned_digest(key, what, of), OWNED) if owner is None else (_person_digest(key, what, of, owner), what)
    return [(keyed_digest(key, what, of), what), other]


def _person_digest(key: bytes, what: str, of: bytes, owner: str) -> bytes:
    return keyed_digest(key, what, owner.encode() + b"\0" + of)


def _owned_digest(key: bytes, what: str, of: bytes) -> bytes:
    return keyed_digest(key, OWNED, what.encode() + b"\0" + of)


def keyed_digest(key: bytes, what: str, of: bytes) -> bytes:
    """Return a keyed digest: without the registry's key, its input cannot be guessed."""
    return blake2b(what.encode() + b"\0" + of, key=key, digest_size=16).digest()
