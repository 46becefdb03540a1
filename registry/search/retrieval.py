"""Find the messages and conversations for a request: analyse it, look its terms up, score, rank."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, reduce
from heapq import nlargest
from operator import or_
from typing import NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, Select, bindparam, func, select

from registry.search.candidates import (
    Place,
    channel_lengths,
    find_candidates,
    find_titles,
    messages_numbered,
    messages_said,
    neighbours,
    place_of,
    taken_up_again,
)
from registry.search.scope import Scope
from registry.search.spelling import correct
from registry.storage.conditions import given, is_one_of
from registry.storage.database import ReadTransaction
from registry.storage.index.engines import index_of
from registry.storage.index.message_index import MessageIndex
from registry.storage.tables import channel, conversation
from registry.text.ranking.matching import carried, left_out, matched_by, post_filter, words_held
from registry.text.ranking.scores import (
    Candidate,
    Ranked,
    RankedChannel,
    Sittings,
    Title,
    own_scores,
    rank,
    rank_channels,
    sittings_from,
    weight_of,
    whole_scores,
)
from registry.text.ranking.similar import SimilarMessages
from registry.text.ranking.term_weights import Term, full_weight, idf, weighted_terms
from registry.text.request.query import ParsedQuery, parse_query
from registry.text.request.syntax import Search
from registry.text.times.spans import Span

BUDGETS = {"sqlite": 100_000, "postgresql": 20_000}
"""Postings one search reads of its rarer terms unless the settings say otherwise.

PostgreSQL takes some four times as long for each."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The request in one wording: the bits of its terms, and the weight of an answer that holds all of it."""

    text: str
    query: ParsedQuery
    bits: int
    full: float


@dataclass(frozen=True)
class SearchResult:
    """The messages and channels that a search found, best first.

    The terms of all wordings are one bag, each term once: `candidates` and `titles` (by number) hold some of `terms`.
    `cut_terms` were not looked up (the budget), `typos` are the words that were taken for others. `matched` are the
    messages that contain a word of the request, and not only parts of words. `is_strict`: something must stand in each
    message, or must not. `lengths` are the channels' tokens, `dated` the messages said on a date in the request.
    """

    wordings: Sequence[Wording]
    terms: Sequence[Term]
    candidates: Mapping[int, Candidate]
    titles: Mapping[int, Title]
    matched: frozenset[int]
    index: str
    average_length: float
    ranked: Sequence[Ranked] = ()
    channels: Sequence[RankedChannel] = ()
    is_strict: bool = False
    similar: SimilarMessages | None = None
    lengths: Mapping[int, int] = field(default_factory=dict)
    sittings: Sittings | None = None
    dated: frozenset[int] = frozenset()
    cut_terms: Sequence[Term] = ()
    typos: Mapping[str, list[str]] = field(default_factory=dict)
    filtered_out: int = 0

    @property
    def query(self) -> ParsedQuery:
        """The question's words."""
        return self.wordings[0].query

    @cached_property
    def weights(self) -> list[float]:
        """The weights of the terms, in the order of the bits of `Candidate.held`."""
        return [term.weight for term in self.terms]

    @property
    def by_meaning(self) -> frozenset[int]:
        """The messages that say of their conversations that these may be meant: the most similar, if anything is found.

        Whether anything is, words decide, or a similarity that chance does not give.
        """
        if self.similar is None or not (self.matched or self.similar.standing_out):
            return frozenset()
        return self.similar.named

    @cached_property
    def held(self) -> Mapping[int, int]:
        """The terms that each channel's messages hold."""
        held: dict[int, int] = {}
        for one in self.candidates.values():
            held[one.channel_id] = held.get(one.channel_id, 0) | one.held
        return held

    def share(self, held: int, wording: Wording) -> float:
        """Return the share of a wording, by rarity, that these terms are (0 to 1)."""
        return min(1.0, weight_of(held & wording.bits, self.weights) / wording.full) if wording.full else 0.0

    def covered(self, channel_number: int) -> float:
        """Return the share of the request that the best stretch of a channel and its title hold: the mean of the two
        best wordings."""
        title = self.titles.get(channel_number)
        of_title = title.held if title else 0
        stretches = {of_title, *(held | of_title for held in self._stretches(channel_number))}
        shares = sorted((max(self.share(held, one) for held in stretches) for one in self.wordings), reverse=True)[:2]
        return sum(shares) / len(shares)

    def _stretches(self, channel_number: int) -> set[int]:
        """Return the terms that each `STRETCH` messages hold: a long conversation holds anything somewhere."""
        inside = sorted((one.seq, one.held) for one in self.candidates.values() if one.channel_id == channel_number)
        stretches = set()
        for at, (begin, _) in enumerate(inside):
            near = (held for seq, held in inside[at : at + STRETCH] if seq < begin + STRETCH)
            stretches.add(reduce(or_, near))
        return stretches

    def is_called(self, channel_number: int) -> bool:
        """Return True if a channel's title or nickname holds every word of the question."""
        title = self.titles.get(channel_number)
        return title is not None and self.share(title.held, self.wordings[0]) >= CALLED

    def words_in(self, channel_number: int) -> int:
        """Return how many words of the question stand in a channel's messages."""
        return words_held(self.query, self.terms)(self.held.get(channel_number, 0))


