"""From a request in words to ranked messages: analyse, look up, weigh, rank. One road for extract and search."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, func, select

from registry.search.spelling import correct
from registry.storage.database import ReadTransaction
from registry.storage.engines import index_of
from registry.storage.index_entries import channel_token
from registry.storage.message_index import CANDIDATES, MessageIndex, Scope
from registry.storage.tables import channel, conversation
from registry.text.post_filter import carried, is_confirmed, left_out
from registry.text.query import ParsedQuery, parse_query
from registry.text.rank_fusion import Nearness
from registry.text.ranking import Candidate, Ranked, Term, full_mass, idf, matched_by, rank, weighted_terms
from registry.text.syntax import Search

BUDGETS = {"sqlite": 100_000, "postgresql": 20_000}
"""Postings one search reads of its rarer terms unless the settings say otherwise (retrieval notes 4)."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a request found: `ranked` best first; `titles` the mass of channel titles, by channel number.

    `full` is the mass of a perfect answer. `matched` are the numbers of the messages that contain a word of the
    request, and not only parts of words. `cut_terms` were not looked up (the budget), `near` are the words taken for
    typos, `unconfirmed` the candidates whose text lacks a phrase or prefix, or has an excluded word.
    `nearness` is what an embedding model adds, where one is asked.
    """

    query: ParsedQuery
    terms: list[Term]
    full: float
    matched: frozenset[int]
    candidates: int
    ranked: list[Ranked]
    titles: dict[int, float]
    index: str
    cut_terms: list[Term] = field(default_factory=list)
    near: Mapping[str, list[str]] = field(default_factory=dict)
    unconfirmed: int = 0
    nearness: Nearness | None = None


ASSUMED = 100
"""In a registry of a few messages no word is rare; so many more, without any word asked for, are assumed."""


class Corpus(NamedTuple):
    """How much there is to search: entries in the index with those assumed, and a message's mean number of tokens."""

    size: int
    average_length: float


def find_messages(tx: ReadTransaction, wanted: str | Search, scope: Scope, budget: int = 0) -> Findings:
    """The messages in scope that have to do with the words, best first. `budget` 0: the database's default."""
    search = wanted if isinstance(wanted, Search) else Search(words=wanted)
    index, corpus, groups = index_of(tx), corpus_of(tx), carried(search)
    scope = replace(scope, carrying=[*scope.carrying, *groups], without=[*scope.without, *left_out(search)])
    query = parse_query(" ".join([search.words, *search.phrases]))
    known = index.frequencies(tx, query.tokens, corpus.size) if query.words else {}
    corrected = correct(tx, index, query, known, corpus.size)
    query, frequencies = corrected.query, corrected.frequencies
    terms, cut = weighted_terms(query, frequencies, corpus.size, budget or BUDGETS[tx.dialect.name])
    full = full_mass(query, frequencies, corpus.size, {term.token for term in cut})
    beginnings = _terms_of([group for group in groups if group[0].endswith("*") or not query.words], tx, index, corpus)
    terms += beginnings
    candidates = _candidates(tx, index, terms, scope) if terms else []
    confirmed = confirmed_of(tx, is_confirmed(search), candidates)
    is_matched = matched_by(query, terms)
    titles = index.titles(tx, terms, scope) if terms else {}
    return Findings(
        query=query,
        terms=terms,
        full=full + sum(term.weight for term in beginnings),
        matched=frozenset(candidate.number for candidate in confirmed if is_matched(candidate.held)),
        candidates=len(candidates),
        ranked=rank(confirmed, corpus.average_length),
        titles={number: title.mass for number, title in titles.items() if is_matched(title.held)},
        index=index.name,
        cut_terms=cut,
        near=corrected.near,
        unconfirmed=len(candidates) - len(confirmed),
    )


def _candidates(tx: ReadTransaction, index: MessageIndex, terms: Sequence[Term], scope: Scope) -> list[Candidate]:
    """The heaviest messages; where those of a few channels hide all others, these are asked for too."""
    found = index.candidates(tx, terms, scope)
    latest = found
    for _ in range(LOOKS):
        channels = {candidate.channel_id for candidate in latest}
        if scope.channel_number is not None or len(latest) < CANDIDATES or len(channels) >= LOUD_CHANNELS:
            break
        scope = replace(scope, without=[*scope.without, *map(channel_token, sorted(channels))])
        latest = index.candidates(tx, terms, scope)
        found = [*found, *latest]
    return found


LOUD_CHANNELS = 20
"""Fewer channels than these among all that was found have hidden the others."""
LOOKS = 3
"""So many times more the others are asked for."""


def _terms_of(groups: Sequence[Sequence[str]], tx: ReadTransaction, index: MessageIndex, corpus: Corpus) -> list[Term]:
    """What must be carried, as terms to rank by: beginnings of words, and phrases of nothing but small words."""
    counted = ((group[0], len(index.holders(tx, [group[:1]]))) for group in groups)
    terms = [Term(token, idf(frequency, corpus.size), frequency) for token, frequency in dict(counted).items()]
    return sorted(terms, key=lambda term: (term.frequency, term.token))


def confirmed_of(
    tx: ReadTransaction, is_true: Callable[[str], bool] | None, candidates: list[Candidate]
) -> list[Candidate]:
    """The candidates whose text is as the search wants it."""
    if is_true is None:
        return candidates
    numbers = [candidate.number for candidate in candidates]
    query = select(conversation.c.number, conversation.c.text).where(conversation.c.number.in_(numbers))
    true = {number for number, text in tx.execute(query) if is_true(text)}
    return [candidate for candidate in candidates if candidate.number in true]


_WORTH = 100
"""What took a millisecond to count is believed for so many."""
_counted: WeakKeyDictionary[Engine, tuple[float, Corpus]] = WeakKeyDictionary()


def corpus_of(tx: ReadTransaction) -> Corpus:
    """Counted from the channels, which know their own totals. In a large registry the count may be a moment old."""
    known_until, known = _counted.get(tx.engine, (0.0, Corpus(0, 0.0)))
    started = time.monotonic()
    if started < known_until:
        return known
    messages, tokens, channels = tx.execute(
        select(func.sum(channel.c.message_count), func.sum(channel.c.token_count), func.count()).where(
            channel.c.deleted.is_(False)
        )
    ).one()
    corpus = Corpus(int(messages or 0) + channels + ASSUMED, int(tokens or 0) / max(int(messages or 0), 1))
    if channels > MANY_CHANNELS:
        ended = time.monotonic()
        _counted[tx.engine] = ended + _WORTH * (ended - started), corpus
    return corpus


MANY_CHANNELS = 5_000
"""Fewer are counted for every search."""


def within(scope: Scope, search: Search) -> Scope:
    """A scope that what is written into the search narrows; of two sources or projects the written one holds."""
    return replace(
        scope,
        source=search.source or scope.source,
        project=search.project or scope.project,
        tags=[*scope.tags, *search.tags],
        roles=search.roles or scope.roles,
        from_=max((at for at in (scope.from_, search.from_) if at), default=None),
        to=min((at for at in (scope.to, search.to) if at), default=None),
    )
