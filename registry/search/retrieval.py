"""Find the messages and conversations for a request: parse it, look its terms up, score, rank."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, reduce
from heapq import nlargest
from math import log
from operator import or_
from typing import NamedTuple

from sqlalchemy import func, select

from registry.domain import Role
from registry.search.candidates import (
    Place,
    channel_sizes,
    find_candidates,
    find_titles,
    messages_said,
    place_of,
)
from registry.search.echoes import find_echoes
from registry.search.scope import Scope
from registry.search.spelling import correct
from registry.storage.conversations.facets import kept_for_a_moment
from registry.storage.database import ReadTransaction
from registry.storage.index.message_index import MessageIndex, index_of
from registry.storage.tables import channel
from registry.text.analysis.analyzer import analyze
from registry.text.ranking import weights
from registry.text.ranking.matching import matched_by
from registry.text.ranking.scores import (
    Candidate,
    Ranked,
    RankedChannel,
    own_scores,
    rank,
    rank_channels,
    weight_of,
    whole_scores,
    word_scores,
)
from registry.text.ranking.similar import SimilarMessages
from registry.text.ranking.term_weights import Term, full_weight, weighted_terms
from registry.text.request.query import ParsedQuery, parse_query
from registry.text.request.syntax import Search
from registry.text.times.spans import Span

# postings that one search reads of its rarer terms by default; PostgreSQL takes some four times as long for each
BUDGETS = {"sqlite": 100_000, "postgresql": 20_000}
STRETCH = 12  # messages that are judged together
ASSUMED = 100  # messages without any word asked for, added to the real ones: in a tiny registry no word is rare
_COVERED_OF = 5  # so many of the best channels tell how much of the request is held


class Corpus(NamedTuple):
    """The size of what is searched: index entries with `ASSUMED`, and a message's mean number of tokens."""

    size: int
    average_length: float


@dataclass(frozen=True, slots=True)
class Wording:
    """The request in one wording: the bits of its terms, and the weight of a message that holds all of it."""

    text: str
    query: ParsedQuery
    bits: int
    full: float


@dataclass(frozen=True)
class SearchResult:
    """The messages and channels that a search found, best first.

    The terms of all wordings are one bag, each term once: `candidates` and `titles` (a bit for each of `terms`, by
    channel number) hold some of them. `cut_terms` were not looked up (the budget), `typos` are the words that were
    taken for others. `matched` are the messages that contain a word of the request, and not only parts of words.
    `dated` are the messages said on a date in the request, `echoes` the candidates
    that were left out because their turn only asks for another conversation.
    """

    wordings: Sequence[Wording]
    terms: Sequence[Term]
    candidates: Mapping[int, Candidate]
    titles: Mapping[int, int]
    matched: frozenset[int]
    index: str
    corpus: Corpus
    ranked: Sequence[Ranked] = ()
    channels: Sequence[RankedChannel] = ()
    similar: SimilarMessages | None = None
    dated: frozenset[int] = frozenset()
    echoes: frozenset[int] = frozenset()
    cut_terms: Sequence[Term] = ()
    typos: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def query(self) -> ParsedQuery:
        """Return the question's words."""
        return self.wordings[0].query

    @cached_property
    def weights(self) -> list[float]:
        """Return the weights of the terms, in the order of the bits of `Candidate.held`."""
        return [term.weight for term in self.terms]

    @cached_property
    def held(self) -> Mapping[int, int]:
        """Return the terms that each channel's messages hold, by channel number."""
        held: dict[int, int] = {}
        for one in self.candidates.values():
            held[one.channel_id] = held.get(one.channel_id, 0) | one.held
        return held

    def share(self, held: int, wording: Wording) -> float:
        """Return the share of a wording, by rarity, that these terms are (0 to 1)."""
        return min(1.0, weight_of(held & wording.bits, self.weights) / wording.full) if wording.full else 0.0

    def covered(self, channel_number: int) -> float:
        """Return the share of the request that the best stretch of a channel and its title hold: of three wordings or
        more the mean of the two best."""
        title = self.titles.get(channel_number, 0)
        stretches = {title, *(held | title for held in self._stretches(channel_number))}
        shares = sorted((max(self.share(held, one) for held in stretches) for one in self.wordings), reverse=True)
        best = shares[: 1 if len(shares) < 3 else 2]
        return sum(best) / len(best)

    def rarity_in(self, channel_number: int) -> float:
        """Return the weight of the terms that the best stretch of a channel holds."""
        return max((weight_of(held, self.weights) for held in self._stretches(channel_number)), default=0.0)

    def rare_words_in(self, channel_number: int) -> float:
        """Return the same weight in words, each as rare as can be."""
        return self.rarity_in(channel_number) / log(self.corpus.size)

    @cached_property
    def _inside(self) -> Mapping[int, list[tuple[int, int]]]:
        """Return the position of each candidate and the terms that it holds, by channel number."""
        inside: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for one in self.candidates.values():
            inside[one.channel_id].append((one.seq, one.held))
        return inside

    def _stretches(self, channel_number: int) -> set[int]:
        """Return the terms that each `STRETCH` messages hold: a long conversation holds anything somewhere."""
        inside = sorted(self._inside.get(channel_number, ()))
        stretches = set()
        for at, (begin, _) in enumerate(inside):
            near = (held for seq, held in inside[at : at + STRETCH] if seq < begin + STRETCH)
            stretches.add(reduce(or_, near))
        return stretches

    def is_supported(self, channel_number: int, *, is_narrowed: bool = False) -> bool:
        """Return True if a channel is about the request: a message is clearly more similar than by chance, or its score
        is above the floor. Of several wordings one fits anything: there it holds half of the request, or so many rare
        words.

        Less is enough in the time or place that a request names (`is_narrowed`).
        """
        has_vectors = bool(self.similar and self.similar.vectors)
        if self.similar and has_vectors and self.similar.beyond_chance(channel_number) >= 1.5:
            return True
        if len(self.wordings) > 1 and not is_narrowed:
            is_rare = self.rare_words_in(channel_number) >= weights.RARE_WORDS
            return is_rare or self.covered(channel_number) >= 0.5
        floor = weights.FLOOR_MODEL if has_vectors else 0.0
        return any(one.score >= floor for one in self.channels if one.number == channel_number)

    def is_called(self, channel_number: int) -> bool:
        """Return True if a channel's title or nickname holds every word of the question."""
        return self.share(self.titles.get(channel_number, 0), self.wordings[0]) >= CALLED


