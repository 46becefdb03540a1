"""Read a client's store in a test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from registry.domain import Role, Session
from sources.base import FoundSession, Skipped, Source


def scan(reader: Source, store: Path, seen: Mapping[str, str] | None = None) -> list[FoundSession | Skipped]:
    """Return the changed sessions of a store, and what was skipped."""
    return list(reader.sessions(store, seen or {}))


def read_changed(reader: Source, store: Path, seen: Mapping[str, str] | None = None) -> list[FoundSession]:
    """Return the changed sessions of a store."""
    return [each for each in scan(reader, store, seen) if isinstance(each, FoundSession)]


def fingerprints(found: list[FoundSession | Skipped]) -> dict[str, str]:
    """Return the fingerprint of each session, as a sync stores them."""
    return {each.key: each.fingerprint for each in found if isinstance(each, FoundSession)}


def fingerprints_of(reader: Source, store: Path) -> dict[str, str]:
    """Return the fingerprint of each session of a store."""
    return fingerprints(scan(reader, store))


def texts_of(session: Session, *roles: Role) -> list[tuple[str, str]]:
    """Return (role, text) of each message, or of those with one of the roles."""
    return [(each.role.value, each.text) for each in session.messages if not roles or each.role in roles]
