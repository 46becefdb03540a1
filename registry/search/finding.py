"""From a request in words to ranked messages: analyse, look up, weigh, rank. One road for extract and search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import func, select

from registry.database import ReadTransaction
from registry.search.analyzer import KEY_PREFIX
from registry.search.engines import index_of
from registry.search.index import Scope
from registry.search.query import ParsedQuery, parse_query
from registry.search.ranking import Ranked, Term, full_mass, rank, weighted_terms
from registry.tables import channel

BUDGETS = {"sqlite": 100_000, "postgresql": 20_000}
"""Postings one search reads unless the settings say otherwise (retrieval notes 4)."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a request found: `ranked` best first; `titles` the mass of channel titles, by channel number.

    `full` is the mass of a perfect answer; a message of no more mass than `sounds` may only sound like the words.
    """

    query: ParsedQuery
    terms: list[Term]
    full: float
    sounds: float
    candidates: int
    ranked: list[Ranked]
    titles: dict[int, float]
    index: str


ASSUMED = 100
"""In a registry of a few messages no word is rare; so many more, without any word asked for, are assumed."""


class Corpus(NamedTuple):
    """How much there is to search: entries in the index with those assumed, and a message's mean number of tokens."""

    size: int
    average_length: float


def find_messages(tx: ReadTransaction, words: str, scope: Scope, budget: int = 0) -> Findings:
    """The messages in scope that have to do with the words, best first. `budget` 0: the database's default."""
    index = index_of(tx)
    query = parse_query(words)
    corpus = corpus_of(tx)
    frequencies = index.frequencies(tx, query.tokens) if query.words else {}
    terms = weighted_terms(query, frequencies, corpus.size, budget or BUDGETS[tx.dialect.name])
    candidates = index.candidates(tx, terms, scope) if terms else []
    return Findings(
        query=query,
        terms=terms,
        full=full_mass(query, frequencies, corpus.size),
        sounds=sum(term.weight for term in terms if term.token.startswith(KEY_PREFIX)),
        candidates=len(candidates),
        ranked=rank(candidates, corpus.average_length),
        titles=index.titles(tx, terms) if terms and scope.channel_number is None else {},
        index=index.name,
    )


def corpus_of(tx: ReadTransaction) -> Corpus:
    """Counted from the channels, which know their own totals."""
    messages, tokens, channels = tx.execute(
        select(func.sum(channel.c.message_count), func.sum(channel.c.token_count), func.count()).where(
            channel.c.deleted.is_(False)
        )
    ).one()
    return Corpus(int(messages or 0) + channels + ASSUMED, int(tokens or 0) / max(int(messages or 0), 1))
