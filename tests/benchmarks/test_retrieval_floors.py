"""Test that retrieval on a slice of the evaluation's sets stays above its floors and below its ceilings.

A floor is a little below the last measurement, a ceiling a little above: tighten them after an improvement.
"""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.retrieval.asking import WAYS, Outcome, ask_all
from benchmarks.retrieval.measures import by_way, figures
from benchmarks.retrieval.product import product_with
from benchmarks.retrieval.question_sets import QuestionSet, own_sets, with_foreign

SETS = ("developers_en", "developers_ko", "long_dialogues")
EACH = 10
"""Every tenth question is asked; `python -m benchmarks.retrieval` asks all."""
CHANNEL, EXTRACT, SEARCH = "extract, of its channel", "extract", "search_sessions"
HELD = [way for way in WAYS if way.name in (CHANNEL, EXTRACT, SEARCH)]
"""Methods that have a floor."""
FLOORS = {
    (EXTRACT, "session_1"): 0.63,
    (EXTRACT, "session_5"): 0.8,
    (SEARCH, "session_1"): 0.63,
    (SEARCH, "session_5"): 0.8,
    (CHANNEL, "recall_10"): 0.57,
    (EXTRACT, "recall_10"): 0.5,
    (SEARCH, "recall"): 0.4,
    (CHANNEL, "answered"): 0.45,
    (EXTRACT, "answered"): 0.4,
}
"""Share of questions with an answer, in one wording, that find it."""
CEILINGS = {
    (CHANNEL, "answered"): 0.1,
    (EXTRACT, "answered"): 0.15,
    (SEARCH, "answered"): 0.15,
}
"""Share of questions without an answer that get one."""

pytestmark = pytest.mark.timeout(300)  # stores and asks three sets, also on a busy machine

Found = dict[str, list[Outcome]]


@pytest.fixture(scope="module")
def found() -> Found:
    """Return the outcomes of all sets, by method."""
    own = own_sets()
    slices = [with_foreign(one, own) for one in own if one.name in SETS]
    return by_way(one for asked in slices for one in asyncio.run(_outcomes(asked)))


async def _outcomes(asked: QuestionSet) -> list[Outcome]:
    async with product_with(asked) as product:
        return [one async for one in ask_all(product, asked.questions[::EACH], HELD)]


def test_retrieval_finds_no_less_than_its_floors(found: Found) -> None:
    answerable = {way: figures([one for one in some if one.question.is_answerable]) for way, some in found.items()}
    reached = {(way, name): answerable[way][name] for way, name in FLOORS}
    assert not {key: figure for key, figure in reached.items() if (figure or 0) < FLOORS[key]}


def test_retrieval_gives_no_more_false_answers_than_its_ceilings(found: Found) -> None:
    others = {way: figures([one for one in some if not one.question.is_answerable]) for way, some in found.items()}
    reached = {(way, name): others[way][name] for way, name in CEILINGS}
    assert not {key: figure for key, figure in reached.items() if (figure or 0) > CEILINGS[key]}
