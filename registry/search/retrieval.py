"""From a request in words to ranked messages: analyse, look up, weigh, rank. One road for extract and search."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from heapq import nlargest
from itertools import islice, repeat
from operator import add, or_
from typing import NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, Select, bindparam, func, select

from registry.search.candidates import (
    CANDIDATES,
    CANDIDATES_OF_OTHERS,
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
from registry.search.spelling import Corrected, correct
from registry.storage.conditions import given, is_one_of
from registry.storage.database import ReadTransaction
from registry.storage.index.engines import index_of
from registry.storage.index.message_index import MessageIndex
from registry.storage.tables import channel, conversation
from registry.text.ranking.confidence import Evidence
from registry.text.ranking.matching import carried, left_out, matched_by, post_filter, words_held
from registry.text.ranking.scores import (
    Candidate,
    Ranked,
    RankedChannel,
    Sittings,
    best_scores,
    claim_of,
    claimed_scores,
    combined,
    own_scores,
    rank,
    rank_channels,
    sittings_from,
    weighed_inside,
    weight_of,
    whole_scores,
)
from registry.text.ranking.similar import SimilarMessages
from registry.text.ranking.term_weights import Term, coverage, full_weight, idf, weighted_terms
from registry.text.request.query import ParsedQuery, parse_query
from registry.text.request.syntax import Search
from registry.text.times.spans import Span

BUDGETS = {"sqlite": 100_000, "postgresql": 20_000}
"""Postings one search reads of its rarer terms unless the settings say otherwise.

PostgreSQL takes some four times as long for each."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The request in one wording, and what holds some of it: `candidates` and `titles` by number.

    `full` is the weight of a perfect answer, `own` what the candidates score by themselves. `cut_terms` were not looked
    up (the budget), `typos` says which words were taken for others. `matched` are the messages that contain one of its
    words, and not only parts of words.
    """

    text: str
    query: ParsedQuery
    terms: list[Term]
    full: float
    candidates: Mapping[int, Candidate]
    matched: frozenset[int]
    titles: Mapping[int, float]
    own: Mapping[int, float] = field(default_factory=dict)
    cut_terms: Sequence[Term] = ()
    typos: Mapping[str, list[str]] = field(default_factory=dict)
    filtered_out: int = 0

    @property
    def weights(self) -> list[float]:
        """The weights of the terms, in the order of the bits of `Candidate.held`."""
        return [term.weight for term in self.terms]

    @property
    def claim(self) -> float:
        """The weight that one message may claim of it when conversations are compared."""
        return claim_of(self.weights, self.full)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found: messages and channels, best first, and the wordings by which they were.

    `is_strict`: something must stand in each message, or must not. `similar` is what an embedding model adds, where
    one is asked. `lengths` are the channels' tokens; `dated` the messages said on a date that the request names.
    """

    wordings: Sequence[Wording]
    ranked: Sequence[Ranked]
    channels: Sequence[RankedChannel]
    index: str
    rarest: float
    average_length: float
    is_strict: bool = False
    similar: SimilarMessages | None = None
    lengths: Mapping[int, int] = field(default_factory=dict)
    sittings: Sittings | None = None
    dated: frozenset[int] = frozenset()

    @property
    def query(self) -> ParsedQuery:
        """The question's words."""
        return self.wordings[0].query

    @property
    def matched(self) -> frozenset[int]:
        """The messages that contain a word of some wording."""
        question, *others = (wording.matched for wording in self.wordings)
        return question.union(*others) if others else question

    @property
    def by_meaning(self) -> frozenset[int]:
        """The messages that say of their conversations that these may be meant: the most similar, if anything is found.

        Whether anything is, words decide, or a similarity that chance does not give.
        """
        if self.similar is None or not (self.matched or self.similar.standing_out):
            return frozenset()
        return self.similar.named

    @property
    def speaking(self) -> frozenset[int]:
        """The channels with a message that contains a word of some wording, or says the same beyond chance."""
        matched = self.matched | (self.similar.standing_out if self.similar else frozenset())
        return frozenset(one.candidate.channel_id for one in self.ranked if one.candidate.number in matched)

    def words_in(self, channel_number: int) -> int:
        """How many words of the question stand in a channel's messages."""
        question = self.wordings[0]
        inside = {one.held for one in question.candidates.values() if one.channel_id == channel_number}
        return words_held(question.query, question.terms)(reduce(or_, inside, 0))

    def holds_all(self, channel_number: int) -> bool:
        """Whether every word of the question stands in a channel's messages."""
        return 0 < len(self.query.words) == self.words_in(channel_number)

    def speaks_of(self, channel_number: int) -> bool:
        """Whether a channel holds every word of the question, and none only by its sound or for a typo."""
        question = self.wordings[0]
        return bool(question.full) and not question.typos and self.evidence(channel_number)[0].covered >= CALLED

    def is_called(self, channel_number: int) -> bool:
        """Whether a channel's title or nickname holds every word of the question."""
        return self.wordings[0].titles.get(channel_number, 0.0) >= CALLED

    def near(self, channel_number: int) -> float | None:
        """How far beyond chance a channel's most similar message lies, in deviations; None where no model was asked."""
        if self.similar is None or self.similar.note:
            return None
        inside = (one.candidate.number for one in self.ranked if one.candidate.channel_id == channel_number)
        return self.similar.beyond_chance(inside)

    def size(self, channel_number: int) -> float:
        """How many messages of mean length a channel's text would be."""
        return self.lengths.get(channel_number, 0) / max(self.average_length, 1.0)

    def evidence(self, channel_number: int) -> list[Evidence]:
        """What a channel holds of each wording, all of it and in its best place."""
        inside = (one.candidate for one in self.ranked if one.candidate.channel_id == channel_number)
        best = list(islice(inside, LOOKED_AT))
        return [_evidence(wording, channel_number, best, self.rarest) for wording in self.wordings if wording.full]


