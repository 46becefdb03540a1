"""Parse the subject of a request: its words, each with every token that it can be found by. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files

from registry.text.analysis.analyzer import (
    HANGUL_KEY_PREFIX,
    IDENTIFIER_PREFIX,
    KEY_PREFIX,
    LATIN_KEY_PREFIX,
    SHORTEST_KEY,
    Kind,
    Word,
    identifier_parts,
    stem,
    word_tokens,
    words,
)
from registry.text.analysis.particles import strip_particles, with_particles
from registry.text.analysis.spaceless import pieces
from registry.text.request.request_words import (
    as_typed,
    is_asking_alone,
    is_generic_word,
    is_past,
    is_request_piece,
    is_request_word,
)

Tokens = tuple[str, ...]
_LONGEST_SYNONYM = 3  # words
_GENERIC = 0.5  # weight of a word that occurs in talk about anything


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of a request: `exact` tokens as analysed, `keys` by sound, `synonyms` one tuple each.

    `share` is its weight relative to other words.
    """

    text: str
    exact: Tokens
    keys: Tokens = ()
    synonyms: tuple[Tokens, ...] = ()
    share: float = 1.0

    @property
    def tokens(self) -> Tokens:
        """Return every token the word can be found by."""
        return (*self.exact, *self.keys, *(token for synonym in self.synonyms for token in synonym))


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
    """Parse a request: drop request words, strip particles, add synonyms."""
    subject = _subject(text)
    synonyms = _synonyms(subject)
    found: dict[str, QueryWord] = {}
    for word, others in zip(subject, synonyms, strict=True):
        asked = _pieces_of(word) if word.kind is Kind.SPACELESS else [_query_word(word, others)]
        found |= {one.text.lower(): one for one in asked if one.exact}
    return ParsedQuery(tuple(found.values()))


def is_only_asking(text: str) -> bool:
    """Return True for a request without a subject: "my work", "a summary", "what happened", 뭐 고쳤어."""
    said = [word.text.lower() for word in parse_query(text).words]
    return bool(said) and all(is_asking_alone(word) or is_past(word) or word in _EVENTS for word in said)


_EVENTS = ("happened", "happening")


def _pieces_of(sentence: Word) -> list[QueryWord]:
    parts = ((text, share) for text, share in pieces(sentence.text) if not is_request_piece(text))
    return [replace(_query_word(Word(text, sentence.kind), ()), share=share) for text, share in parts]


def _subject(text: str) -> list[Word]:
    spoken = words(text)
    kept: list[Word] = []
    is_kept = False
    # From the end: whether "session" is asked about or asked for is told by what follows it.
    for word in reversed(spoken):
        is_kept = not _is_request(word) and (is_kept or len(spoken) == 1 or not _asks_alone(word))
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


def _query_word(word: Word, synonyms: tuple[Tokens, ...]) -> QueryWord:
    plain = _exact_word(word)
    spellings = tuple((token,) for token in _other_spellings(word) if token not in plain.exact)
    others = tuple(dict.fromkeys((*spellings, *synonyms)))
    return replace(plain, synonyms=others, share=_GENERIC if is_generic_word(word.text.lower()) else 1.0)


def _exact_word(word: Word) -> QueryWord:
    tokens = tuple(dict.fromkeys(word_tokens(word.text)))
    keys = tuple(token for token in tokens if token.startswith(KEY_PREFIX))
    exact = tuple(token for token in tokens if token not in keys)
    if any(token.startswith(IDENTIFIER_PREFIX) for token in exact):  # of k8s neither k nor 8 is evidence
        exact = tuple(token for token in exact if len(token) > 1)
    return QueryWord(as_typed(word.text), exact, tuple(other for key in keys for other in _in_other_script(key)))


def _in_other_script(key: str) -> Tokens:
    """Return the keys of a loan word in the other script: within one script equal keys are mostly chance.

    Korean borrows checkpoint, English says checkpoints.
    """
    sound = key[len(LATIN_KEY_PREFIX) :]
    if key.startswith(HANGUL_KEY_PREFIX):
        return LATIN_KEY_PREFIX + sound, f"{LATIN_KEY_PREFIX}{sound}s"
    singular = sound.removesuffix("s")
    return tuple(dict.fromkeys(HANGUL_KEY_PREFIX + one for one in (sound, singular) if len(one) >= SHORTEST_KEY))


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


# -- synonyms


def _synonyms(subject: Sequence[Word]) -> list[tuple[Tokens, ...]]:
    """Return, for each word, the synonyms of every phrase of one to three words that it is a part of."""
    found: list[list[Tokens]] = [[] for _ in subject]
    for start in range(len(subject)):
        for end in range(start + 1, min(start + _LONGEST_SYNONYM, len(subject)) + 1):
            others = _groups().get(_spelling(subject[start:end]), ())
            for at in range(start, end):
                found[at].extend(others)
    return [tuple(others) for others in found]


def _spelling(phrase: Iterable[Word]) -> str:
    """Return one form of a phrase however it is spaced, joined or inflected."""
    return "".join(map(_canonical, phrase))


def _canonical(word: Word) -> str:
    if word.kind is not Kind.IDENTIFIER:
        return word.text
    return "".join(map(stem, identifier_parts(word.text)))


@lru_cache(1)
def _groups() -> dict[str, tuple[Tokens, ...]]:
    """Read synonyms.txt; return, for the spelling of each member of a group, the tokens of the other members."""
    lines = files(__package__).joinpath("synonyms.txt").read_text(encoding="utf-8").splitlines()
    groups: dict[str, tuple[Tokens, ...]] = {}
    for line in lines:
        members: dict[str, list[Tokens]] = {}
        for phrase in _members(line):
            members.setdefault(_spelling(phrase), []).extend(_ways_to_write(phrase))
        for spelling in members:
            others = (tokens for other, ways in members.items() if other != spelling for tokens in ways)
            groups[spelling] = (*groups.get(spelling, ()), *others)
    return groups


def _members(line: str) -> list[list[Word]]:
    names = line.partition("#")[0].split(",")
    return [phrase for phrase in map(_subject, names) if phrase]


def _ways_to_write(phrase: Sequence[Word]) -> list[Tokens]:
    """Return the tokens of a phrase; also of its words joined to one: WebSocket, connection_pool."""
    joined = "".join(word.text for word in phrase).lower()
    is_joined = len(phrase) > 1 and joined.isascii() and joined.isalpha()
    return [_phrase_tokens(phrase), *([(IDENTIFIER_PREFIX + joined,)] if is_joined else [])]


def _phrase_tokens(phrase: Iterable[Word]) -> Tokens:
    return tuple(dict.fromkeys(token for word in phrase for token in _exact_word(word).exact))
