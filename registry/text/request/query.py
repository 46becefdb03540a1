"""Parse the subject of a request to words, each with all tokens to search for. Pure."""

from dataclasses import dataclass, replace
from functools import lru_cache

from registry.text.analysis.analyzer import IDENTIFIER_PREFIX, Kind, Word, identifier_parts, stem, word_tokens, words
from registry.text.analysis.particles import strip_particles, with_particles
from registry.text.analysis.spaceless import split_run
from registry.text.request.request_words import (
    is_ambiguous_request_word,
    is_generic_word,
    is_past,
    is_request_piece,
    is_request_word,
)

Tokens = tuple[str, ...]
_GENERIC = 0.5  # weight of a word that occurs in conversations on any subject


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of a request: its `exact` tokens, and `variants`, other spellings each of which counts as the word.

    `share` is its weight relative to other words.
    """

    text: str
    exact: Tokens
    variants: Tokens = ()
    share: float = 1.0

    @property
    def tokens(self) -> Tokens:
        return (*self.exact, *self.variants)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """The subject words of a request in order, without repetitions."""

    words: tuple[QueryWord, ...]

    @property
    def tokens(self) -> Tokens:
        """Return the tokens of all words, without repetitions."""
        return tuple(dict.fromkeys(token for word in self.words for token in word.tokens))


@lru_cache(128)
def parse_query(text: str) -> ParsedQuery:
    """Parse a request: drop request words, strip particles, add variants."""
    found: dict[str, QueryWord] = {}
    for word in _subject_words(text):
        parsed = _split_spaceless(word) if word.kind is Kind.SPACELESS else [_query_word(word)]
        found |= {one.text.lower(): one for one in parsed if one.exact}
    return ParsedQuery(tuple(found.values()))


def has_no_subject(text: str, *, is_last_session: bool = False) -> bool:
    """Return True for a part of a request without a subject: "my work", "a summary", "what happened", 뭐 고쳤어.

    In the last session, also words on any subject: "which files did we change in the last session".
    """
    found = [word.text.lower() for word in _subject_words(text, is_whole=False)]
    return all(
        is_ambiguous_request_word(word)
        or is_past(word)
        or word in _ANY_SUBJECT
        or (is_last_session and is_generic_word(word))
        for word in found
    )


_ANY_SUBJECT = (
    *("happened", "happening", "status", "state", "current", "context", "history", "user"),
    *("진행", "상황", "맥락", "기록", "요약"),
)


def _split_spaceless(sentence: Word) -> list[QueryWord]:
    parts = ((text, share) for text, share in split_run(sentence.text) if not is_request_piece(text))
    return [replace(_query_word(Word(text, sentence.kind)), share=share) for text, share in parts]


def _subject_words(text: str, *, is_whole: bool = True) -> list[Word]:
    """Return the words that are searched for. A request of one word (`is_whole`) has a subject, whatever it is."""
    all_words = words(text)
    subject: list[Word] = []
    is_subject = False
    # Go backwards: the next word decides whether "session" is a request word or begins a subject.
    for word in reversed(all_words):
        is_alone = is_whole and len(all_words) == 1
        can_be_subject = is_subject or is_alone or not _is_ambiguous(word)
        is_subject = can_be_subject and (not _is_request_word(word) or (is_alone and word.kind is Kind.IDENTIFIER))
        if is_subject:
            subject.append(word)
    return [_without_particles(word) for word in reversed(subject)]


def _is_ambiguous(word: Word) -> bool:
    return is_ambiguous_request_word(word.text.lower()) or is_ambiguous_request_word(strip_particles(word.text))


def _without_particles(word: Word) -> Word:
    return Word(strip_particles(word.text), word.kind) if word.kind is Kind.HANGUL else word


def _is_request_word(word: Word) -> bool:
    if word.kind is Kind.HANGUL:
        return is_request_word(word.text) or is_request_word(strip_particles(word.text))
    is_plain = word.kind is Kind.IDENTIFIER and word.text.isalpha() and len(identifier_parts(word.text)) == 1
    return is_plain and is_request_word(word.text.lower())


def _query_word(word: Word) -> QueryWord:
    exact = word_tokens(word.text)
    if any(
        token.startswith(IDENTIFIER_PREFIX) for token in exact
    ):  # single letters and digits of an identifier such as k8s are no evidence
        exact = tuple(token for token in exact if len(token) > 1)
    variants = tuple(token for token in _other_spellings(word) if token not in exact)
    share = _GENERIC if is_generic_word(word.text.lower()) else 1.0
    return QueryWord(word.text, tuple(dict.fromkeys(exact)), variants, share)


def _other_spellings(word: Word) -> Tokens:
    """Return FastAPI for fastapi and the reverse, and a one-syllable word with its particles (키를 for 키)."""
    if word.kind is Kind.HANGUL:
        return with_particles(word.text) if len(word.text) == 1 else ()
    if word.kind is not Kind.IDENTIFIER:
        return ()
    parts = identifier_parts(word.text)
    joined = "".join(parts)
    if len(parts) == 1:
        return (IDENTIFIER_PREFIX + joined,) if len(joined) > 1 else ()
    return (stem(joined),) if joined.isalpha() else ()
