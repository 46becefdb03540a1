"""Figures and tables of the outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.retrieval.asking import FIRST, Outcome
from benchmarks.retrieval.baselines import BASELINE_WAYS
from benchmarks.setup.figures import table

ANSWERABLE = "all answerable"
Figures = dict[str, float | None]

HEADS = {
    "questions": "questions",
    "session_1": "session@1",
    "session_5": "@5",
    "recall_10": f"messages R@{FIRST}",
    "recall": "in the answer",
    "not_found": "NOT_FOUND",
    "answered": "answered",
    "until_fact": "tokens to the fact",
    "tokens": "in all",
    "cpu_ms": "CPU ms",
}


def figures_by_kind(outcomes: Sequence[Outcome]) -> dict[str, Figures]:
    """Return the figures of each kind of question, and of all answerable ones together."""
    kinds = dict.fromkeys(one.question.kind for one in outcomes)
    found = {kind: figures([one for one in outcomes if one.question.kind == kind]) for kind in kinds}
    answerable = [one for one in outcomes if one.question.is_answerable]
    return {**found, ANSWERABLE: figures(answerable)} if answerable else found


def figures(outcomes: Sequence[Outcome]) -> Figures:
    """Return shares from 0 to 1, and medians of tokens and times; None if nothing was measured."""
    with_evidence = [one for one in outcomes if one.evidence]
    with_session = [one for one in outcomes if one.question.is_answerable and not one.in_channel]
    return {
        "questions": len(outcomes),
        "session_1": _mean(_hit(one, 1) for one in with_session),
        "session_5": _mean(_hit(one, 5) for one in with_session),
        "recall_10": _mean(_recall(one, one.first) for one in with_evidence),
        "recall": _mean(_recall(one, one.messages) for one in with_evidence),
        "not_found": _mean(not one.is_found for one in outcomes),
        "answered": _mean(one.is_answered for one in outcomes),
        "until_fact": _median(one.until_fact for one in outcomes),
        "tokens": _median(one.tokens for one in outcomes if one.is_found),
        "cpu_ms": _median(one.cpu_ms for one in outcomes),
    }


def _hit(one: Outcome, k: int) -> bool:
    return bool(set(one.sessions[:k]) & set(one.question.sessions))


def _recall(one: Outcome, messages: Sequence[str]) -> float:
    return len(one.evidence & set(messages)) / len(one.evidence)


def _mean(numbers: Iterable[float]) -> float | None:
    listed = list(numbers)
    return sum(listed) / len(listed) if listed else None


def _median(numbers: Iterable[float | None]) -> float | None:
    listed = [number for number in numbers if number is not None]
    return median(listed) if listed else None


def by_way(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """Group the outcomes by way of asking."""
    found: dict[str, list[Outcome]] = {}
    for one in outcomes:
        found.setdefault(one.way, []).append(one)
    return found


def tables(outcomes: Iterable[Outcome]) -> str:
    """Return the tables of one set: by kind for each tool, all ways, reasons of losses, and confidence."""
    ways = by_way(outcomes)
    parts = [_kinds_table(way, some) for way, some in ways.items() if way not in BASELINE_WAYS]
    parts += [_ways_table(ways, in_channel=True), _ways_table(ways, in_channel=False)]
    parts += [
        _shares_table("lost evidence", ways, _losses),
        _shares_table("confidence: right of so many", ways, _confidence),
    ]
    return "\n\n".join(part for part in parts if part)


def _kinds_table(way: str, outcomes: Sequence[Outcome]) -> str:
    rows = [(kind, *map(_cell, HEADS, row.values())) for kind, row in figures_by_kind(outcomes).items()]
    return table((way, *HEADS.values()), rows)


def _ways_table(ways: Mapping[str, Sequence[Outcome]], *, in_channel: bool) -> str:
    """Return a row for each way: figures of answerable questions, and the share of false answers."""
    rows = []
    for way, some in ways.items():
        answerable = [one for one in some if one.question.is_answerable]
        if answerable and answerable[0].in_channel == in_channel:
            false = _mean(one.is_answered for one in some if not one.question.is_answerable)
            rows.append((way, *map(_cell, HEADS, figures(answerable).values()), _cell("answered", false)))
    return table((ANSWERABLE, *HEADS.values(), "false answers"), rows) if rows else ""


SHARES = ("session_1", "session_5", "recall_10", "recall", "not_found", "answered")


def _cell(name: str, figure: float | None) -> str:
    if figure is None:
        return "-"
    return f"{figure:.2f}" if name in SHARES else f"{figure:.1f}" if name == "cpu_ms" else f"{figure:.0f}"


def _shares_table(
    name: str, ways: dict[str, list[Outcome]], read: Callable[[Sequence[Outcome]], dict[str, str]]
) -> str:
    found = {way: read(some) for way, some in ways.items()}
    heads = list(dict.fromkeys(head for row in found.values() for head in row))
    rows = [(way, *(row.get(head, "-") for head in heads)) for way, row in found.items() if row]
    return table((name, *heads), rows) if heads else ""


def _losses(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Return the share of all evidence that was lost for each reason."""
    total = sum(len(one.evidence) for one in outcomes)
    lost = Counter(fate for one in outcomes for fate in one.lost.values())
    return {fate: f"{count / total:.2f}" for fate, count in lost.most_common()}


def _confidence(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Return for each confidence how many answers contain evidence, of how many."""
    degrees = dict.fromkeys(one.confidence for one in outcomes if one.confidence)
    return {str(degree): _right([one for one in outcomes if one.confidence == degree]) for degree in degrees}


def _right(outcomes: Sequence[Outcome]) -> str:
    right = sum(bool(one.evidence & set(one.messages)) for one in outcomes)
    return f"{right}/{len(outcomes)}"


def misses(outcomes: Iterable[Outcome]) -> str:
    """Return a text with each question that the product missed, and its answer."""
    return "\n".join(_miss(one) for one in outcomes if one.is_missed and one.way not in BASELINE_WAYS)


def _miss(one: Outcome) -> str:
    asked = f"{one.way} | {one.question.kind} {one.question.id}: {one.question.text}"
    wanted = " ".join([*one.question.sessions[:1], *sorted(one.evidence)]) if one.question.is_answerable else "nothing"
    came = f"{', '.join(one.sessions[:3])}: {' '.join(one.messages[:FIRST])}" if one.is_found else "NOT_FOUND"
    return f"{asked}\n    wanted {wanted}\n    came {came}"


def as_json(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Return the figures as JSON, by way and kind."""
    return {way: figures_by_kind(some) for way, some in by_way(outcomes).items()}
