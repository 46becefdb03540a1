"""Search messages and channels: parse the request, look up its terms, score, rank."""

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
    IndexScope,
    channel_sizes,
    find_candidates,
    find_titles,
    newest_messages,
    resolve_scope,
)
from registry.search.non_answers import find_non_answers
from registry.search.scope import Scope
from registry.search.spelling import correct
from registry.storage.conversations.facets import cache_briefly
from registry.storage.database import ReadTransaction
from registry.storage.index.message_index import MessageIndex, index_of
from registry.storage.tables import channel
from registry.text.analysis.analyzer import analyze
from registry.text.ranking import weights
from registry.text.ranking.matching import match_test
from registry.text.ranking.scores import (
    Candidate,
    Ranked,
    RankedChannel,
    bm25_scores,
    channel_bm25_scores,
    channel_word_scores,
    rank,
    rank_channels,
    total_weight,
)
from registry.text.ranking.similar import SimilarMessages
from registry.text.ranking.term_weights import Term, full_weight, weighted_terms
from registry.text.request.query import ParsedQuery, parse_query
from registry.text.request.syntax import Search
from registry.text.times.spans import Span

# default number of postings that a search reads for its rarer terms; PostgreSQL takes about four times as long each
BUDGETS = {"sqlite": 100_000, "postgresql": 20_000}
WINDOW = 12  # consecutive messages whose terms are counted together
# messages without any query word, added to the corpus size: otherwise no word is rare in a tiny registry
ASSUMED_MESSAGES = 100
_CHANNELS_FOR_COVERAGE = 5  # the coverage of the request is the largest one of this many best channels


class Corpus(NamedTuple):
    """Corpus statistics: index entries (plus `ASSUMED_MESSAGES`), the mean tokens of a message, and channels."""

    size: int
    average_length: float
    channels: int


@dataclass(frozen=True, slots=True)
class Wording:
    """A wording of the request: the bits of its terms, and the weight of a message that contains all of them.

    `several`: the same of each word of which a message may contain several variants.
    """

    text: str
    query: ParsedQuery
    term_bits: int
    full_weight: float
    several: Sequence[tuple[int, float]] = ()


@dataclass(frozen=True)
class SearchResult:
    """The messages and channels that a search found, best first.

    `terms` are those of all wordings, each once. `candidates` (by message number) and `titles` (bits of `terms` by
    channel number) contain some of them. `cut_terms` were not looked up because of the budget; `typos` are corrections
    by word. `matched` messages contain a whole word of the request, not only parts of words. `dated` messages are of a
    date in the request. `non_answers` were dropped from the candidates: see `find_non_answers`.
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
    non_answers: frozenset[int] = frozenset()
    cut_terms: Sequence[Term] = ()
    typos: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def query(self) -> ParsedQuery:
        """Return the parsed words of the question itself."""
        return self.wordings[0].query

    @cached_property
    def weights(self) -> list[float]:
        """Return the weights of the terms, in the order of the bits of `Candidate.term_bits`."""
        return [term.weight for term in self.terms]

    def wording_share(self, term_bits: int, wording: Wording) -> float:
        """Return the weight of these terms as a share of a wording's full weight (0 to 1)."""
        weight = total_weight(term_bits & wording.term_bits, self.weights)
        for word_bits, full in wording.several:  # variants count as the word, once
            weight -= max(0.0, total_weight(term_bits & word_bits, self.weights) - full)
        return min(1.0, weight / wording.full_weight) if wording.full_weight else 0.0

    def coverage(self, channel_number: int) -> float:
        """Return the share of the request (0 to 1) in the title and the best window of a channel.

        With three or more wordings, return the mean of the two best shares.
        """
        title = self.titles.get(channel_number, 0)
        windows = {title, *(term_bits | title for term_bits in self._windows(channel_number))}
        shares = sorted((max(self.wording_share(bits, one) for bits in windows) for one in self.wordings), reverse=True)
        best = shares[: 1 if len(shares) < 3 else 2]
        return sum(best) / len(best)

    def matched_weight(self, channel_number: int) -> float:
        """Return the weight of the terms in the best window of a channel."""
        return max((total_weight(term_bits, self.weights) for term_bits in self._windows(channel_number)), default=0.0)

    def rare_word_count(self, channel_number: int) -> float:
        """Return `matched_weight` divided by the weight of a word of maximal rarity."""
        return self.matched_weight(channel_number) / log(self.corpus.size)

    @cached_property
    def _positions(self) -> Mapping[int, list[tuple[int, int]]]:
        """Return (position, term bits) of the candidates of each channel."""
        positions: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for one in self.candidates.values():
            positions[one.channel_id].append((one.seq, one.term_bits))
        return positions

    def _windows(self, channel_number: int) -> set[int]:
        """Return the term bits of each window of `WINDOW` messages: a long conversation contains any word somewhere."""
        candidates = sorted(self._positions.get(channel_number, ()))
        windows = set()
        for at, (begin, _) in enumerate(candidates):
            bits_in_window = (term_bits for seq, term_bits in candidates[at : at + WINDOW] if seq < begin + WINDOW)
            windows.add(reduce(or_, bits_in_window))
        return windows

    def is_supported(self, channel_number: int, *, is_narrowed: bool = False) -> bool:
        """Return True if there is enough evidence that a channel is about the request.

        A message must be clearly more similar than by chance, or the channel's score and rare words reach the floor:
        any channel gets a score from the model, and from one of several wordings, unless the request names its time or
        place (`is_narrowed`).
        """
        uses_model = bool(self.similar and self.similar.vectors)
        has_wordings = len(self.wordings) > 1 and not is_narrowed
        margin = 2.0 if has_wordings else 1.5  # the most similar of several wordings is closer by chance
        if self.similar and uses_model and self.similar.excess_deviations(channel_number) >= margin:
            return True
        floor = weights.MODEL_FLOOR * uses_model + weights.WORDINGS_FLOOR * has_wordings
        of_words = weights.RARE_WORD * self.rare_word_count(channel_number)
        return any(one.score + of_words >= floor for one in self.channels if one.number == channel_number)

    def has_matching_title(self, channel_number: int) -> bool:
        """Return True if a channel's title or nickname contains every word of the question."""
        return self.wording_share(self.titles.get(channel_number, 0), self.wordings[0]) >= FULL_COVERAGE


