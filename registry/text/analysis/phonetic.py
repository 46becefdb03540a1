"""Loan-word keys: 미들웨어 and middleware sound alike, so they share a consonant skeleton."""

import re

from registry.text.analysis.particles import is_syllable

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
    """The key of a lower-case Latin or a Hangul word without particles, 3 to 24 letters; "" when it has none.

    Hangul words need two syllables, Latin words four letters: what is shorter sounds like too much else.
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
