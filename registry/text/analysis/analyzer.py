"""Convert a text to its index tokens, the same for every database.

Increase `ANALYZER_VERSION` with any change to the tokens of a text: rows are deleted from the index by analysing the
stored text again.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from snowballstemmer import stemmer  # type: ignore[import-untyped]

ANALYZER_VERSION = 4
IDENTIFIER_PREFIX = "zzid"
LONGEST_TOKEN = 64
_RESERVED = "zz"
_LONGEST_RUN = 200
# Entries of each cache. All caches take 11 MB; with 50_000 entries they take 23 MB, and repeated prose is analysed a
# quarter faster.
_CACHED_WORDS = 20_000


class Kind(StrEnum):
    """Determines how a raw word is split into tokens."""

    IDENTIFIER = "identifier"
    HANGUL = "hangul"
    SPACELESS = "spaceless"
    OTHER = "other"


class Word(NamedTuple):
    """A raw word: normalised, but with its case."""

    text: str
    kind: Kind


_HANGUL = "\u1100-\u11ff\uac00-\ud7a3"
_KANA_HAN = "\u3005-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SPACELESS = _KANA_HAN + "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_NOT_TOKENS_IN_SQLITE = "\u19b0-\u19c9\u1cf2\u1cf3"

_RAW = re.compile(
    r"(?<![A-Za-z0-9_])[A-Za-z](?:\+\+|#(?![A-Za-z0-9_]))"  # C++, C#
    r"|[A-Za-z0-9_]+(?:[./:-]{1,3}[A-Za-z0-9_]+)*"
    rf"|[{_HANGUL}]+"
    rf"|(?:(?![\W_])[{_SPACELESS}])+"
    rf"|[^\W_\x00-\x7f{_HANGUL}{_SPACELESS}{_NOT_TOKENS_IN_SQLITE}]+"
)
_LONG_RUN = re.compile(rf"(?<![!-~])[!-~]{{{_LONGEST_RUN + 1},}}")
_PART = re.compile("[A-Z]{2,}s?(?![a-z])|[A-Z]?[a-z]+|[A-Z]|[0-9]+")
_IS_HANGUL = re.compile(f"[{_HANGUL}]").match
_IS_SPACELESS = re.compile(f"[{_SPACELESS}]").match

# Accents are removed, but not the voicing marks of kana, which make another letter.
_ACCENTED = re.compile("[^\x00-\x7f\u3005-\u3098\u309b-\u30ff\u3400-\u9fff\uac00-\ud7a3]+")
_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i"}
    | {"ẞ": "SS", "Æ": "AE", "Œ": "OE", "Ø": "O", "Đ": "D", "Ð": "D", "Þ": "TH", "Ł": "L"}
)
_DROPPED = frozenset(("Mn", "Mc", "Me", "Cf"))
_ZERO_WIDTH_SPACE = "\u200b"


def analyze(text: str) -> list[str]:
    """Return the distinct tokens of a text, in order of first occurrence.

    A token has 1 to 64 lower-case letters and digits (Unicode L*, N*) only, so that FTS5's unicode61 and PostgreSQL's
    tsvector accept it as one word.
    """
    return list(dict.fromkeys(_tokens_of(dict.fromkeys(text.split()))))  # long texts repeat words


def tokens_in_text(tokens: frozenset[str], text: str) -> frozenset[str]:
    return tokens.intersection(_tokens_of(text.split()))


def _tokens_of(pieces: Iterable[str]) -> Iterable[str]:
    return chain.from_iterable([_of_short(one) if len(one) <= _LONGEST_CACHED else _of_piece(one) for one in pieces])


def _of_piece(piece: str) -> tuple[str, ...]:
    return tuple(chain.from_iterable(map(word_tokens, _raw_words(piece))))


_LONGEST_CACHED = 32  # characters between white space; most pieces recur
_of_short = lru_cache(_CACHED_WORDS)(_of_piece)


def words(text: str) -> list[Word]:
    """Return the raw words of a text in order, with repetitions."""
    return [Word(raw, _kind_of(raw)) for raw in _raw_words(text)]


@lru_cache(_CACHED_WORDS)
def word_tokens(raw: str) -> tuple[str, ...]:
    """Return the tokens of a raw word (`Word.text`)."""
    return _TOKENIZERS[_kind_of(raw)](raw)


def identifier_parts(raw: str) -> list[str]:
    """Return the lower-case parts of an identifier: get, user, name, v, 2 for `getUserName_v2`; csharp for `C#`."""
    return [part.lower() for part in _PART.findall(raw.replace("++", "plusplus").replace("#", "sharp"))]


def identifier_part_spans(raw: str) -> list[tuple[int, int]]:
    """Return the begin and end of each part of an identifier."""
    return [match.span() for match in _PART.finditer(raw)]


@lru_cache(_CACHED_WORDS)
def stem(word: str) -> str:
    """Return the English stem of a lower-case ASCII word. Stemmers have state, so each call makes a new one."""
    stemmed: str = stemmer("english").stemWord(word)
    return stemmed


def _raw_words(text: str) -> list[str]:
    plain = _normalise(text)
    return _RAW.findall(plain if len(plain) <= _LONGEST_RUN else _LONG_RUN.sub(" ", plain))


def _normalise(text: str) -> str:
    if text.isascii():
        return text
    return _ACCENTED.sub(lambda match: _fold(match[0]), unicodedata.normalize("NFKC", text))


@lru_cache(_CACHED_WORDS)
def _fold(chunk: str) -> str:
    decomposed = unicodedata.normalize("NFKD", chunk.translate(_LETTERS))
    return unicodedata.normalize("NFC", "".join(filter(_is_kept, decomposed)))


def _is_kept(char: str) -> bool:
    return char == _ZERO_WIDTH_SPACE or unicodedata.category(char) not in _DROPPED


def _kind_of(raw: str) -> Kind:
    if raw[0].isascii():
        return Kind.IDENTIFIER
    if _IS_HANGUL(raw):
        return Kind.HANGUL
    return Kind.SPACELESS if _IS_SPACELESS(raw) else Kind.OTHER


def _identifier(raw: str) -> tuple[str, ...]:
    parts = identifier_parts(raw)
    return (*_whole(parts), *(token for part in parts for token in _part_tokens(part)))


def _whole(parts: list[str]) -> list[str]:
    """Return the token of the whole identifier; none for a plain word that does not begin with a reserved prefix."""
    if len(parts) == 1 and not parts[0].startswith(_RESERVED):
        return []
    whole = IDENTIFIER_PREFIX + "".join(parts)
    return [whole] if len(IDENTIFIER_PREFIX) + 2 <= len(whole) <= LONGEST_TOKEN else []


def _part_tokens(part: str) -> tuple[str, ...]:
    if len(part) > LONGEST_TOKEN or part.startswith(_RESERVED):
        return ()
    return (part if part.isdigit() else stem(part),)  # there are too many numbers to cache


def _bigrams(raw: str) -> tuple[str, ...]:
    if len(raw) == 1:
        return (raw,)
    return tuple(raw[at : at + 2] for at in range(len(raw) - 1))


def _other(raw: str) -> tuple[str, ...]:
    # Cherokee folds to capitals, hence lower() after casefold().
    word = raw.casefold().lower()
    return (word,) if len(word) <= LONGEST_TOKEN else ()


_TOKENIZERS: dict[Kind, Callable[[str], tuple[str, ...]]] = {
    Kind.IDENTIFIER: _identifier,
    Kind.HANGUL: _bigrams,
    Kind.SPACELESS: _bigrams,
    Kind.OTHER: _other,
}
