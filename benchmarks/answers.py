"""Print digests of search results, to check that a change alters no answer: python -m benchmarks.answers URL

Run it before and after the change on the same registry (filled by `scale`), and compare the lines. A digest covers
all results of a line's searches, including every digit of the scores.
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
    """Return one scope of each kind, by name."""
    week = last - timedelta(days=7)
    return {
        "everywhere": Scope(),
        "a large channel": Scope(channel_number=1),
        "a channel": Scope(channel_number=9),
        "without five channels": Scope(exclude_numbers=[1, 2, 3, 4, 5]),
        "a project": Scope(project="project_7"),
        "a week": Scope(from_=week),
        "a day": Scope(from_=week, to=week + timedelta(days=1)),
        "some weeks": Scope(from_=last - timedelta(days=60), to=last - timedelta(days=20)),
        "a source": Scope(sources=["codex"]),
        "a role": Scope(roles=["user"]),
        "role, source and project": Scope(roles=["user"], sources=["claude"], project="project_3"),
    }


def requests(kind: str) -> list[str]:
    """Return the queries of a kind, and variants of ten of them: with a phrase, a prefix and an excluded word."""
    found = queries(kind)
    some = [words.split() for words in found[:10]]
    phrases = [f'"{" ".join(words[:2])}" {" ".join(words)}' for words in some]
    beginnings = [f"{words[0][:4]}* {' '.join(words[1:])}" for words in some]
    return [*found, *phrases, *beginnings, *(f"{' '.join(words)} -{found[-1].split()[0]}" for words in some)]


def canonical(result: SearchResult) -> str:
    """Return a text with all fields of a result, in a stable order."""
    return repr([_canonical_value(getattr(result, each.name)) for each in fields(result)])


def _canonical_value(value: Any) -> Any:
    if isinstance(value, Mapping | frozenset):
        return sorted(value.items() if isinstance(value, Mapping) else value)
    if isinstance(value, Sequence) and value and hasattr(value[0], "candidates"):
        return [[_canonical_value(getattr(wording, each.name)) for each in fields(wording)] for wording in value]
    return value


def table_rows(database: Database) -> Iterator[tuple[str, str, str, str]]:
    """Yield for each kind of search its name, the number of searches and of results, and the digest."""
    with database.engine.begin() as connection:
        last = connection.execute(select(func.max(conversation.c.timestamp))).scalar_one()
    for name, scope in scopes(last).items():
        wanted = requests("typical") if name != "everywhere" else [one for kind in KINDS for one in requests(kind)]
        yield name, *_figures(database, EVERYTHING, wanted, scope)
    for access in TOKENS:
        yield f"seen by {access.name}", *_figures(database, access, queries("typical")[:10], Scope())


def _figures(database: Database, access: Access, wanted: Sequence[str], scope: Scope) -> tuple[str, str, str]:
    def ask(tx: ReadTransaction) -> list[SearchResult]:
        return [find_messages(tx, parse_search(words, NOW), scope) for words in wanted]

    results = asyncio.run(database.seen_by(access).read(ask))
    digest = sha256("".join(map(canonical, results)).encode()).hexdigest()[:16]
    return str(len(wanted)), str(sum(len(one.ranked) for one in results)), digest


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answers", description=__doc__)
    parser.add_argument("url", help="a registry filled by `benchmarks.scale`; nothing is stored")
    database = Database(parser.parse_args().url)
    print(table(("searches", "number", "results", "digest"), list(table_rows(database))))
    database.close()


if __name__ == "__main__":
    main()
