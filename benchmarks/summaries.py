"""How much of a summary by others ours holds: python -m benchmarks.summaries [--published DIR] [--show N]

Conversations of the set three_lives; their summaries were written by hand as clients write them when they make room,
before ours were looked at. What was silly in ours of the first ten was mended; the others were not read. Each of ours
is at most as long as the hand's, as are the two it is compared with: the conversation's beginning, and its sentences
that hold most of its words. With --published also LoCoMo's sessions, beside the summaries that its authors published.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.retrieval.published import locomo
from benchmarks.retrieval.question_sets import Session, own_sets
from benchmarks.setup.figures import table
from orchestrator.answer.delivery import tokens_in, truncate
from orchestrator.answer.digests.summary import sentences_in, summary_of

SET = "three_lives"
REFERENCES = Path(__file__).with_name("summary_references.json")
_WORD = re.compile(r"[가-힣]+|[a-z0-9_]+")

Transfer = Sequence[Mapping[str, Any]]
Writer = Callable[[Transfer, int], str]


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


def lead(talk: Transfer, most: int) -> str:
    """The beginning."""
    return truncate("\n".join(one["text"] for one in talk), most)


def frequent(talk: Transfer, most: int) -> str:
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


@dataclass(frozen=True)
class Group:
    """Conversations, and what others wrote of each."""

    name: str
    talks: Mapping[str, Transfer]
    references: Mapping[str, str]


def by_hand() -> Iterator[Group]:
    """Of the set three_lives."""
    [asked] = [one for one in own_sets() if one.name == SET]
    talks = _talks(asked.sessions)
    groups: dict[str, dict[str, str]] = json.loads(REFERENCES.read_text(encoding="utf-8"))
    yield from (Group(name, talks, references) for name, references in groups.items())


def published(folder: Path) -> Iterator[Group]:
    """LoCoMo's sessions: two people talk, and a summary of each session stands beside it."""
    for file in sorted(folder.glob("**/locomo*.json")):
        talks = _talks(next(locomo(file)).sessions)
        samples = enumerate(json.loads(file.read_text(encoding="utf-8")))
        told = {
            f"{number}_{key.removesuffix('_summary')}": text
            for number, sample in samples
            for key, text in sample["session_summary"].items()
        }
        yield Group(file.name, talks, {one: text for one, text in told.items() if one in talks})


def _talks(sessions: Sequence[Session]) -> dict[str, Transfer]:
    return {one.id: [{"role": said.role, "text": said.text} for said in one.messages] for one in sessions}


def main() -> None:
    """Measure and print; with --show the summaries, too, to be read."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.summaries", description=__doc__)
    options.add_argument("--published", type=Path, metavar="DIR", help="where LoCoMo's file lies")
    options.add_argument("--show", type=int, default=0, metavar="N", help="print both summaries of N in each group")
    given = options.parse_args()
    for group in [*by_hand(), *(published(given.published) if given.published else ())]:
        made = {name: _made(group, writer) for name, writer in WRITERS.items()}
        for one in list(group.references)[: given.show]:
            print(f"{one}, reference:\n{group.references[one]}\n\nours:\n{made['ours'][one]}\n")
        rows = [(name, *_figures(texts, group.references)) for name, texts in made.items()]
        print(table((f"{len(group.references)} conversations, {group.name}", *HEADS), rows), end="\n\n")


def _made(group: Group, writer: Writer) -> dict[str, str]:
    return {one: writer(group.talks[one], tokens_in(text)) for one, text in group.references.items()}


def _figures(texts: Mapping[str, str], references: Mapping[str, str]) -> Iterator[str]:
    measured = zip(*(_measured(texts[one], references[one]) for one in texts), strict=True)
    yield from (f"{mean(values):.2f}" for values in measured)


def _measured(text: str, reference: str) -> tuple[float, float, float]:
    return *rouge_1(text, reference), rouge_l(text, reference)


if __name__ == "__main__":
    main()
