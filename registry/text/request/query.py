"""Parse the subject of a request: its words, each with every token that it can be found by. Pure."""

from dataclasses import dataclass, replace
from functools import lru_cache

from registry.text.analysis.analyzer import IDENTIFIER_PREFIX, Kind, Word, identifier_parts, stem, word_tokens, words
from registry.text.analysis.particles import strip_particles, with_particles
from registry.text.analysis.spaceless import pieces
from registry.text.request.request_words import (
    is_asking_alone,
    is_generic_word,
    is_past,
    is_request_piece,
    is_request_word,
)

Tokens = tuple[str, ...]
_GENERIC = 0.5  # weight of a word that occurs in talk about anything


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of a request: `exact` tokens as analysed; `others` are spellings each of which stands for it as well.

    `share` is its weight relative to other words.
    """

    text: str
    exact: Tokens
    others: Tokens = ()
    share: float = 1.0

    @property
    def tokens(self) -> Tokens:
        """Return every token the word can be found by."""
        return (*self.exact, *self.others)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """The words of a request in order, without repetitions; none if it has no subject."""

    words: tuple[QueryWord, ...]

    @property
    def tokens(self) -> Tokens:
        """Return the tokens of all words, without repetitions."""
        return tuple(dict.fromkeys(token for word in self.words for token in word.tokens))


@lru_cache(128)
def parse_query(text: str) -> ParsedQuery:
    """Parse a request: drop request words, strip particles, add other spellings."""
    found: dict[str, QueryWord] = {}
    for word in _subject(text):
        asked = _pieces_of(word) if word.kind is Kind.SPACELESS else [_query_word(word)]
        found |= {one.text.lower(): one for one in asked if one.exact}
    return ParsedQuery(tuple(found.values()))


def is_only_asking(text: str) -> bool:
    """Return True for a request without a subject: "my work", "a summary", "what happened", 뭐 고쳤어."""
    said = [word.text.lower() for word in parse_query(text).words]
    return bool(said) and all(is_asking_alone(word) or is_past(word) or word in _EVENTS for word in said)


_EVENTS = ("happened", "happening")


def _pieces_of(sentence: Word) -> list[QueryWord]:
    parts = ((text, share) for text, share in pieces(sentence.text) if not is_request_piece(text))
    return [replace(_query_word(Word(text, sentence.kind)), share=share) for text, share in parts]


def _subject(text: str) -> list[Word]:
    spoken = words(text)
    kept: list[Word] = []
    is_kept = False
    # From the end: whether "session" is asked about or asked for is told by what follows it.
    for word in reversed(spoken):
        is_alone = len(spoken) == 1
        is_asked_for = is_kept or is_alone or not _asks_alone(word)
        is_kept = is_asked_for and (not _is_request(word) or (is_alone and word.kind is Kind.IDENTIFIER))
        if is_kept:
            kept.append(word)
    return [_bare(word) for word in reversed(kept)]


def _asks_alone(word: Word) -> bool:
    return is_asking_alone(word.text.lower()) or is_asking_alone(strip_particles(word.text))


def _bare(word: Word) -> Word:
    return Word(strip_particles(word.text), word.kind) if word.kind is Kind.HANGUL else word


def _is_request(word: Word) -> bool:
    if word.kind is Kind.HANGUL:
        return is_request_word(word.text) or is_request_word(strip_particles(word.text))
    return word.kind is Kind.IDENTIFIER and _is_plain(word.text) and is_request_word(word.text.lower())


def _is_plain(raw: str) -> bool:
    return raw.isalpha() and len(identifier_parts(raw)) == 1


def _query_word(word: Word) -> QueryWord:
    exact = word_tokens(word.text)
    if any(token.startswith(IDENTIFIER_PREFIX) for token in exact):  # of k8s neither k nor 8 is evidence
        exact = tuple(token for token in exact if len(token) > 1)
    others = tuple(token for token in _other_spellings(word) if token not in exact)
    share = _GENERIC if is_generic_word(word.text.lower()) else 1.0
    return QueryWord(word.text, tuple(dict.fromkeys(exact)), others, share)


def _other_spellings(word: Word) -> Tokens:
    """Return FastAPI for fastapi and the reverse, and the particle forms of a one-syllable word (키를 for 키)."""
    if word.kind is Kind.HANGUL:
        return with_particles(word.text) if len(word.text) == 1 else ()
    if word.kind is not Kind.IDENTIFIER:
        return ()
    parts = identifier_parts(word.text)
    joined = "".join(parts)
    if len(parts) == 1:
        return (IDENTIFIER_PREFIX + joined,) if len(joined) > 1 else ()
    return (stem(joined),) if joined.isalpha() else ()