STRETCH = 12  # messages that are judged together
CALLED = 0.99  # of a request: a title that holds all of it, whatever the sum of the weights is rounded to

Passes = Callable[[str], bool]
"""Whether a text is as the search wants it."""

ASSUMED = 100
"""In a registry of a few messages no word is rare; so many more, without any word asked for, are assumed."""


class Corpus(NamedTuple):
    """How much there is to search: entries in the index with those assumed, and a message's mean number of tokens.

    `inside`: how many messages the one channel has that is searched.
    """

    size: int
    average_length: float
    inside: int = 0


def find_messages(
    tx: ReadTransaction,
    wanted: str | Search,
    scope: Scope,
    budget: int = 0,
    *,
    also: Sequence[str] = (),
    dates: Sequence[Span] = (),
) -> SearchResult:
    """Return the messages and channels in scope that have to do with the words, best first.

    `also` are other wordings of the same request. Messages said in `dates` gain by it. `budget` 0: the database's
    default.
    """
    search = wanted if isinstance(wanted, Search) else Search(words=wanted)
    corpus = corpus_of(tx)
    index = index_of(tx)
    lengths: dict[int, int] = {}
    if scope.channel_number is not None and (size := tx.execute(_SIZE, {"of": scope.channel_number}).first()):
        corpus, lengths[scope.channel_number] = corpus._replace(inside=size[0]), size[1]
    scope = replace(scope, carrying=[*scope.carrying, *carried(search)], without=[*scope.without, *left_out(search)])
    found = _looked_up(
        place_of(tx, index, scope, corpus.size), corpus, search, also, budget or BUDGETS[tx.dialect.name]
    )
    begins = taken_up_again(tx, scope.channel_number) if scope.channel_number is not None else ()
    if begins:
        sittings = sittings_from(begins, corpus.inside, found.candidates.values(), found.weights)
        found = replace(found, sittings=sittings)
    own = own_scores(found.candidates.values(), corpus.average_length)
    found = ranked_by(tx, replace(found, lengths=lengths), own, scope, dates)
    wholes = whole_scores(found.candidates.values(), found.weights, found.lengths)
    titles = {
        number: max(found.share(title.held, one) for one in found.wordings) for number, title in found.titles.items()
    }
    return replace(found, channels=rank_channels(found.ranked, wholes, titles))


_SIZE = select(channel.c.message_count, channel.c.token_count).where(channel.c.number == bindparam("of"))


def ranked_by(
    tx: ReadTransaction, found: SearchResult, own: Mapping[int, float], scope: Scope, dates: Sequence[Span] = ()
) -> SearchResult:
    """Return what was found with its messages in the order that these own scores give."""
    known, own = dict(found.candidates), dict(own)
    if not found.is_strict:
        dated = _dated(tx, own, scope, dates)
        found = replace(found, dated=frozenset(dated))
        known = dated | known
    known.update((one.number, one) for one in messages_numbered(tx, [number for number in own if number not in known]))
    if not found.is_strict:
        best = [number for _, number in nlargest(SPREADING, zip(own.values(), own, strict=True))]
        read = [one.candidate for one in found.ranked]
        beside = neighbours(tx, [known[number] for number in best], known.values(), read, scope)
        known.update((one.number, one) for one in beside)
    ranked = rank(own, known.values(), found.sittings)
    numbers = {one.candidate.channel_id for one in ranked} | found.titles.keys()
    lengths = {number: found.lengths[number] for number in numbers & found.lengths.keys()}
    if missing := numbers - lengths.keys():
        lengths |= channel_lengths(tx, missing)
    return replace(found, ranked=ranked, lengths=lengths)


def _dated(tx: ReadTransaction, own: dict[int, float], scope: Scope, dates: Sequence[Span]) -> dict[int, Candidate]:
    """Add to the own scores of the messages said in these spans, and return these."""
    bonus = DATED * max(own.values(), default=1.0)
    said: dict[int, Candidate] = {}
    for span in dates:
        for one in messages_said(tx, replace(scope, from_=span.start, to=span.end)):
            said[one.number] = one
            own[one.number] = own.get(one.number, 0.0) + bonus
    return said


