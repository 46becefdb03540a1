"""What tests of readers ask of a store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from registry.domain import Role, Session
from sources.base import FoundSession, Skipped, Source


def results(reader: Source, store: Path, seen: Mapping[str, str] | None = None) -> list[FoundSession | Skipped]:
    """All that a look at a store finds."""
    return list(reader.sessions(store, seen or {}))


def found(reader: Source, store: Path, seen: Mapping[str, str] | None = None) -> list[FoundSession]:
    """The changed sessions of a store."""
    return [each for each in results(reader, store, seen) if isinstance(each, FoundSession)]


def seen_of(reader: Source, store: Path) -> dict[str, str]:
    """What a sync remembers of a store."""
    return {each.key: each.fingerprint for each in found(reader, store)}


def said(session: Session, *roles: Role) -> list[tuple[str, str]]:
    """Who said what."""
    return [(each.role.value, each.text) for each in session.messages if not roles or each.role in roles]
