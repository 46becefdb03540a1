"""The arithmetic of relevance: term weights before the database, scores after it (retrieval notes, 3-5)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import log, sqrt
from typing import NamedTuple

from registry.text.analyzer import IDENTIFIER_PREFIX, LATIN_KEY_PREFIX, analyze
from registry.text.query import ParsedQuery, QueryWord

_KEY_WEIGHT = 0.4
_ONLY_KEY_WEIGHT = 1.0
_SYNONYM_WEIGHT = 0.8
COMMON_TERMS = 4
"""So many of the commonest terms are looked up in sets, whose number doubles with each; this costs next to nothing."""

_SATURATION = 1.2
_LENGTH_SHARE = 0.75
_ROLE_WEIGHTS = {"assistant": 0.65}
_PREVIOUS_SHARE = 0.3
_NEXT_SHARE = 0.4
_SESSION_SHARE = 0.4
_SESSION_BEST = (1.0, 0.5)
_DIGITS = 9

_ENOUGH_OF_A_CHANNEL = 50
_MOSTLY = 2 / 3
_TELLING_KEY = len(LATIN_KEY_PREFIX) + 4


@dataclass(frozen=True, slots=True)
class Term:
    """A token to look up: `weight` is what a message gains by holding it, `frequency` how many do."""

    token: str
    weight: float
    frequency: int


class Candidate(NamedTuple):
    """A message that holds some terms.

    `number` is its id in arrival order, `seq` its position inside its channel, `length` its number of tokens,
    `mass` the sum of the weights of the terms found in it, `turn` the seq of the message that opens its turn,
    `held` a bit for each of the terms.
    """

    number: int
    channel_id: int
    seq: int
    role: str
    length: int
    mass: float
    turn: int = 0
    held: int = 0


class Title(NamedTuple):
    """What a channel's title holds of the terms: `mass` and `held` as a candidate's."""

    mass: float
    held: int


class Ranked(NamedTuple):
    """A candidate with its score and what the score is made of (the three parts add up to it)."""

    candidate: Candidate
    score: float
    own: float
    neighbours: float
    session: float


def weighted_terms(
    query: ParsedQuery, frequencies: Mapping[str, int], total: int, budget: int
) -> tuple[list[Term], list[Term]]:
    """The terms to look up, rarest first: what fits into `budget` postings and the next `COMMON_TERMS`; the others.

    `frequencies` says how many of the `total` messages hold a token; one that is missing occurs nowhere.
    """
    shares: dict[str, float] = {}
    for word in query.words:
        _keep_largest(shares, _word_shares(word, frequencies))
    terms = (_term(token, share, frequencies.get(token, 0), total) for token, share in shares.items())
    known = (term for term in terms if term.frequency)
    return _within_budget(sorted(known, key=lambda term: (term.frequency, -term.weight, term.token)), budget)


def full_mass(
    query: ParsedQuery, frequencies: Mapping[str, int], total: int, not_looked_up: Collection[str] = ()
) -> float:
    """The mass of a message that contains every word of the query exactly as asked, as far as it was looked up.

    What occurs nowhere of a word counts as at most one token of frequency 0, however many bigrams it has; so does
    a word known only by another name or by sound. See `coverage`.
    """
    shares: dict[str, float] = {}
    unknown = 0.0
    for word in query.words:
        exact = _exact_shares(word)
        known = {token: share for token, share in exact.items() if frequencies.get(token)}
        if len(known) == len(exact) or not _has_other_form(word, frequencies):
            _keep_largest(shares, known)
            unknown += min(sum(exact.values()) - sum(known.values()), word.share)
        else:
            unknown += word.share
    counted = sum(
        share * idf(frequencies[token], total) for token, share in shares.items() if token not in not_looked_up
    )
    return counted + unknown * idf(0, total)


def coverage(mass: float, full: float) -> float:
    """How much of a request a message answers, 0 to 1: `Candidate.mass` against `full_mass`."""
    return min(1.0, mass / full) if full > 0 else 0.0


def idf(frequency: int, total: int) -> float:
    """How telling a token is that `frequency` of `total` messages hold; positive in tiny registries too."""
    return log(1 + (max(total - frequency, 0) + 0.5) / (frequency + 0.5))


def matched_words(query: ParsedQuery, text: str) -> tuple[str, ...]:
    """The query words a text contains: as asked (two thirds of a word's tokens), by another name or by sound.

    A three-letter key is shared by chance too often (Germany, 재미난) to tell a reader anything.
    """
    tokens = frozenset(analyze(text))
    return tuple(word.text for word in query.words if _is_matched(word, tokens))


def rank(
    candidates: Iterable[Candidate], average_length: float, keep: int = 300, *, dialogue: bool = True
) -> list[Ranked]:
    """Order the best `keep` candidates by (-score, -number).

    With `dialogue` a message also gains from its neighbours and from the best messages of its channel;
    switch it off for imported documents. `average_length` is in tokens.
    """
    scored = [(_own_score(candidate, average_length), candidate) for candidate in candidates]
    best = _spread(sorted(scored, key=lambda pair: (-pair[0], -pair[1].number)), keep)
    neighbours = _from_neighbours(best) if dialogue else [0.0] * len(best)
    near = [own + gained for (own, _), gained in zip(best, neighbours, strict=True)]
    sessions = _from_sessions(best, near) if dialogue else {}
    ranked = []
    for (own, candidate), gained in zip(best, neighbours, strict=True):
        session = sessions.get(candidate.channel_id, 0.0)
        ranked.append(Ranked(candidate, round(own + gained + session, _DIGITS), own, gained, session))
    return sorted(ranked, key=lambda one: (-one.score, -one.candidate.number))


# -- terms


def _word_shares(word: QueryWord, frequencies: Mapping[str, int]) -> dict[str, float]:
    shares = _exact_shares(word)
    key_share = _KEY_WEIGHT if _occurs(word, frequencies) else _ONLY_KEY_WEIGHT
    _keep_largest(shares, dict.fromkeys(_keys_in_use(word, frequencies), word.share * key_share))
    for synonym in word.synonyms:
        _keep_largest(shares, dict.fromkeys(synonym, word.share * _SYNONYM_WEIGHT / sqrt(len(synonym))))
    return shares


def _keys_in_use(word: QueryWord, frequencies: Mapping[str, int]) -> list[str]:
    """Of a sound and its plural only one counts, or `token` and `tokens` were two words."""
    used: list[str] = []
    for key in word.keys:
        if frequencies.get(key) and not any(key in (f"{other}s", other.removesuffix("s")) for other in used):
            used.append(key)
    return used


def _exact_shares(word: QueryWord) -> dict[str, float]:
    """A word counts its share; cut into n, 1/sqrt(n) of it each; the whole of an identifier all beside its parts."""
    wholes = [token for token in word.exact if token.startswith(IDENTIFIER_PREFIX)]
    parts = [token for token in word.exact if token not in wholes]
    return dict.fromkeys(wholes, word.share) | dict.fromkeys(parts, word.share / sqrt(max(len(parts), 1)))


def _keep_largest(shares: dict[str, float], more: Mapping[str, float]) -> None:
    for token, share in more.items():
        shares[token] = max(share, shares.get(token, 0.0))


def _occurs(word: QueryWord, frequencies: Mapping[str, int]) -> bool:
    return all(frequencies.get(token) for token in word.exact)


def occurs_at_all(word: QueryWord, frequencies: Mapping[str, int]) -> bool:
    """Whether a word occurs, in part at least, or by another name; by sound is not enough."""
    return any(frequencies.get(token) for token in word.exact) or any(
        all(frequencies.get(token) for token in synonym) for synonym in word.synonyms
    )


def _has_other_form(word: QueryWord, frequencies: Mapping[str, int]) -> bool:
    forms = (*((key,) for key in word.keys), *word.synonyms)
    return any(all(frequencies.get(token) for token in form) for form in forms)


def _term(token: str, share: float, frequency: int, total: int) -> Term:
    return Term(token, share * idf(frequency, total), frequency)


def _within_budget(terms: Sequence[Term], budget: int) -> tuple[list[Term], list[Term]]:
    spent = accumulate(term.frequency for term in terms)
    count = sum(so_far <= budget for so_far in spent) + COMMON_TERMS
    return list(terms[:count]), list(terms[count:])


def matched_by(query: ParsedQuery, terms: Sequence[Term]) -> Callable[[int], bool]:
    """Whether `Candidate.held` means that a message contains a word of the query, as `matched_words` would find.

    Told by the terms that were looked up, without reading a text. A term of no word (the beginning of one) is
    a match by itself.
    """
    bit = {term.token: 1 << place for place, term in enumerate(terms)}
    alone = sum(bit[token] for token in bit.keys() - set(query.tokens))
    ways = [way for word in query.words for way in _ways(word, bit)]

    def is_matched(held: int) -> bool:
        return bool(held & alone) or any((held & mask).bit_count() >= least for mask, least in ways)

    return is_matched


def _ways(word: QueryWord, bit: Mapping[str, int]) -> Iterator[tuple[int, float]]:
    """The sets of terms by which a message may contain a word, and how many of each it must hold."""
    exact = [bit[token] for token in word.exact if token in bit]
    if exact:
        yield sum(exact), max(_MOSTLY * len(word.exact) if len(exact) == len(word.exact) else len(exact), 1)
    for synonym in word.synonyms:
        if all(token in bit for token in synonym):
            yield sum(bit[token] for token in set(synonym)), len(set(synonym))
    for key in word.keys:
        if len(key) >= _TELLING_KEY and key in bit:
            yield bit[key], 1


def matching_tokens(query: ParsedQuery, text: str) -> frozenset[str]:
    """The tokens of a text by which it contains the query's words (see `matched_words`)."""
    tokens = frozenset(analyze(text))
    wanted = (token for word in query.words if _is_matched(word, tokens) for token in _matching(word, tokens))
    return tokens.intersection(wanted)


def _matching(word: QueryWord, tokens: frozenset[str]) -> Iterator[str]:
    yield from word.exact
    yield from (key for key in word.keys if len(key) >= _TELLING_KEY)
    yield from (token for synonym in word.synonyms if tokens.issuperset(synonym) for token in synonym)


def _is_matched(word: QueryWord, tokens: frozenset[str]) -> bool:
    found = sum(token in tokens for token in word.exact)
    return (
        found >= _MOSTLY * len(word.exact)
        or any(tokens.issuperset(synonym) for synonym in word.synonyms)
        or any(key in tokens for key in word.keys if len(key) >= _TELLING_KEY)
    )


# -- scores


def _own_score(candidate: Candidate, average_length: float) -> float:
    relative = candidate.length / max(average_length, 1.0)
    norm = (1 + _SATURATION) / (1 + _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * relative))
    return round(candidate.mass * norm * _ROLE_WEIGHTS.get(candidate.role, 1.0), _DIGITS)