FULL_COVERAGE = 0.99  # share of a request that counts as all of it; sums of weights are rounded


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
    """Search the messages and channels in scope; return them best first.

    `also`: other wordings of the same request. `dates`: messages of these times get a bonus. `budget`: postings, 0 for
    the database's default. `compare`: the comparison with the embedding model.
    """
    search = wanted if isinstance(wanted, Search) else Search(words=wanted)
    corpus = corpus_of(tx)
    index = index_of(tx)
    scope = replace(scope, excluded_tokens=[*scope.excluded_tokens, *_excluded_tokens(tx, index, search)])
    index_scope = resolve_scope(tx, scope)
    found = _match_terms(index_scope, corpus, search, also, budget or BUDGETS[tx.dialect.name])
    found = replace(found, similar=compare(tx, scope) if compare else None)
    # Messages of a date need not contain query words, so excluded words would not be filtered out of them.
    days = () if search.excluded else dates
    dated_scopes = [replace(scope, excluded_tokens=(), from_=span.start, to=span.end) for span in days]
    dated_messages = {one.number: one for each in dated_scopes for one in newest_messages(tx, each)}
    ranked = _rank(tx, found, dated_messages)
    # If the user names a channel, a question equal to the request may be the one that was answered there.
    text = search.words if scope.channel_number is None else None
    non_answers = find_non_answers(tx, ranked.channels, ranked.ranked, text)
    if non_answers and (found.matched - non_answers or not found.matched):
        candidates = {number: one for number, one in found.candidates.items() if number not in non_answers}
        excluded_channels = {found.candidates[number].channel_id for number in non_answers & found.candidates.keys()}
        excluded_channels -= {one.channel_id for one in candidates.values()}
        titles = {number: term_bits for number, term_bits in found.titles.items() if number not in excluded_channels}
        matched = found.matched - non_answers
        found = replace(found, candidates=candidates, titles=titles, matched=matched, non_answers=non_answers)
        ranked = _rank(tx, found, dated_messages)
    return ranked


def _excluded_tokens(tx: ReadTransaction, index: MessageIndex, search: Search) -> list[str]:
    """Return the rarest token of each excluded word; messages that contain one are out of scope."""
    tokens = [analyze(word) for word in search.excluded]
    known = index.count(tx, {one for some in tokens for one in some}) if tokens else {}
    return [min(some, key=lambda one: known.get(one, 0)) for some in tokens if some]


