"""The message index on SQLite: a contentless FTS5 table that keeps nothing but the postings."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, text

from registry.database import ReadTransaction, WriteTransaction
from registry.search.index import Entry, MessageIndex

_ADD = text("INSERT INTO message_index (rowid, t) VALUES (:number, :tokens)")
_REMOVE = text("INSERT INTO message_index (message_index, rowid, t) VALUES ('delete', :number, :tokens)")
_FREQUENCIES = text("SELECT term, doc FROM message_term WHERE term IN :tokens").bindparams(
    bindparam("tokens", expanding=True)
)


def _rows(entries: Sequence[Entry]) -> list[dict[str, object]]:
    return [{"number": entry.number, "tokens": " ".join(entry.tokens)} for entry in entries]


class SqliteIndex(MessageIndex):
    """`fts5(t, content='', detail=none)`; a third of the text's size (retrieval notes 2)."""

    name = "fts5"

    def add(self, tx: WriteTransaction, entries: Sequence[Entry]) -> None:
        tx.execute(_ADD, _rows(entries))

    def remove(self, tx: WriteTransaction, entries: Sequence[Entry]) -> None:
        tx.execute(_REMOVE, _rows(entries))

    def frequencies(self, tx: ReadTransaction, tokens: Sequence[str]) -> dict[str, int]:
        return {row.term: row.doc for row in tx.execute(_FREQUENCIES, {"tokens": list(tokens)})}

    def postings(self, parameter: str) -> str:
        return f"SELECT rowid AS id FROM message_index WHERE message_index MATCH :{parameter}"  # noqa: S608, a name of ours

    def expression(self, tokens: Sequence[str]) -> str:
        return " AND ".join(f'"{token}"' for token in tokens)
