"""The message index on PostgreSQL: one narrow table of position-less tsvectors under a GIN index."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import text

from registry.database import ReadTransaction, WriteTransaction
from registry.search.index import Entry, MessageIndex

_ADD = text("INSERT INTO message_index (number, tokens) VALUES (:number, CAST(:tokens AS tsvector))")
_REMOVE = text("DELETE FROM message_index WHERE number = :number")
_FREQUENCY = text("SELECT count(*) FROM message_index WHERE tokens @@ CAST(:query AS tsquery)")


class PostgresIndex(MessageIndex):
    """`tsvector` made of our own tokens, never of the database's analysis (retrieval notes 2)."""

    name = "gin"

    def add(self, tx: WriteTransaction, entries: Sequence[Entry]) -> None:
        tx.execute(
            _ADD,
            [{"number": entry.number, "tokens": " ".join(f"'{token}'" for token in entry.tokens)} for entry in entries],
        )

    def remove(self, tx: WriteTransaction, entries: Sequence[Entry]) -> None:
        tx.execute(_REMOVE, [{"number": entry.number} for entry in entries])

    def frequencies(self, tx: ReadTransaction, tokens: Sequence[str]) -> dict[str, int]:
        counted = {token: tx.execute(_FREQUENCY, {"query": f"'{token}'"}).scalar_one() for token in tokens}
        return {token: count for token, count in counted.items() if count}

    def postings(self, parameter: str) -> str:
        return f"SELECT number AS id FROM message_index WHERE tokens @@ CAST(:{parameter} AS tsquery)"  # noqa: S608, a name of ours

    def expression(self, tokens: Sequence[str]) -> str:
        return " & ".join(f"'{token}'" for token in tokens)