def _spread(ordered: list[tuple[float, Candidate]], keep: int) -> list[tuple[float, Candidate]]:
    """The best, in order; where they are too many, no channel takes the places of others before it has enough."""
    if len(ordered) <= keep:
        return ordered
    taken: Counter[int] = Counter()
    first: list[tuple[float, Candidate]] = []
    rest: list[tuple[float, Candidate]] = []
    for pair in ordered:
        taken[pair[1].channel_id] += 1
        (first if taken[pair[1].channel_id] <= _ENOUGH_OF_A_CHANNEL else rest).append(pair)
    chosen = [*first, *rest][:keep]
    return sorted(chosen, key=lambda pair: (-pair[0], -pair[1].number))


def _from_neighbours(best: Sequence[tuple[float, Candidate]]) -> list[float]:
    """What each message gains from those just before and just after it in its channel."""
    own = {(candidate.channel_id, candidate.seq): score for score, candidate in best}
    return [
        _PREVIOUS_SHARE * own.get((candidate.channel_id, candidate.seq - 1), 0.0)
        + _NEXT_SHARE * own.get((candidate.channel_id, candidate.seq + 1), 0.0)
        for _, candidate in best
    ]


def _from_sessions(best: Sequence[tuple[float, Candidate]], scores: Sequence[float]) -> dict[int, float]:
    """What the messages of each channel gain from its two best ones."""
    by_channel: dict[int, list[float]] = defaultdict(list)
    for (_, candidate), score in zip(best, scores, strict=True):
        by_channel[candidate.channel_id].append(score)
    return {channel_id: _from_session(of_channel) for channel_id, of_channel in by_channel.items()}


def _from_session(scores: Iterable[float]) -> float:
    best = sorted(scores, reverse=True)
    return _SESSION_SHARE * sum(share * score for share, score in zip(_SESSION_BEST, best, strict=False))
