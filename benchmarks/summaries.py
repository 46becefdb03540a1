"""How much of a summary written by hand ours holds: python -m benchmarks.summaries [--show]

Conversations of the set three_lives; their summaries were written by hand as clients write them when they make room,
before ours were looked at. What was silly in ours of the first ten was mended; the others were not read. Each of ours
is at most as long as the hand's, as are the two it is compared with: the conversation's beginning, and its sentences
that hold most of its words.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.figures import table
from benchmarks.retrieval.question_sets import own_sets
from orchestrator.answer.size import tokens_in, within
from orchestrator.answer.summary import sentences_in, summary_of

SET = "three_lives"
REFERENCES = Path(__file__).with_name("summary_references.json")
_WORD = re.compile(r"[가-힣]+|[a-z0-9_]+")

Talk = Sequence[Mapping[str, Any]]
Writer = Callable[[Talk, int], str]


def units(text: str) -> list[str]:
    """What is counted: English words, and of a Korean one each two syllables in a row, for particles change its end."""
    words = _WORD.findall(text.lower())
    pairs = ([word[at : at + 2] for at in range(max(1, len(word) - 1))] if word >= "가" else [word] for word in words)
    return [unit for of_word in pairs for unit in of_word]


def rouge_1(text: str, reference: str) -> tuple[float, float]:
    """Recall and precision of the units."""
    ours, theirs = Counter(units(text)), Counter(units(reference))
    common = (ours & theirs).total()
    return common / theirs.total(), common / max(ours.total(), 1)


def rouge_l(text: str, reference: str) -> float:
    """The longest common subsequence's share of the reference."""
    ours, theirs = units(text), units(reference)
    row = [0] * (len(theirs) + 1)
    for unit in ours:
        before = 0
        for at, other in enumerate(theirs, 1):
            before, row[at] = row[at], before + 1 if unit == other else max(row[at], row[at - 1])
    return row[-1] / len(theirs)


def lead(talk: Talk, most: int) -> str:
    """The beginning."""
    return within("\n".join(one["text"] for one in talk), most)


def frequent(talk: Talk, most: int) -> str:
    """The sentences whose words are said most often, in the order of the talk."""
    said = [sentence for one in talk for sentence in sentences_in(one["text"])]
    often = Counter(unit for sentence in said for unit in units(sentence))
    taken: list[str] = []
    for sentence in sorted(said, key=lambda one: -mean(often[unit] for unit in units(one) or [""])):
        if tokens_in("\n".join([*taken, sentence])) <= most:
            taken.append(sentence)
    return "\n".join(sentence for sentence in said if sentence in taken)


HEADS = ("ROUGE-1 recall", "precision", "ROUGE-L recall")
WRITERS: Mapping[str, Writer] = {"ours": summary_of, "beginning": lead, "frequent words": frequent}


def main() -> None:
    """Measure and print; with --show the summaries, too, to be read."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--show", action="store_true", help="print both summaries of each conversation")
    shows = options.parse_args().show
    groups: dict[str, dict[str, str]] = json.loads(REFERENCES.read_text(encoding="utf-8"))
    [asked] = [one for one in own_sets() if one.name == SET]
    talks = {one.id: [{"role": said.role, "text": said.text} for said in one.messages] for one in asked.sessions}
    for group, references in groups.items():
        rows = []
        for name, writer in WRITERS.items():
            texts = {one: writer(talks[one], tokens_in(references[one])) for one in references}
            if shows and name == "ours":
                print(*(f"{one}, by hand:\n{references[one]}\n\nours:\n{text}\n" for one, text in texts.items()))
            rows.append(
                (name, *map(_figure, zip(*(_measured(texts[one], references[one]) for one in texts), strict=True)))
            )
        print(table((f"{len(references)} conversations, {group}", *HEADS), rows), end="\n\n")


def _measured(text: str, reference: str) -> tuple[float, float, float]:
    return *rouge_1(text, reference), rouge_l(text, reference)


def _figure(values: Sequence[float]) -> str:
    return f"{mean(values):.2f}"


if __name__ == "__main__":
    main()