def _evidence(wording: Wording, channel_number: int, best: Sequence[Candidate], rarest: float) -> Evidence:
    inside = [one for one in wording.candidates.values() if one.channel_id == channel_number]
    everything = reduce(or_, {one.held for one in inside}, 0)
    at = {one.seq: one.held for one in inside}
    places = (at.get(one.seq - 1, 0) | at.get(one.seq, 0) | at.get(one.seq + 1, 0) for one in best)
    told = max((weight_of(held, wording.weights) for held in places), default=0.0)
    covered = max(weight_of(everything, wording.weights), wording.full * wording.titles.get(channel_number, 0.0))
    return Evidence(min(1.0, covered / wording.full), told / rarest)


CALLED = 0.99
"""So much of a request stands in a title that holds all of it, whatever the sum of its weights is rounded to."""
LOOKED_AT = 5
"""So many of a conversation's best messages are looked at for the place that holds most."""


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
    """The messages and channels in scope that have to do with the words, best first.

    `also` are other wordings of the same request. Messages said in `dates` gain by it. `budget` 0: the database's
    default.
    """
    search = wanted if isinstance(wanted, Search) else Search(words=wanted)
    corpus = corpus_of(tx)
    index = index_of(tx)
    lengths: dict[int, int] = {}
    if scope.channel_number is None:
        index = index.for_search(tx, corpus.size)
    elif size := tx.execute(_SIZE, {"of": scope.channel_number}).first():
        corpus, lengths[scope.channel_number] = corpus._replace(inside=size[0]), size[1]
    scope = replace(scope, carrying=[*scope.carrying, *carried(search)], without=[*scope.without, *left_out(search)])
    place = place_of(tx, index, scope, corpus.size)
    wordings = _worded(place, corpus, search, also, budget or BUDGETS[tx.dialect.name])
    is_strict = bool(search.phrases or search.prefixes or search.excluded)
    found = SearchResult(wordings, (), (), index.name, idf(0, corpus.size), corpus.average_length, is_strict)
    found = replace(found, sittings=_sittings(tx, wordings, scope, corpus), lengths=lengths)
    own = combined([each.own for each in wordings])
    found = ranked_by(tx, found, own, scope, dates)
    return replace(found, channels=_channels(found, own))


def _own_scores(
    place: Place, candidates: Sequence[Candidate], terms: Sequence[Term], corpus: Corpus
) -> dict[int, float]:
    """What messages score by themselves; of one channel, weighed by what is rare there."""
    is_inside = place.scope.channel_number is not None
    inside = weighed_inside(candidates, terms, corpus.size, corpus.inside) if is_inside else None
    return own_scores(candidates, corpus.average_length, inside)


_SIZE = select(channel.c.message_count, channel.c.token_count).where(channel.c.number == bindparam("of"))


def _sittings(tx: ReadTransaction, wordings: Sequence[Wording], scope: Scope, corpus: Corpus) -> Sittings | None:
    """Those of the channel that is searched, where it was taken up again at all."""
    if scope.channel_number is None or not (begins := taken_up_again(tx, scope.channel_number)):
        return None
    held = ((each.candidates.values(), each.weights) for each in wordings)
    return sittings_from(begins, corpus.inside, held)


def ranked_by(
    tx: ReadTransaction, found: SearchResult, own: Mapping[int, float], scope: Scope, dates: Sequence[Span] = ()
) -> SearchResult:
    """What was found, its messages in the order that these own scores give."""
    known: dict[int, Candidate] = {}
    for wording in reversed(found.wordings):
        known.update(wording.candidates)
    own = dict(own)
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
    ranked = rank(own, known.values(), sittings=found.sittings)
    numbers = {one.candidate.channel_id for one in ranked}.union(*(wording.titles for wording in found.wordings))
    lengths = {number: found.lengths[number] for number in numbers & found.lengths.keys()}
    if missing := numbers - lengths.keys():
        lengths |= channel_lengths(tx, missing)
    return replace(found, ranked=ranked, lengths=lengths)


