"""How well the right session and message are found: python -m benchmarks.retrieval [--set NAME] [--misses] …

Everything is asked through the tools. `answered` is the share that got an answer which does not call itself a guess:
for questions that nothing answers these are false answers. A token is four characters. LoCoMo, LongMemEval and BEAM
are read from a folder (--published) under the names of files their authors gave them.
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


async def outcomes_of(asked: QuestionSet, *, by_meaning: bool = False) -> list[Outcome]:
    """Every question of a set, by the product and by the baselines."""
    async with product_with(asked, by_meaning=by_meaning) as product:
        found = [one async for one in ask_all(product, asked.questions)]
    return [*found, *baseline_outcomes(asked)]


def chosen_sets(options: argparse.Namespace) -> Iterator[QuestionSet]:
    """The sets to be measured, with the kinds of questions that are wanted."""
    own = own_sets()
    sets: list[QuestionSet] = [with_foreign(one, own) for one in own]
    sets += [one for file in options.file for one in sets_in(file)]
    published = published_sets(options.published) if options.published else iter(())
    for one in [*sets, *islice(published, options.most)]:
        if not options.set or one.name in options.set:
            asked = [q for q in one.questions if not options.kind or q.kind in options.kind]
            yield replace(one, questions=asked[:: options.one_in])


def measure(sets: Collection[QuestionSet], options: argparse.Namespace) -> dict[str, Any]:
    """Ask and print; sets of one name are one table. The figures for machines."""
    outcomes: dict[str, list[Outcome]] = {}
    for asked in sets:
        outcomes.setdefault(asked.name, []).extend(asyncio.run(outcomes_of(asked, by_meaning=options.meaning)))
    for name, found in outcomes.items():
        print(f"== {name}", measures.shown(found), sep="\n\n", end="\n\n", flush=True)
        if options.misses:
            print(measures.misses(found), end="\n\n")
    return {name: measures.as_json(found) for name, found in outcomes.items()}


def main() -> None:
    """Measure what is asked for, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description=__doc__)
    parser.add_argument("--set", action="append", metavar="NAME", help="one set; may be repeated")
    parser.add_argument("--kind", action="append", help="one kind of question; may be repeated")
    parser.add_argument("--misses", action="store_true", help="print each missed question, and what came instead")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--published", type=Path, metavar="DIR", help="where files of public benchmarks lie")
    parser.add_argument("--most", type=int, default=1_000_000, help="so many sets of them at most")
    parser.add_argument("--one-in", type=int, default=1, metavar="N", help="of the questions of a set one in so many")
    parser.add_argument("--file", type=Path, action="append", default=[], help="a further set, in the form of ours")
    parser.add_argument("--ablate", action="store_true", help="print what each rule of finding gains, and no more")
    parser.add_argument("--yardstick", type=Path, metavar="DIR", help="write the sets there as words45.py reads them")
    parser.add_argument("--meaning", action="store_true", help="also by meaning, with the configured model")
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
