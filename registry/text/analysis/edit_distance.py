"""Words a typo away: looked for only when a word occurs nowhere as it was typed. Pure.

Neighbours are made up and looked up, so the work is bounded by the word's length and no vocabulary has to be
kept beside the index. Korean words need none of it: the bigrams around a wrong syllable still match.
"""

from __future__ import annotations

from collections.abc import Iterable
from string import ascii_lowercase

SHORTEST = 5
SHORTEST_FOR_TWO = 8
"""Letters of a word in which one typo, or two, are forgiven: shorter ones have too many neighbours."""


def neighbours(word: str) -> list[str]:
    """The lower-case words one edit away that begin with the same letter (some 450 for eight letters)."""
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
    """Those of the other words at most so many edits away, nearest first."""
    distances = ((distance(word, other), other) for other in set(others))
    return [other for edits, other in sorted(distances) if 0 < edits <= within]


def distance(one: str, other: str) -> int:
    """How many letters must be put in, left out, changed or swapped with the next to make one word the other."""
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