DATED = 0.5
"""What a message gains that was said on a date the request names, as a share of the best score."""
SPREADING = 100
"""So many of the best messages are looked at for neighbours that hold no word themselves."""


def _looked_up(place: Place, corpus: Corpus, search: Search, also: Sequence[str], budget: int) -> SearchResult:
    """Look up the terms of the question and of its other wordings."""
    texts = [" ".join([search.words, *search.phrases]), *also]
    queries = [parse_query(text) for text in texts]
    tokens = dict.fromkeys(token for query in queries for token in query.tokens)
    known = place.index.frequencies(place.tx, tokens, corpus.size) if tokens else {}
    # Of other wordings no typo is forgiven: what occurs nowhere there is a guess that was wrong.
    corrected = correct(place.tx, place.index, queries[0], known, corpus.size)
    queries[0], frequencies = corrected.query, corrected.frequencies
    bag = ParsedQuery(tuple({word.text: word for query in reversed(queries) for word in query.words}.values()))
    terms, cut = weighted_terms(bag, frequencies, corpus.size, budget)
    groups = [group for group in carried(search) if group[0].endswith("*") or not queries[0].words]
    beginnings = _terms_of(groups, place.tx, place.index, corpus)
    terms += beginnings
    unread = {term.token for term in cut}
    bits = {term.token: 1 << at for at, term in enumerate(terms)}
    wordings = []
    for at, (text, query) in enumerate(zip(texts, queries, strict=True)):
        full = full_weight(query, frequencies, corpus.size, unread)
        own_bits = reduce(or_, (bits.get(token, 0) for token in query.tokens), 0)
        if not at:
            full += sum(term.weight for term in beginnings)
            own_bits |= reduce(or_, (bits[term.token] for term in beginnings), 0)
        wordings.append(Wording(text, query, own_bits, full))
    candidates = find_candidates(place, terms) if terms else []
    kept = post_filtered(place.tx, post_filter(search), candidates)
    is_matched = cache(matched_by(bag, terms))
    titles = find_titles(place, terms) if terms else {}
    return SearchResult(
        wordings,
        terms,
        {one.number: one for one in kept},
        {number: title for number, title in titles.items() if is_matched(title.held)},
        frozenset(one.number for one in kept if is_matched(one.held)),
        place.index.name,
        corpus.average_length,
        is_strict=bool(search.phrases or search.prefixes or search.excluded),
        cut_terms=cut,
        typos=corrected.typos,
        filtered_out=len(candidates) - len(kept),
    )


def _terms_of(groups: Sequence[Sequence[str]], tx: ReadTransaction, index: MessageIndex, corpus: Corpus) -> list[Term]:
    """What must be carried, as terms to rank by: beginnings of words, and phrases of nothing but small words."""
    counted = ((group[0], len(index.holders(tx, [group[:1]]))) for group in groups)
    terms = [Term(token, idf(frequency, corpus.size), frequency) for token, frequency in dict(counted).items()]
    return sorted(terms, key=lambda term: (term.frequency, term.token))


def post_filtered(tx: ReadTransaction, passes: Passes | None, candidates: list[Candidate]) -> list[Candidate]:
    """The candidates whose text is as the search wants it."""
    if passes is None:
        return candidates
    numbers = [candidate.number for candidate in candidates]
    texts = tx.execute(_texts(tx.dialect.name), given(tx, numbers))
    passed = {number for number, text in texts if passes(text)}
    return [candidate for candidate in candidates if candidate.number in passed]


@cache
def _texts(dialect: str) -> Select[int, str]:
    return select(conversation.c.number, conversation.c.text).where(is_one_of(dialect, conversation.c.number))


_WORTH = 100
"""What took a millisecond to count is believed for so many."""
_counted: WeakKeyDictionary[Engine, tuple[float, Corpus]] = WeakKeyDictionary()


_COUNTED = select(func.sum(channel.c.message_count), func.sum(channel.c.token_count), func.count()).where(
    channel.c.deleted.is_(False)
)


def corpus_of(tx: ReadTransaction) -> Corpus:
    """Counted from the channels, which know their own totals. In a large registry the count may be a moment old."""
    known_until, known = _counted.get(tx.engine, (0.0, Corpus(0, 0.0)))
    started = time.monotonic()
    if started < known_until:
        return known
    messages, tokens, channels = tx.execute(_COUNTED).one()
    corpus = Corpus(int(messages or 0) + channels + ASSUMED, int(tokens or 0) / max(int(messages or 0), 1))
    if channels > MANY_CHANNELS:
        ended = time.monotonic()
        _counted[tx.engine] = ended + _WORTH * (ended - started), corpus
    return corpus


MANY_CHANNELS = 5_000
"""Fewer are counted for every search."""
