"""The message index: which messages contain a token. One interface; each database fills in three statements.

It lives in the database and changes in the same transaction as the messages, so what is acknowledged is
findable and what is deleted is not. It holds tokens of the one analyzer, without positions or frequencies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import eq, ge, le, ne
from typing import Any

from sqlalchemy import ColumnElement, Integer, Subquery, column, select, text

from registry.conditions import given_conditions, is_in, is_of_project, is_tagged
from registry.database import ReadTransaction, WriteTransaction
from registry.search.ranking import Candidate, Term
from registry.tables import channel, conversation

CANDIDATES = 1000
CANDIDATES_IN_CHANNEL = 300
"""How many of the heaviest messages are taken into ranking."""

WEIGHT_UNIT = 1_000_000
"""Weights are summed as whole numbers, so that both databases come to the very same sums."""

TITLE = "zztitle"
"""Carried by every title, which stands in the index under its channel's number, negated."""


def channel_token(number: int) -> str:
    """Carried by every message of a channel, so that a search inside it reads only its own postings."""
    return f"zzc{number}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A message (or, under a negative number, a channel's title) as the index holds it."""

    number: int
    tokens: Sequence[str]


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to look; None means everywhere. Times are instants, both ends included."""

    channel_number: int | None = None
    source: str | None = None
    project: str | None = None
    tag: str | None = None
    roles: Sequence[str] | None = None
    from_: datetime | None = None
    to: datetime | None = None
    exclude_channel: str | None = None


class MessageIndex(ABC):
    """What a database's index can do."""

    name: str
    """Named in execution records: which index gave the candidates."""

    @abstractmethod
    def add(self, tx: WriteTransaction, entries: Sequence[Entry]) -> None:
        """Make entries findable."""

    @abstractmethod
    def remove(self, tx: WriteTransaction, entries: Sequence[Entry]) -> None:
        """Make entries unfindable; the tokens must be those they were added with."""

    @abstractmethod
    def frequencies(self, tx: ReadTransaction, tokens: Sequence[str]) -> dict[str, int]:
        """In how many messages each token occurs; tokens that occur nowhere are left out."""

    @abstractmethod
    def postings(self, parameter: str) -> str:
        """SQL that yields the `id` of every entry matching the expression in that parameter."""

    @abstractmethod
    def expression(self, tokens: Sequence[str]) -> str:
        """The parameter's value that matches entries carrying all of these tokens."""

    def candidates(self, tx: ReadTransaction, terms: Sequence[Term], scope: Scope) -> list[Candidate]:
        """The messages in scope with the largest sum of term weights, heaviest and newest first."""
        conditions = _conditions(scope)
        within = [] if scope.channel_number is None else [channel_token(scope.channel_number)]
        # With conditions on the message itself the cut must come after them.
        most = CANDIDATES_IN_CHANNEL if within else CANDIDATES
        cut = "" if conditions else f"ORDER BY mass DESC, id DESC LIMIT {most}"
        hits = self._sums(terms, within, f"id > 0 GROUP BY id {cut}")
        query = select(
            conversation.c.number,
            conversation.c.channel_number,
            conversation.c.seq,
            conversation.c.role,
            conversation.c.length,
            hits.c.mass,
            conversation.c.turn,
        ).join_from(hits, conversation, conversation.c.number == hits.c.id)
        if conditions:
            query = query.join(channel, channel.c.number == conversation.c.channel_number).where(*conditions)
        rows = tx.execute(query.order_by(hits.c.mass.desc(), hits.c.id.desc()).limit(most)).all()
        return [Candidate(*row[:5], row.mass / WEIGHT_UNIT, row.turn) for row in rows]

    def titles(self, tx: ReadTransaction, terms: Sequence[Term]) -> dict[int, float]:
        """The sum of term weights in each channel's title, by channel number."""
        hits = self._sums(terms, [TITLE], f"id < 0 GROUP BY id ORDER BY mass DESC, id LIMIT {CANDIDATES}")
        return {-row.id: row.mass / WEIGHT_UNIT for row in tx.execute(select(hits))}

    def _sums(self, terms: Sequence[Term], within: Sequence[str], ending: str) -> Subquery:
        """A subquery of (id, mass): for every entry the sum of the weights of the terms it carries."""
        parts = [
            f"SELECT id, CAST(:w{i} AS BIGINT) AS w FROM ({self.postings(f't{i}')}) AS p{i}"  # noqa: S608
            for i in range(len(terms))
        ]
        # Nothing but names of ours is put into the text, so that it is compiled once for each number of terms.
        hits = f"({' UNION ALL '.join(parts)}) AS hits"
        sql = f"SELECT id, CAST(sum(w) AS BIGINT) AS mass FROM {hits} WHERE {ending}"  # noqa: S608
        given: dict[str, Any] = {}
        for i, term in enumerate(terms):
            given |= {f"t{i}": self.expression([*within, term.token]), f"w{i}": round(term.weight * WEIGHT_UNIT)}
        return text(sql).bindparams(**given).columns(column("id", Integer), column("mass", Integer)).subquery()


def _conditions(scope: Scope) -> list[ColumnElement[bool]]:
    """What a candidate must be, beyond carrying a term."""
    return given_conditions(
        (eq, conversation.c.source, scope.source),
        (is_of_project, channel.c.project_path, scope.project),
        (is_tagged, channel.c.number, scope.tag),
        (is_in, conversation.c.role, scope.roles),
        (ge, conversation.c.timestamp, scope.from_),
        (le, conversation.c.timestamp, scope.to),
        (ne, conversation.c.channel, scope.exclude_channel),
    )