def _rank(tx: ReadTransaction, found: SearchResult, dated_messages: Mapping[int, Candidate]) -> SearchResult:
    """Score and order messages and channels. `dated_messages`: messages of the dates in the request, by number."""
    known, similar = dict(found.candidates), found.similar
    base_scores = bm25_scores(found.candidates.values(), found.corpus.average_length)
    best = max(base_scores.values(), default=1.0)
    known = {**dated_messages, **known}
    for number in dated_messages:
        base_scores[number] = base_scores.get(number, 0.0) + weights.DATE * best
    word_only_scores = dict(base_scores)
    if similar:
        known = {n: one for n, one in similar.candidates.items() if n not in found.non_answers} | known
        for number in similar.candidates:
            base_scores[number] = base_scores.get(number, 0.0) + weights.MODEL * best * similar.share(number)
    ranked = rank(base_scores, known.values())
    sizes = channel_sizes(tx, {one.channel_id for one in known.values()} | found.titles.keys())
    lengths = {number: tokens for number, (_, tokens) in sizes.items()}
    # The output of a tool may contain any word.
    without_tools = (one for one in found.candidates.values() if one.role != Role.TOOL)
    channel_scores = channel_bm25_scores(without_tools, found.weights, lengths)
    messages = [*dated_messages.values(), *found.candidates.values()]
    word_scores = channel_word_scores(rank(word_only_scores, messages) if similar else ranked, channel_scores)
    best_channels = nlargest(_CHANNELS_FOR_COVERAGE, word_scores, key=word_scores.__getitem__)
    coverage = max(map(found.coverage, best_channels), default=0.0)
    titles = {n: max(found.wording_share(bits, one) for one in found.wordings) for n, bits in found.titles.items()}
    similar_channels = similar.channel_shares({number: size for number, (size, _) in sizes.items()}) if similar else {}
    channels = rank_channels(word_scores, coverage, titles, similar_channels)
    return replace(found, ranked=ranked, channels=channels, dated=frozenset(dated_messages))


def _match_terms(
    index_scope: IndexScope, corpus: Corpus, search: Search, other_wordings: Sequence[str], budget: int
) -> SearchResult:
    """Look up the terms of the question and of its other wordings."""
    texts = [search.words, *other_wordings]
    queries = [parse_query(text) for text in texts]
    tokens = dict.fromkeys(token for query in queries for token in query.tokens)
    found = index_scope.index.count(index_scope.tx, tokens) if tokens else {}
    # Correct typos in the question only: an unknown word in another wording is a wrong guess.
    corrected = correct(index_scope.tx, index_scope.index, queries[0], found)
    queries[0], frequencies = corrected.query, corrected.frequencies
    all_words = ParsedQuery(tuple({word.text: word for query in reversed(queries) for word in query.words}.values()))
    terms, cut = weighted_terms(all_words, frequencies, corpus.size, budget)
    skipped = {term.token for term in cut}
    bit_of = {term.token: 1 << at for at, term in enumerate(terms)}

    def weighed(query: ParsedQuery) -> tuple[int, float]:
        bits = reduce(or_, (bit_of.get(token, 0) for token in query.tokens), 0)
        return bits, full_weight(query, frequencies, corpus.size, skipped)

    wordings = [
        Wording(text, query, *weighed(query), [weighed(ParsedQuery((word,))) for word in query.words if word.variants])
        for text, query in zip(texts, queries, strict=True)
    ]
    candidates = find_candidates(index_scope, terms, budget) if terms else []
    is_matched = cache(match_test(all_words, terms))
    titles = find_titles(index_scope, terms) if terms else {}
    return SearchResult(
        wordings,
        terms,
        {one.number: one for one in candidates},
        {number: term_bits for number, term_bits in titles.items() if is_matched(term_bits)},
        frozenset(one.number for one in candidates if is_matched(one.term_bits)),
        index_scope.index.name,
        corpus,
        cut_terms=cut,
        typos=corrected.typos,
    )


_TOTALS = select(func.sum(channel.c.message_count), func.sum(channel.c.token_count), func.count()).where(
    channel.c.deleted.is_(False)
)


@cache_briefly
def corpus_of(tx: ReadTransaction) -> Corpus:
    """Return the size of the registry, counted from its channels."""
    messages, tokens, channels = tx.execute(_TOTALS).one()
    count = int(messages or 0)
    return Corpus(count + channels + ASSUMED_MESSAGES, int(tokens or 0) / max(count, 1), channels)
