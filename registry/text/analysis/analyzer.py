"""Turn a text into the tokens it is indexed by, the same for every database.

Increase `ANALYZER_VERSION` with any change to the tokens of a text: rows of the index are deleted by analysing the
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

from registry.text.analysis.particles import is_syllable, strip_particles

ANALYZER_VERSION = 2  # 1: the same tokens, but index entries had no scope besides the channel
IDENTIFIER_PREFIX = "zzid"
KEY_PREFIX = "zzk"
LATIN_KEY_PREFIX = "zzkl"
HANGUL_KEY_PREFIX = "zzkh"
LONGEST_TOKEN = 64
_RESERVED = "zz"
_LONGEST_RUN = 200
_CACHED_WORDS = 100_000


class Kind(StrEnum):
    """The way in which a raw word is split into tokens."""

    IDENTIFIER = "identifier"
    HANGUL = "hangul"
    SPACELESS = "spaceless"
    OTHER = "other"


class Word(NamedTuple):
    """A raw word: normalised, with its case."""

    text: str
    kind: Kind


_HANGUL = "\u1100-\u11ff\uac00-\ud7a3"
_KANA_HAN = "\u3005-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SPACELESS = _KANA_HAN + "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_NOT_TOKENS_IN_SQLITE = "\u19b0-\u19c9\u1cf2\u1cf3"

_RAW = re.compile(
    r"[A-Za-z0-9_]+(?:[./:-]{1,3}[A-Za-z0-9_]+)*"
    rf"|[{_HANGUL}]+"
    rf"|(?:(?![\W_])[{_SPACELESS}])+"
    rf"|[^\W_\x00-\x7f{_HANGUL}{_SPACELESS}{_NOT_TOKENS_IN_SQLITE}]+"
)
_LONG_RUN = re.compile(rf"(?<![!-~])[!-~]{{{_LONGEST_RUN + 1},}}")
_PART = re.compile("[A-Z]{2,}s?(?![a-z])|[A-Z]?[a-z]+|[A-Z]|[0-9]+")
_IS_HANGUL = re.compile(f"[{_HANGUL}]").match
_IS_SPACELESS = re.compile(f"[{_SPACELESS}]").match

# Accents are removed, but not from kana: a voicing mark makes another letter.
_ACCENTED = re.compile("[^\x00-\x7f\u3005-\u3098\u309b-\u30ff\u3400-\u9fff\uac00-\ud7a3]+")
_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i"}
    | {"ẞ": "SS", "Æ": "AE", "Œ": "OE", "Ø": "O", "Đ": "D", "Ð": "D", "Þ": "TH", "Ł": "L"}
)
_DROPPED = frozenset(("Mn", "Mc", "Me", "Cf"))
_ZERO_WIDTH_SPACE = "\u200b"


def analyze(text: str) -> list[str]:
    """Return the distinct tokens of a text, in order of first occurrence.

    A token has 1 to 64 lower-case letters and digits (Unicode L*, N*), nothing else: both FTS5's unicode61 and
    PostgreSQL's tsvector take it as one word.
    """
    return tokens_of(dict.fromkeys(text.split()))  # long texts repeat theirs


def tokens_of(pieces: Iterable[str]) -> list[str]:
    """Return the same for a text that is already split at white space."""
    return list(dict.fromkeys(chain.from_iterable(map(_OF_PIECES.__getitem__, pieces))))


def held_of(tokens: frozenset[str], text: str) -> frozenset[str]:
    """Return the tokens that a text contains."""
    return tokens.intersection(chain.from_iterable(map(_OF_PIECES.__getitem__, text.split())))


class _OfPieces(dict[str, tuple[str, ...]]):
    """Tokens by piece of text between white space; short pieces are cached, since most of them recur."""

    def __missing__(self, piece: str) -> tuple[str, ...]:
        tokens = tuple(dict.fromkeys(chain.from_iterable(map(word_tokens, _raw_words(piece)))))
        if len(piece) <= _LONGEST_PIECE:
            if len(self) >= _CACHED_PIECES:
                self.clear()
            self[piece] = tokens
        return tokens


_OF_PIECES = _OfPieces()
_LONGEST_PIECE = 32
_CACHED_PIECES = 50_000


def words(text: str) -> list[Word]:
    """Return the raw words of a text in order, with repetitions."""
    return [Word(raw, _kind_of(raw)) for raw in _raw_words(text)]


@lru_cache(_CACHED_WORDS)
def word_tokens(raw: str) -> tuple[str, ...]:
    """Return the tokens of a raw word (`Word.text`), with loan-word keys."""
    return _TOKENIZERS[_kind_of(raw)](raw)


def identifier_parts(raw: str) -> list[str]:
    """Return the lower-case parts of an identifier: get, user, name, v, 2 for `getUserName_v2`."""
    return [part.lower() for part in _PART.findall(raw)]


def identifier_part_spans(raw: str) -> list[tuple[int, int]]:
    """Return the begin and end of each part of an identifier."""
    return [match.span() for match in _PART.finditer(raw)]


@lru_cache(_CACHED_WORDS)
def stem(word: str) -> str:
    """Return the English stem of a lower-case ASCII word. The stemmer keeps state, so each call makes a new one."""
    stemmed: str = stemmer("english").stemWord(word)
    return stemmed


def _raw_words(text: str) -> list[str]:
    plain = _normalise(text)
    return _RAW.findall(plain if len(plain) <= _LONGEST_RUN else _LONG_RUN.sub(" ", plain))


def _normalise(text: str) -> str:
    if text.isascii():
        return text
    return _ACCENTED.sub(_without_marks, unicodedata.normalize("NFKC", text))


def _without_marks(match: re.Match[str]) -> str:
    return _fold(match[0])


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
    """Return no second token for a plain word, unless it begins like our own prefixes."""
    if len(parts) == 1 and not parts[0].startswith(_RESERVED):
        return []
    whole = IDENTIFIER_PREFIX + "".join(parts)
    return [whole] if len(IDENTIFIER_PREFIX) + 2 <= len(whole) <= LONGEST_TOKEN else []


def _part_tokens(part: str) -> tuple[str, ...]:
    if len(part) > LONGEST_TOKEN or part.startswith(_RESERVED):
        return ()
    # Numbers have no stem and no loan-word key, and there are too many to cache.
    return (part,) if part.isdigit() else _letter_tokens(part)


@lru_cache(_CACHED_WORDS)
def _letter_tokens(part: str) -> tuple[str, ...]:
    return (stem(part), *_keys(part, LATIN_KEY_PREFIX))


def _hangul(raw: str) -> tuple[str, ...]:
    return (*_bigrams(raw), *_keys(strip_particles(raw), HANGUL_KEY_PREFIX))


def _bigrams(raw: str) -> tuple[str, ...]:
    if len(raw) == 1:
        return (raw,)
    return tuple(raw[at : at + 2] for at in range(len(raw) - 1))


def _other(raw: str) -> tuple[str, ...]:
    # Cherokee folds to capitals, hence lower() after casefold().
    word = raw.casefold().lower()
    return (word,) if len(word) <= LONGEST_TOKEN else ()


def _keys(word: str, prefix: str) -> list[str]:
    key = loan_key(word)
    return [prefix + key] if key else []


_TOKENIZERS: dict[Kind, Callable[[str], tuple[str, ...]]] = {
    Kind.IDENTIFIER: _identifier,
    Kind.HANGUL: _hangul,
    Kind.SPACELESS: _bigrams,
    Kind.OTHER: _other,
}


SHORTEST_KEY = 3
_LONGEST_KEY = 24
_SHORTEST_LATIN = 4

_LEADS = ("k", "k", "n", "t", "t", "r", "m", "p", "p", "s", "s", "", "j", "j", "j", "k", "t", "p", "")
_FINALS = (
    "", "k", "k", "ks", "n", "nj", "n", "t", "r", "rk", "rm", "rp", "rs", "rt", "rp", "r",
    "m", "p", "ps", "t", "t", "n", "j", "j", "k", "t", "p", "",
)  # fmt: skip
_SILENT_LEAD = 11
_HIEUH = 18

_SILENT_R = re.compile("(?<=[aeiou])r(?![aeiou])")
_SOUNDS = (
    ("tion", "sn"), ("sion", "sn"), ("tch", "j"), ("ch", "j"), ("ck", "k"), ("sh", "s"), ("ph", "p"),
    ("th", "s"), ("ng(?![ei])", "n"), ("dge", "j"), ("gg", "k"), ("g[ei]", "j"), ("c[eiy]", "s"),
    ("x", "ks"), ("qu", "k"),
)  # fmt: skip
_LATIN_SOUND = re.compile("|".join(f"({pattern})" for pattern, _ in _SOUNDS))
_LETTER_SOUNDS = str.maketrans("bpfvcqgdzl", "ppppkkktjr", "aeiouwyh")
_DOUBLED = re.compile(r"(.)\1+")


def loan_key(word: str) -> str:
    """Return the loan-word key of a lower-case Latin word or a Hangul word without particles; "" if it has none.

    A key has 3 to 24 letters. Hangul words need two syllables, Latin words four letters: shorter ones sound like too
    many others.
    """
    if word.isascii():
        key = _latin_skeleton(word) if len(word) >= _SHORTEST_LATIN and word.isalpha() else ""
    else:
        key = _hangul_skeleton(word) if len(word) > 1 and all(map(is_syllable, word)) else ""
    key = _DOUBLED.sub(r"\1", key) if key else ""
    return key if SHORTEST_KEY <= len(key) <= _LONGEST_KEY else ""


def _hangul_skeleton(word: str) -> str:
    sounds = [_syllable_sounds(ord(char) - ord("가")) for char in word]
    return _initial_sound(ord(word[0]) - ord("가")) + "".join(sounds)


def _syllable_sounds(offset: int) -> str:
    return _LEADS[offset // 588] + _FINALS[offset % 28]


def _initial_sound(offset: int) -> str:
    return {_SILENT_LEAD: "a", _HIEUH: "h"}.get(offset // 588, "")


def _latin_skeleton(word: str) -> str:
    sounds = _LATIN_SOUND.sub(_sound_of, _SILENT_R.sub("", word))
    initial = "h" if word[0] == "h" else "a" if word[0] in "aeiouwy" else ""
    return initial + sounds.translate(_LETTER_SOUNDS)


def _sound_of(match: re.Match[str]) -> str:
    return _SOUNDS[(match.lastindex or 1) - 1][1]
