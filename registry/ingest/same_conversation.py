"""Whether two tellings are of one conversation (issue 3, merging). Pure: questions, and the answers to them, weighed.

"continue" and "run the tests" are asked in many conversations: only questions with some words to them are evidence, and
they weigh more where an answer agrees too. Tellings that part, each with an end of its own, are not one conversation.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from registry.ingest.paraphrase import Texts, agreement
from registry.ingest.turn_alignment import Line, Turn, matching_turns, turns_of

TELLING = 14
"""A question narrower than this says nothing; Korean and other wide letters count two."""
MOST = 60
"""No question counts for more than so many letters."""
ENOUGH = 40
"""So many letters of questions are enough where an answer agrees,"""
ENOUGH_ALONE = 80
"""and so many where none does, over at least two turns."""
LONG_ANSWER = 40
"""A single turn is enough only if so much of its answer is the same, word for word."""
SHARE = 0.6
"""Where each telling has a question, at least so many of them are the same one."""
AGREEING, DIFFERING = 0.7, 0.4
"""Answers that share so many words agree; with so few they differ."""
FEWEST_WORDS = 4
MOST_TURNS = 40
"""So many of the turns in common are weighed: the last ones."""


class Verdict(Enum):
    """What two tellings are to each other."""

    SAME = "same"
    PERHAPS = "perhaps"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Telling:
    """A conversation as one side tells it: its lines in order, and where their texts are."""

    lines: Sequence[Line]
    texts: Texts


@dataclass(frozen=True, slots=True)
class Evidence:
    """A verdict, and whether an answer spoke for it."""

    verdict: Verdict
    is_answered: bool


def compare(one: Telling, other: Telling) -> Evidence:
    """What two tellings are to each other, by what stands in both."""
    first, second = turns_of(one.lines), turns_of(other.lines)
    matched = matching_turns(first, second)
    if not matched:
        return Evidence(Verdict.OTHER, False)
    weighed = matched[-MOST_TURNS:]
    questions = [first[i].question for i, _ in weighed]
    weight = _weight(_texts_of(one, [at for at in questions if at is not None]))
    agreeing, differing, is_same_answer = _answers(one, other, [(first[i], second[j]) for i, j in weighed])
    is_apart = _is_parted(matched, first, second) or len(matched) < SHARE * _comparable(matched, first, second)
    if is_apart:
        return Evidence(Verdict.PERHAPS if weight >= ENOUGH else Verdict.OTHER, agreeing > 0)
    if len(matched) == 1:
        is_sure = weight >= ENOUGH // 2 and is_same_answer
    elif agreeing:
        # An answer that is the same word for word makes up for short questions, as it does for a single turn.
        is_sure = weight >= (ENOUGH // 2 if is_same_answer and not differing else ENOUGH)
    else:
        is_sure = weight >= ENOUGH_ALONE and differing < 2
    return Evidence(Verdict.SAME if is_sure else Verdict.PERHAPS, agreeing > 0)


def _texts_of(telling: Telling, places: Sequence[int]) -> list[str]:
    """Each text once, however often it was said."""
    distinct = {telling.lines[at].digest: at for at in places}
    return list(telling.texts(list(distinct.values())).values())


def _weight(questions: Iterable[str]) -> int:
    widths = [_width(question) for question in questions]
    return sum(min(width, MOST) for width in widths if width >= TELLING)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in " ".join(text[:400].split()))


def _is_parted(matched: Sequence[tuple[int, int]], first: Sequence[Turn], second: Sequence[Turn]) -> bool:
    """Whether both go on after the last question they share."""
    i, j = matched[-1]
    return i < len(first) - 1 and j < len(second) - 1


def _comparable(matched: Sequence[tuple[int, int]], first: Sequence[Turn], second: Sequence[Turn]) -> int:
    """How many questions could be the same: where only one side has some, the other begins later, or left them out."""
    edges = [(0, 0), *matched]
    gaps = ((i - p - 1, j - q - 1) for (p, q), (i, j) in zip(edges, matched, strict=False))
    return len(matched) + sum(min(gap) for gap in gaps)


def _answers(one: Telling, other: Telling, turns: Sequence[tuple[Turn, Turn]]) -> tuple[int, int, bool]:
    """In how many turns the answers agree, in how many they differ, and whether a long one is the same."""
    mine = one.texts([at for turn, _ in turns for at in _spoken(one, turn)])
    theirs = other.texts([at for _, turn in turns for at in _spoken(other, turn)])
    agreeing = differing = 0
    is_same = False
    for left, right in turns:
        said, heard = [mine[at] for at in _spoken(one, left)], [theirs[at] for at in _spoken(other, right)]
        scores = [(agreement(a, b), a, b) for a in said for b in heard if _has_words(a) and _has_words(b)]
        best = max(scores, default=None)
        if best is None:
            continue
        agreeing += best[0] >= AGREEING
        differing += best[0] < DIFFERING
        is_same |= best[0] == 1.0 and min(_width(best[1]), _width(best[2])) >= LONG_ANSWER
    return agreeing, differing, is_same


def _spoken(telling: Telling, turn: Turn) -> list[int]:
    return [at for at in turn.answers if telling.lines[at].role == "assistant"]


def _has_words(text: str) -> bool:
    return len(text.split()) >= FEWEST_WORDS or _width(text) >= LONG_ANSWER // 2
