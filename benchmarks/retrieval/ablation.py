"""Measure what each ranking rule gains: how often the right conversation is first, with and without it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import select

from benchmarks.retrieval.product import Product, product_with
from benchmarks.retrieval.question_sets import Question, QuestionSet
from benchmarks.setup.figures import table
from orchestrator.answer.finding import lookup
from orchestrator.recording.recorder import Recorder
from orchestrator.state import Run
from registry.search import retrieval, spelling
from registry.search.scope import Scope
from registry.storage.database import ReadTransaction
from registry.storage.tables import channel
from registry.text.ranking import weights
from registry.text.request import query

SPOKEN = ["user", "assistant"]
Change = tuple[Any, str, Any]  # module, name of the rule's function or constant, replacement


def _no_spellings(*_: Any) -> tuple[()]:
    return ()


def _no_correction(_tx: Any, _index: Any, parsed: Any, known: Any, _total: int) -> spelling.Corrected:
    return spelling.Corrected(parsed, known, {})


RULES: Mapping[str, Sequence[Change]] = {
    "neighbours": [(weights, "NEIGHBOUR", 0.0)],
    "titles": [(weights, "TITLE", 0.0)],
    "the model": [(weights, "MODEL", 0.0)],
    "dates in the request": [(weights, "DATE", 0.0)],
    "other spellings of names": [(query, "_other_spellings", _no_spellings)],
    "typos": [(retrieval, "correct", _no_correction)],
    "half weight of general words": [(query, "_GENERIC", 1.0)],
    "echoes": [(retrieval, "find_non_answers", lambda *_: frozenset())],
}
HEADS = ("without", "mean @1", "@5")


@contextmanager
def without(changes: Sequence[Change]) -> Iterator[None]:
    """Replace a rule's functions and constants within the context."""
    before = [(module, name, getattr(module, name)) for module, name, _ in changes]
    try:
        for module, name, value in changes:
            setattr(module, name, value)
        query.parse_query.cache_clear()
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
        query.parse_query.cache_clear()


def ablation(sets: Sequence[QuestionSet], *, by_meaning: bool) -> str:
    """Return the table: mean over the sets (with and without other wordings), then first/five of each."""
    rules = {"nothing": (), **RULES}
    hits: dict[str, dict[str, list[tuple[bool, bool]]]] = {name: {} for name in rules}
    for one in sets:
        asyncio.run(_measure(one, rules, hits, by_meaning=by_meaning))
    rows = []
    for name, of_sets in hits.items():
        figures = {of: (_mean(h[0] for h in some), _mean(h[1] for h in some)) for of, some in of_sets.items()}
        means = [_mean(figure[place] for figure in figures.values()) for place in (0, 1)]
        cells = [f"{first:.3f}/{five:.3f}" for first, five in figures.values()]
        rows.append((name, f"{means[0]:.4f}", f"{means[1]:.4f}", *cells))
    return table((*HEADS, *hits["nothing"]), rows)


async def _measure(
    question_set: QuestionSet,
    rules: Mapping[str, Sequence[Change]],
    hits: dict[str, dict[str, list[tuple[bool, bool]]]],
    *,
    by_meaning: bool,
) -> None:
    async with product_with(question_set, by_meaning=by_meaning) as product:
        rows = await product.registry.read(lambda tx: tx.execute(select(channel.c.number, channel.c.name)).all())
        sessions = {number: product.sessions[name] for number, name in rows}
        for name, changes in rules.items():
            with without(changes):
                for question in (one for one in question_set.questions if one.is_answerable and one.sessions):
                    for also in ([], list(question.also)) if question.also else ([],):
                        first = [sessions[one] for one in await _first_channels(product, question, also)]
                        right = set(question.sessions)
                        of = f"{question_set.name}, also" if also else question_set.name
                        hit = bool(right & set(first[:1])), bool(right & set(first[:5]))
                        hits[name].setdefault(of, []).append(hit)


async def _first_channels(product: Product, question: Question, also: list[str]) -> list[int]:
    meant = await product.meaning.embed_query(lookup.subject_of(question.text), also) if product.meaning else None
    run = Run(product.registry, Recorder("extract", "benchmark", None, None), query_vector=meant)

    def work(tx: ReadTransaction) -> list[int]:
        read, scope = lookup.parse_in_scope(tx, question.text, None, Scope(roles=SPOKEN))
        return [one.number for one in lookup.find(tx, run, read, scope, also).channels[:5]]

    return await product.registry.read(work)


def _mean(numbers: Iterable[float]) -> float:
    listed = list(numbers)
    return sum(listed) / max(len(listed), 1)
