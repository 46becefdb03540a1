"""Measure search quality: python -m benchmarks.retrieval [--set NAME] [--misses] …

All questions of the sets are asked through the tools, and through SQLite's FTS5 for comparison. `answered` is the share
of answers without low confidence; for questions that nothing answers, these are false answers. A token is four
characters. LoCoMo, LongMemEval and BEAM are read from a folder (--published) under their authors' file names.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.retrieval import measures
from benchmarks.retrieval.ablation import ablation
from benchmarks.retrieval.asking import Outcome, ask_all
from benchmarks.retrieval.baselines import baseline_outcomes
from benchmarks.retrieval.product import product_with
from benchmarks.retrieval.published import published_sets
from benchmarks.retrieval.question_sets import QuestionSet, as_yardstick, own_sets, sets_in, with_foreign


async def outcomes_of(question_set: QuestionSet, *, by_meaning: bool = False) -> list[Outcome]:
    """Ask every question of a set, through the product and the baselines."""
    async with product_with(question_set, by_meaning=by_meaning) as product:
        found = [one async for one in ask_all(product, question_set.questions)]
    return [*found, *baseline_outcomes(question_set)]


def chosen_sets(options: argparse.Namespace) -> Iterator[QuestionSet]:
    """Yield the chosen sets with the chosen kinds of questions."""
    own = own_sets()
    sets: list[QuestionSet] = [with_foreign(one, own) for one in own]
    sets += [one for file in options.file for one in sets_in(file)]
    published = published_sets(options.published) if options.published else iter(())
    for one in [*sets, *islice(published, options.most)]:
        if not options.set or one.name in options.set:
            questions = [q for q in one.questions if not options.kind or q.kind in options.kind]
            yield replace(one, questions=questions[:: options.one_in])


def measure(sets: Collection[QuestionSet], options: argparse.Namespace) -> dict[str, Any]:
    """Ask all questions and print a table for each name of a set; return the figures as JSON."""
    outcomes: dict[str, list[Outcome]] = {}
    for question_set in sets:
        outcomes.setdefault(question_set.name, []).extend(
            asyncio.run(outcomes_of(question_set, by_meaning=options.meaning))
        )
    for name, found in outcomes.items():
        print(f"== {name}", measures.tables(found), sep="\n\n", end="\n\n", flush=True)
        if options.misses:
            print(measures.misses(found), end="\n\n")
    return {name: measures.as_json(found) for name, found in outcomes.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description=__doc__)
    parser.add_argument("--set", action="append", metavar="NAME", help="one set; may be repeated")
    parser.add_argument("--kind", action="append", help="one kind of question; may be repeated")
    parser.add_argument("--misses", action="store_true", help="print each missed question with its answer")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    parser.add_argument("--published", type=Path, metavar="DIR", help="folder of the public benchmarks' files")
    parser.add_argument("--most", type=int, default=1_000_000, help="maximum number of public sets")
    parser.add_argument("--one-in", type=int, default=1, metavar="N", help="ask only every Nth question of a set")
    parser.add_argument(
        "--file", type=Path, action="append", default=[], help="a further set, in the format of `sets/`"
    )
    parser.add_argument("--ablate", action="store_true", help="only print what each ranking rule gains")
    parser.add_argument(
        "--yardstick", type=Path, metavar="DIR", help="only write the sets there, in the format of words45.py"
    )
    parser.add_argument("--meaning", action="store_true", help="also search by meaning, with the configured model")
    options = parser.parse_args()
    sets = list(chosen_sets(options))
    if options.ablate:
        print(ablation(sets, by_meaning=options.meaning))
        return
    if options.yardstick:
        for number, one in enumerate(sets):
            file = options.yardstick / f"{number}-{one.name}.json"
            file.write_text(json.dumps(as_yardstick(one), ensure_ascii=False), encoding="utf-8")
        return
    found = measure(sets, options)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
