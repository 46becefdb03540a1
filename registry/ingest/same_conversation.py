"""Decide by questions and answers whether two transcripts are of one conversation (docs/recognition.md). Pure.

Many conversations contain "continue" or "run the tests": only longer questions are evidence, and they weigh more if an
answer agrees too. Two transcripts that diverge, so that both have other last turns, are not one conversation.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from registry.ingest.alignment import Transcript, Turn, matching_turns
from registry.ingest.paraphrase import agreement

MIN_WIDTH = 14  # letters; a shorter question is no evidence. Wide letters (Korean) count as two
MAX_WIDTH = 60  # letters; the most that one question can weigh
MIN_WEIGHT = 40  # letters of shared questions that are enough if an answer agrees
MIN_WEIGHT_ALONE = 80  # letters that are enough without an answer, in at least two turns
MIN_SHARED = 0.6  # least share of equal questions, where both sides have questions
AGREEING, DIFFERING = 0.7, 0.4  # answers agree from this share of common words on, and differ below the second


class Verdict(Enum):
    SAME = "same"
    PERHAPS = "perhaps"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A verdict on two transcripts, and whether any of their answers agree."""

    verdict: Verdict
    is_answered: bool


def compare(one: Transcript, other: Transcript) -> Comparison:
    """Compare two transcripts by the last 40 turns that they share."""
    matched = matching_turns(one.turns, other.turns)
    if not matched:
        return Comparison(Verdict.OTHER, False)
    shared = [(one.turns[i], other.turns[j]) for i, j in matched[-40:]]
    weight = _weight(_questions(one, [turn for turn, _ in shared]))
    answers = _compare_answers(one, other, shared)
    last, other_last = matched[-1]
    have_diverged = last < len(one.turns) - 1 and other_last < len(other.turns) - 1
    if have_diverged or _is_mostly_different(matched):
        verdict = Verdict.PERHAPS if weight >= MIN_WEIGHT else Verdict.OTHER
    else:
        verdict = Verdict.SAME if _is_sure(len(matched), weight, answers) else Verdict.PERHAPS
    return Comparison(verdict, answers.agreeing > 0)


class _Answers(NamedTuple):
    """The number of turns whose answers agree, and whose answers differ; and whether a long answer is the same."""

    agreeing: int
    differing: int
    is_same: bool


def _is_sure(turns: int, weight: int, answers: _Answers) -> bool:
    if turns == 1:
        return weight >= MIN_WEIGHT // 2 and answers.is_same
    if answers.agreeing:
        # an identical answer makes up for short questions, as it does for a single turn
        return weight >= (MIN_WEIGHT // 2 if answers.is_same and not answers.differing else MIN_WEIGHT)
    return weight >= MIN_WEIGHT_ALONE and answers.differing < 2


def _questions(transcript: Transcript, turns: Iterable[Turn]) -> Iterable[str]:
    distinct = {turn.key: turn.question for turn in turns if turn.question is not None}
    return transcript.texts(list(distinct.values())).values()


def _weight(questions: Iterable[str]) -> int:
    widths = [width_of(question) for question in questions]
    return sum(min(width, MAX_WIDTH) for width in widths if width >= MIN_WIDTH)


def width_of(text: str) -> int:
    """Count letters, wide ones as two."""
    letters = " ".join(text[:400].split())
    return len(letters) + sum(unicodedata.east_asian_width(letter) in "WF" for letter in letters)


def _is_mostly_different(matched: Sequence[tuple[int, int]]) -> bool:
    """Return whether too many questions differ between the matched turns, where both sides have questions.

    If only one side has questions there, the other one begins later or left them out.
    """
    edges = [(0, 0), *matched]
    gaps = ((i - p - 1, j - q - 1) for (p, q), (i, j) in zip(edges, matched, strict=False))
    return len(matched) < MIN_SHARED * (len(matched) + sum(min(gap) for gap in gaps))


def _compare_answers(one: Transcript, other: Transcript, turns: Sequence[tuple[Turn, Turn]]) -> _Answers:
    ours = one.answer_texts([turn for turn, _ in turns])
    theirs = other.answer_texts([turn for _, turn in turns])
    best = [_best_pair(mine, yours) for mine, yours in zip(ours, theirs, strict=True)]
    scores = [score for score, _ in best if score is not None]
    return _Answers(
        sum(score >= AGREEING for score in scores),
        sum(score < DIFFERING for score in scores),
        any(score == 1.0 and width >= 40 for score, width in best),  # 40 letters are enough for a single turn
    )


def _best_pair(ours: Iterable[str], theirs: Sequence[str]) -> tuple[float | None, int]:
    """Return the highest agreement of two answers (None if none are long enough), and the width of the narrower one."""
    pairs = [(agreement(a, b), a, b) for a in ours for b in theirs if _has_words(a) and _has_words(b)]
    if not pairs:
        return None, 0
    score, a, b = max(pairs)
    return score, min(width_of(a), width_of(b))


def _has_words(text: str) -> bool:
    return len(text.split()) >= 4 or width_of(text) >= 20
