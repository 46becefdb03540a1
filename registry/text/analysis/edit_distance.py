"""Generate words one typo away, for a word that occurs nowhere. Pure.

Similar words are generated and looked up, so the work depends on the word's length only, and no vocabulary is stored.
Korean words of three or more syllables do not need it: the bigrams around a wrong syllable still match.
"""

from collections.abc import Sequence
from string import ascii_lowercase

MIN_LETTERS = 5  # of a word whose typos are corrected: shorter words have too many similar ones


def words_one_edit_away(word: str) -> list[str]:
    """Return the lower-case words one edit away that begin with the same letter (about 450 for eight letters)."""
    found: dict[str, None] = {}
    for at in range(1, len(word) + 1):
        before, after = word[:at], word[at:]
        found.update(dict.fromkeys(before + letter + after for letter in ascii_lowercase))
        if after:
            found[before + after[1:]] = None
            found.update(dict.fromkeys(before + letter + after[1:] for letter in ascii_lowercase))
        if len(after) > 1:
            found[before + after[1] + after[0] + after[2:]] = None
    found.pop(word, None)
    return list(found)


_VOWELS, _FINALS = 21, 28  # letters of a Hangul syllable, as Unicode counts them
_SAME_INITIAL = (0, 1, 15), (3, 4, 16), (7, 8, 17), (9, 10), (12, 13, 14)  # ㄱㄲㅋ ㄷㄸㅌ ㅂㅃㅍ ㅅㅆ ㅈㅉㅊ
_SAME_VOWEL = (1, 5), (3, 7), (10, 11, 15), (4, 8), (13, 18)  # ㅐㅔ ㅒㅖ ㅙㅚㅞ ㅓㅗ ㅜㅡ
_FINAL_OF_INITIAL = {0: 1, 2: 4, 3: 7, 5: 8, 6: 16, 7: 17, 9: 19, 12: 22}
"""Final consonant of each initial one: 섭버 doubles the ㅂ of 서버."""


def similar_hangul_words(word: str) -> list[str]:
    """Return two-syllable words that sound like this one: 캐시 for 케시, 서버 for 섭버 and 써버."""
    codes = [ord(letter) - ord("가") for letter in word]
    syllables = [(code // _FINALS // _VOWELS, code // _FINALS % _VOWELS, code % _FINALS) for code in codes]
    found: dict[str, None] = {}
    for at, (initial, vowel, final) in enumerate(syllables):
        variants = [(other, vowel, final) for other in _similar_letters(_SAME_INITIAL, initial)]
        variants += [(initial, other, final) for other in _similar_letters(_SAME_VOWEL, vowel)]
        following = syllables[at + 1][0] if at + 1 < len(syllables) else None
        doubled = _FINAL_OF_INITIAL.get(following) if following is not None else None
        if doubled and final in (0, doubled):
            variants.append((initial, vowel, doubled - final))
        for one in variants:
            found["".join(map(_syllable, [*syllables[:at], one, *syllables[at + 1 :]]))] = None
    return list(found)


def _syllable(letters: tuple[int, int, int]) -> str:
    initial, vowel, final = letters
    return chr(ord("가") + (initial * _VOWELS + vowel) * _FINALS + final)


def _similar_letters(groups: Sequence[Sequence[int]], letter: int) -> list[int]:
    return [other for group in groups if letter in group for other in group if other != letter]
