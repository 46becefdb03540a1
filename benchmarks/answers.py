"""What searches of a registry of `scale` answer, in digests: python -m benchmarks.answers URL

Where a change must not alter an answer, run it in the tree before and after, on the same registry, and compare the
lines: in each stands the digest of all that these searches found, to the last place of every score.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from sqlalchemy import func, select

from benchmarks.scale import KINDS, queries
from benchmarks.setup.figures import table
from registry.access import Access, Level
from registry.search.retrieval import SearchResult, find_messages
from registry.search.scope import Scope
from registry.storage.database import Database, ReadTransaction
from registry.storage.tables import conversation
from registry.text.request.syntax import parse_search

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVERYTHING = Access("all", Level.ADMIN)
TOKENS = (
    Access("projects", Level.READ, projects=("project_7", "project_8")),
    Access("names", Level.READ, channels=("session_1*",)),
    Access("both", Level.READ, channels=("session_75?",), projects=("project_4",)),
)


def scopes(last: datetime) -> Mapping[str, Scope]:
    """Scopes of every sort, by name."""
    week = last - timedelta(days=7)
    return {
        "everywhere": Scope(),
        "a large channel": Scope(channel_number=1),
        "a channel": Scope(channel_number=9),
        "without some": Scope(exclude_numbers=[1, 2, 3, 4, 5]),
        "a project": Scope(project="project_7"),
        "a week": Scope(from_=week),
        "a day": Scope(from_=week, to=week + timedelta(days=1)),
        "some weeks": Scope(from_=last - timedelta(days=60), to=last - timedelta(days=20)),
        "a source": Scope(sources=["codex"]),
        "a role": Scope(roles=["user"]),
        "all of it": Scope(roles=["user"], sources=["claude"], project="project_3"),
    }


def asked(kind: str) -> list[str]:
    """Requests of a kind: words, and of some of them a phrase, a beginning, and a word that must not be there."""
    found = queries(kind)
    some = [words.split() for words in found[:10]]
    phrases = [f'"{" ".join(words[:2])}" {" ".join(words)}' for words in some]
    beginnings = [f"{words[0][:4]}* {' '.join(words[1:])}" for words in some]
    return [*found, *phrases, *beginnings, *(f"{' '.join(words)} -{found[-1].split()[0]}" for words in some)]


def told(result: SearchResult) -> str:
    """All that a search found, in an order of its own."""
    return repr([_told(getattr(result, each.name)) for each in fields(result)])


def _told(value: Any) -> Any:
    if isinstance(value, Mapping | frozenset):
        return sorted(value.items() if isinstance(value, Mapping) else value)
    if isinstance(value, Sequence) and value and hasattr(value[0], "candidates"):
        return [[_told(getattr(wording, each.name)) for each in fields(wording)] for wording in value]
    return value


def lines(database: Database) -> Iterator[tuple[str, str, str, str]]:
    """For each kind of search how many were asked, what they found, and the digest of it."""
    with database.engine.begin() as connection:
        last = connection.execute(select(func.max(conversation.c.timestamp))).scalar_one()
    for name, scope in scopes(last).items():
        wanted = asked("typical") if name != "everywhere" else [one for kind in KINDS for one in asked(kind)]
        yield name, *_line(database, EVERYTHING, wanted, scope)
    for access in TOKENS:
        yield f"seen by {access.name}", *_line(database, access, queries("typical")[:10], Scope())


def _line(database: Database, access: Access, wanted: Sequence[str], scope: Scope) -> tuple[str, str, str]:
    def ask(tx: ReadTransaction) -> list[SearchResult]:
        return [find_messages(tx, parse_search(words, NOW), scope) for words in wanted]

    results = asyncio.run(database.seen_by(access).read(ask))
    digest = sha256("".join(map(told, results)).encode()).hexdigest()[:16]
    return str(len(wanted)), str(sum(len(one.ranked) for one in results)), digest


def main() -> None:
    """Ask and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answers", description=__doc__)
    parser.add_argument("url", help="a registry filled by `benchmarks.scale`; nothing is stored")
    database = Database(parser.parse_args().url)
    print(table(("searches", "asked", "found", "digest"), list(lines(database))))
    database.close()


if __name__ == "__main__":
    main()
