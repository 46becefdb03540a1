"""From a request in words to ranked messages: analyse, look up, weigh, rank. One road for extract and search."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, func, select

from registry.search.candidates import find_candidates, find_titles
from registry.search.scope import Scope
from registry.search.spelling import correct
from registry.storage.database import ReadTransaction
from registry.storage.engines import index_of
from registry.storage.message_index import MessageIndex
from registry.storage.tables import channel, conversation
from registry.text.matching import matched_by
from registry.text.post_filter import carried, left_out, post_filter
from registry.text.query import ParsedQuery, parse_query
from registry.text.rank_fusion import SimilarMessages
from registry.text.ranking import Candidate, Ranked, rank
from registry.text.syntax import Search
from registry.text.term_weights import Term, full_weight, idf, weighted_terms

BUDGETS = {"sqlite": 100_000, "postgresql": 20_000}
"""Postings one search reads of its rarer terms unless the settings say otherwise.

PostgreSQL takes some four times as long for each."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found: `ranked` best first; `titles` the weight of channel titles, by channel number.

    `full` is the weight of a perfect answer. `matched` are the numbers of the messages that contain a word of the
    request, and not only parts of words. `cut_terms` were not looked up (the budget), `typos` says which words were
    taken for others, `filtered_out` how many candidates' texts lack a phrase or prefix, or have an excluded word.
    `similar` is what an embedding model adds, where one is asked.
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
    typos: Mapping[str, list[str]] = field(default_factory=dict)
    filtered_out: int = 0
    similar: SimilarMessages | None = None


ASSUMED = 100
"""In a registry of a few messages no word is rare; so many more, without any word asked for, are assumed."""


class Corpus(NamedTuple):
    """How much there is to search: entries in the index with those assumed, and a message's mean number of tokens."""

    size: int
    average_length: float


def find_messages(tx: ReadTransaction, wanted: str | Search, scope: Scope, budget: int = 0) -> SearchResult:
    """The messages in scope that have to do with the words, best first. `budget` 0: the database's default."""
    search = wanted if isinstance(wanted, Search) else Search(words=wanted)
    index, corpus, groups = index_of(tx), corpus_of(tx), carried(search)
    scope = replace(scope, carrying=[*scope.carrying, *groups], without=[*scope.without, *left_out(search)])
    query = parse_query(" ".join([search.words, *search.phrases]))
    known = index.frequencies(tx, query.tokens, corpus.size) if query.words else {}
    corrected = correct(tx, index, query, known, corpus.size)
    query, frequencies = corrected.query, corrected.frequencies
    terms, cut = weighted_terms(query, frequencies, corpus.size, budget or BUDGETS[tx.dialect.name])
    full = full_weight(query, frequencies, corpus.size, {term.token for term in cut})
    beginnings = _terms_of([group for group in groups if group[0].endswith("*") or not query.words], tx, index, corpus)
    terms += beginnings
    candidates = find_candidates(tx, index, terms, scope) if terms else []
    kept = post_filtered(tx, post_filter(search), candidates)
    is_matched = matched_by(query, terms)
    titles = find_titles(tx, index, terms, scope) if terms else {}
    return SearchResult(
        query=query,
        terms=terms,
        full=full + sum(term.weight for term in beginnings),
        matched=frozenset(candidate.number for candidate in kept if is_matched(candidate.held)),
        candidates=len(candidates),
        ranked=rank(kept, corpus.average_length),
        titles={number: title.weight for number, title in titles.items() if is_matched(title.held)},
        index=index.name,
        cut_terms=cut,
        typos=corrected.typos,
        filtered_out=len(candidates) - len(kept),
    )


def _terms_of(groups: Sequence[Sequence[str]], tx: ReadTransaction, index: MessageIndex, corpus: Corpus) -> list[Term]:
    """What must be carried, as terms to rank by: beginnings of words, and phrases of nothing but small words."""
    counted = ((group[0], len(index.holders(tx, [group[:1]]))) for group in groups)
    terms = [Term(token, idf(frequency, corpus.size), frequency) for token, frequency in dict(counted).items()]
    return sorted(terms, key=lambda term: (term.frequency, term.token))


def post_filtered(
    tx: ReadTransaction, passes: Callable[[str], bool] | None, candidates: list[Candidate]
) -> list[Candidate]:
    """The candidates whose text is as the search wants it."""
    if passes is None:
        return candidates
    numbers = [candidate.number for candidate in candidates]
    query = select(conversation.c.number, conversation.c.text).where(conversation.c.number.in_(numbers))
    passed = {number for number, text in tx.execute(query) if passes(text)}
    return [candidate for candidate in candidates if candidate.number in passed]


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