CALLED = 0.99  # of a request: all of it, whatever the sum of the weights is rounded to


Compare = Callable[[ReadTransaction, Scope], SimilarMessages]


def find_messages(
    tx: ReadTransaction,
    wanted: str | Search,
    scope: Scope,
    budget: int = 0,
    *,
    also: Sequence[str] = (),
    dates: Sequence[Span] = (),
    compare: Compare | None = None,
) -> SearchResult:
    """Return the messages and channels in scope that have to do with the words, best first.

    `also` are other wordings of the same request. Messages said in `dates` gain by it. `budget` 0: the database's
    default. `compare`: asks the embedding model.
    """
    search = wanted if isinstance(wanted, Search) else Search(words=wanted)
    corpus = corpus_of(tx)
    index = index_of(tx)
    scope = replace(scope, without=[*scope.without, *_excluded_tokens(tx, index, search, corpus.size)])
    place = place_of(tx, scope)
    found = _looked_up(place, corpus, search, also, budget or BUDGETS[tx.dialect.name])
    found = replace(found, similar=compare(tx, scope) if compare else None)
    # What was said on a date holds none of the words, so it might hold one that is excluded.
    dated = [replace(scope, without=(), from_=span.start, to=span.end) for span in dates if not search.excluded]
    said = {one.number: one for each in dated for one in messages_said(tx, each)}
    ranked = _ranked(tx, found, said)
    # In a channel that is named the request itself may be the question that was answered there.
    text = search.words if scope.channel_number is None else None
    echoes = find_echoes(tx, ranked.channels, ranked.ranked, text)
    if echoes and (found.matched - echoes or not found.matched):
        left = {number: one for number, one in found.candidates.items() if number not in echoes}
        only_asking = {found.candidates[number].channel_id for number in echoes & found.candidates.keys()}
        only_asking -= {one.channel_id for one in left.values()}
        titles = {number: held for number, held in found.titles.items() if number not in only_asking}
        found = replace(found, candidates=left, titles=titles, matched=found.matched - echoes, echoes=echoes)
        ranked = _ranked(tx, found, said)
    return ranked


