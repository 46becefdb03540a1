"""Find words one or two typos away, for a word that occurs nowhere as it was typed. Pure.

Neighbours are generated and looked up, so the work is bounded by the length of the word and no vocabulary has to be
stored. Korean words need none of it: the bigrams around a wrong syllable still match.
"""

from __future__ import annotations

from collections.abc import Iterable
from string import ascii_lowercase

SHORTEST = 5
# letters of a word for which one typo, or two, are tolerated: shorter words have too many neighbours
SHORTEST_FOR_TWO = 8


def neighbours(word: str) -> list[str]:
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


def nearest(word: str, others: Iterable[str], within: int = 2) -> list[str]:
    """Return the words that are at most `within` edits away, nearest first."""
    distances = ((distance(word, other), other) for other in set(others))
    return [other for edits, other in sorted(distances) if 0 < edits <= within]


def distance(one: str, other: str) -> int:
    """Return the number of letters to insert, delete, replace or swap with the next to turn one word into the other."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            best = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                best = min(best, before[j - 2] + 1)
            row.append(best)
        before, last = last, row
    return last[-1]
