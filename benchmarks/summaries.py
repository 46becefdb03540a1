"""Compare summaries with reference summaries: python -m benchmarks.summaries [--published DIR] [--show N]

The references for the set three_lives were written by hand, like the summaries of a compacting client, before ours were
read. Ours were tuned on the first ten conversations only. Ours and two baselines (the beginning, and the sentences with
the most frequent words) are at most as long as the reference. --published adds LoCoMo's sessions with its authors'
summaries.
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

Messages = Sequence[Mapping[str, Any]]
Writer = Callable[[Messages, int], str]


def units(text: str) -> list[str]:
    """Return the units to compare: English words, and syllable pairs of Korean words, whose particles vary."""
    words = _WORD.findall(text.lower())
    pairs = ([word[at : at + 2] for at in range(max(1, len(word) - 1))] if word >= "가" else [word] for word in words)
    return [unit for of_word in pairs for unit in of_word]


def rouge_1(text: str, reference: str) -> tuple[float, float]:
    """Return recall and precision of the units."""
    ours, theirs = Counter(units(text)), Counter(units(reference))
    common = (ours & theirs).total()
    return common / theirs.total(), common / max(ours.total(), 1)


def rouge_l(text: str, reference: str) -> float:
    """Return the length of the longest common subsequence, as a share of the reference."""
    ours, theirs = units(text), units(reference)
    row = [0] * (len(theirs) + 1)
    for unit in ours:
        before = 0
        for at, other in enumerate(theirs, 1):
            before, row[at] = row[at], before + 1 if unit == other else max(row[at], row[at - 1])
    return row[-1] / len(theirs)


def beginning(messages: Messages, most: int) -> str:
    """Return the beginning of a conversation, at most `most` tokens."""
    return truncate("\n".join(one["text"] for one in messages), most)


def frequent_sentences(messages: Messages, most: int) -> str:
    """Return the sentences with the most frequent words, in their order, at most `most` tokens."""
    sentences = [sentence for one in messages for sentence in sentences_in(one["text"])]
    often = Counter(unit for sentence in sentences for unit in units(sentence))
    taken: list[str] = []
    for sentence in sorted(sentences, key=lambda one: -mean(often[unit] for unit in units(one) or [""])):
        if tokens_in("\n".join([*taken, sentence])) <= most:
            taken.append(sentence)
    return "\n".join(sentence for sentence in sentences if sentence in taken)


HEADS = ("ROUGE-1 recall", "precision", "ROUGE-L recall")
WRITERS: Mapping[str, Writer] = {"ours": summary_of, "beginning": beginning, "frequent words": frequent_sentences}


@dataclass(frozen=True)
class Group:
    """Conversations, and a reference summary of each, by session id."""

    name: str
    conversations: Mapping[str, Messages]
    references: Mapping[str, str]


def handwritten_groups() -> Iterator[Group]:
    """Yield the set three_lives with each group of references."""
    [question_set] = [one for one in own_sets() if one.name == SET]
    conversations = _conversations(question_set.sessions)
    groups: dict[str, dict[str, str]] = json.loads(REFERENCES.read_text(encoding="utf-8"))
    yield from (Group(name, conversations, references) for name, references in groups.items())


def locomo_groups(folder: Path) -> Iterator[Group]:
    """Yield LoCoMo's sessions with their authors' summaries."""
    for file in sorted(folder.glob("**/locomo*.json")):
        conversations = _conversations(next(locomo(file)).sessions)
        samples = enumerate(json.loads(file.read_text(encoding="utf-8")))
        summaries = {
            f"{number}_{key.removesuffix('_summary')}": text
            for number, sample in samples
            for key, text in sample["session_summary"].items()
        }
        yield Group(file.name, conversations, {one: text for one, text in summaries.items() if one in conversations})


def _conversations(sessions: Sequence[Session]) -> dict[str, Messages]:
    return {one.id: [{"role": said.role, "text": said.text} for said in one.messages] for one in sessions}


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.summaries", description=__doc__)
    options.add_argument("--published", type=Path, metavar="DIR", help="folder of LoCoMo's file")
    options.add_argument(
        "--show", type=int, default=0, metavar="N", help="print both summaries of N conversations in each group"
    )
    given = options.parse_args()
    for group in [*handwritten_groups(), *(locomo_groups(given.published) if given.published else ())]:
        made = {name: _summaries(group, writer) for name, writer in WRITERS.items()}
        for one in list(group.references)[: given.show]:
            print(f"{one}, reference:\n{group.references[one]}\n\nours:\n{made['ours'][one]}\n")
        rows = [(name, *_figures(texts, group.references)) for name, texts in made.items()]
        print(table((f"{len(group.references)} conversations, {group.name}", *HEADS), rows), end="\n\n")


def _summaries(group: Group, writer: Writer) -> dict[str, str]:
    return {one: writer(group.conversations[one], tokens_in(text)) for one, text in group.references.items()}


def _figures(texts: Mapping[str, str], references: Mapping[str, str]) -> Iterator[str]:
    measured = zip(*(_scores(texts[one], references[one]) for one in texts), strict=True)
    yield from (f"{mean(values):.2f}" for values in measured)


def _scores(text: str, reference: str) -> tuple[float, float, float]:
    return *rouge_1(text, reference), rouge_l(text, reference)


if __name__ == "__main__":
    main()