def _dated(tx: ReadTransaction, own: dict[int, float], scope: Scope, dates: Sequence[Span]) -> dict[int, Candidate]:
    """The messages said in these spans, each of which adds to their own scores."""
    bonus = DATED * max(own.values(), default=1.0)
    said: dict[int, Candidate] = {}
    for span in dates:
        for one in messages_said(tx, replace(scope, from_=span.start, to=span.end)):
            said[one.number] = one
            own[one.number] = own.get(one.number, 0.0) + bonus
    return said


def _channels(found: SearchResult, own: Mapping[int, float]) -> list[RankedChannel]:
    """The channels of what was found, best first; `own`: what its messages score by themselves."""
    average = sum(found.lengths.values()) / max(len(found.lengths), 1)
    is_alone = len(found.lengths) <= 1
    wholes, titles = [], dict[int, float]()
    for wording in found.wordings:
        # One alone holds most, if it holds anything, and candidates do: a message says as much as all.
        some = list(islice(wording.candidates.values(), 1 if is_alone else None))
        wholes.append(whole_scores(some, wording.weights, wording.claim, found.average_length, found.lengths, average))
        for number, share in wording.titles.items():
            titles[number] = max(titles.get(number, 0.0), TITLE * share)
    return rank_channels(_best_within_claim(found, own), wholes, titles)


def _best_within_claim(found: SearchResult, own: Mapping[int, float]) -> Mapping[int, float]:
    """By channel, what its best message scores with no more for its words than one message may claim."""
    of_one = len(found.lengths) <= 1
    best = {one.candidate.channel_id: one.score for one in (found.ranked[:1] if of_one else reversed(found.ranked))}
    if len(best) <= 1:  # one alone is the best
        return best
    average = found.average_length
    cut = [claimed_scores(each.candidates.values(), each.claim, average) for each in found.wordings]
    if not any(cut):
        return best
    within = combined([{**each.own, **less} for each, less in zip(found.wordings, cut, strict=True)])
    changed = {number: within[number] - score for number, score in own.items()}
    candidates = [one[0] for one in found.ranked]
    changes = map(changed.get, [one[0] for one in candidates], repeat(0.0))
    return best_scores(list(map(add, [one[2] for one in found.ranked], changes)), candidates)


DATED = 0.5
"""What a message gains that was said on a date the request names, as a share of the best score."""
TITLE = 0.5
"""What a channel gains whose title holds all of a wording."""
SPREADING = 100
"""So many of the best messages are looked at for neighbours that hold no word themselves."""


def _worded(place: Place, corpus: Corpus, search: Search, also: Sequence[str], budget: int) -> list[Wording]:
    """The question and its other wordings, looked up."""
    searches = [search, *(Search(words=text) for text in also)]
    queries = [parse_query(_words_of(each)) for each in searches]
    tokens = dict.fromkeys(token for query in queries for token in query.tokens)
    known = place.index.frequencies(place.tx, tokens, corpus.size) if tokens else {}
    asked = correct(place.tx, place.index, queries[0], known, corpus.size)
    passes = post_filter(search)
    # Of other wordings no typo is forgiven: what occurs nowhere there is a guess that was wrong.
    others = (Corrected(query, known, {}) for query in queries[1:])
    return [
        _looked_up(place, corpus, each, corrected, passes, budget, CANDIDATES_OF_OTHERS if at else CANDIDATES)
        for at, (each, corrected) in enumerate(zip(searches, [asked, *others], strict=True))
    ]


def _words_of(search: Search) -> str:
    return " ".join([search.words, *search.phrases])


def _looked_up(
    place: Place, corpus: Corpus, search: Search, corrected: Corrected, passes: Passes | None, budget: int, most: int
) -> Wording:
    query, frequencies = corrected.query, corrected.frequencies
    terms, cut = weighted_terms(query, frequencies, corpus.size, budget)
    full = full_weight(query, frequencies, corpus.size, {term.token for term in cut})
    groups = [group for group in carried(search) if group[0].endswith("*") or not query.words]
    beginnings = _terms_of(groups, place.tx, place.index, corpus)
    terms += beginnings
    full += sum(term.weight for term in beginnings)
    candidates = find_candidates(place, terms, most) if terms else []
    kept = post_filtered(place.tx, passes, candidates)
    is_matched = cache(matched_by(query, terms))
    matching = set(filter(is_matched, {one.held for one in kept}))  # messages are many, and few sets of terms
    titles = find_titles(place, terms) if terms else {}
    return Wording(
        text=_words_of(search),
        query=query,
        terms=terms,
        full=full,
        candidates={one.number: one for one in kept},
        own=_own_scores(place, kept, terms, corpus),
        matched=frozenset([one.number for one in kept if one.held in matching]),
        titles={n: coverage(title.weight, full) for n, title in titles.items() if is_matched(title.held)},
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