def _excluded_tokens(tx: ReadTransaction, index: MessageIndex, search: Search, total: int) -> list[str]:
    """Return the rarest token of each excluded word: no message may carry it."""
    tokens = [analyze(word) for word in search.excluded]
    known = index.frequencies(tx, {one for some in tokens for one in some}, total) if tokens else {}
    return [min(some, key=lambda one: known.get(one, 0)) for some in tokens if some]


def _ranked(tx: ReadTransaction, found: SearchResult, said: Mapping[int, Candidate]) -> SearchResult:
    """Score and order the messages and channels; `said`: those of the dates that the request names, by number."""
    known, similar = dict(found.candidates), found.similar
    own = own_scores(found.candidates.values(), found.corpus.average_length)
    best = max(own.values(), default=1.0)
    known = {**said, **known}
    for number in said:
        own[number] = own.get(number, 0.0) + weights.DATE * best
    by_words = dict(own)
    if similar:
        known = {n: one for n, one in similar.candidates.items() if n not in found.echoes} | known
        for number in similar.candidates:
            own[number] = own.get(number, 0.0) + weights.MODEL * best * similar.share(number)
    ranked = rank(own, known.values())
    sizes = channel_sizes(tx, {one.channel_id for one in known.values()} | found.titles.keys())
    lengths = {number: tokens for number, (_, tokens) in sizes.items()}
    spoken = (one for one in found.candidates.values() if one.role != Role.TOOL)  # a file that was read holds anything
    wholes = whole_scores(spoken, found.weights, lengths)
    words = word_scores(rank(by_words, [*said.values(), *found.candidates.values()]) if similar else ranked, wholes)
    covered = max(map(found.covered, nlargest(_COVERED_OF, words, key=words.__getitem__)), default=0.0)
    titles = {number: max(found.share(held, one) for one in found.wordings) for number, held in found.titles.items()}
    similar_channels = similar.of_channels({number: size for number, (size, _) in sizes.items()}) if similar else {}
    channels = rank_channels(words, covered, titles, similar_channels)
    return replace(found, ranked=ranked, channels=channels, dated=frozenset(said))


def _looked_up(place: Place, corpus: Corpus, search: Search, also: Sequence[str], budget: int) -> SearchResult:
    """Look up the terms of the question and of its other wordings."""
    texts = [search.words, *also]
    queries = [parse_query(text) for text in texts]
    tokens = dict.fromkeys(token for query in queries for token in query.tokens)
    known = place.index.frequencies(place.tx, tokens, corpus.size) if tokens else {}
    # Typos are corrected in the question only: a word of another wording that occurs nowhere is a wrong guess.
    corrected = correct(place.tx, place.index, queries[0], known, corpus.size)
    queries[0], frequencies = corrected.query, corrected.frequencies
    bag = ParsedQuery(tuple({word.text: word for query in reversed(queries) for word in query.words}.values()))
    terms, cut = weighted_terms(bag, frequencies, corpus.size, budget)
    unread = {term.token for term in cut}
    bits = {term.token: 1 << at for at, term in enumerate(terms)}
    wordings = [
        Wording(
            text,
            query,
            reduce(or_, (bits.get(token, 0) for token in query.tokens), 0),
            full_weight(query, frequencies, corpus.size, unread),
        )
        for text, query in zip(texts, queries, strict=True)
    ]
    candidates = find_candidates(place, terms, budget) if terms else []
    is_matched = cache(matched_by(bag, terms))
    titles = find_titles(place, terms) if terms else {}
    return SearchResult(
        wordings,
        terms,
        {one.number: one for one in candidates},
        {number: held for number, held in titles.items() if is_matched(held)},
        frozenset(one.number for one in candidates if is_matched(one.held)),
        place.index.name,
        corpus,
        cut_terms=cut,
        typos=corrected.typos,
    )


_COUNTED = select(func.sum(channel.c.message_count), func.sum(channel.c.token_count), func.count()).where(
    channel.c.deleted.is_(False)
)


@kept_for_a_moment
def corpus_of(tx: ReadTransaction) -> Corpus:
    """Return the size of the registry, counted from its channels."""
    messages, tokens, channels = tx.execute(_COUNTED).one()
    return Corpus(int(messages or 0) + channels + ASSUMED, int(tokens or 0) / max(int(messages or 0), 1))
