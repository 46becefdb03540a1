"""What the note of a new chat is worth: python -m benchmarks.start_note

Every question of the repository's sets whose conversation belongs to a folder is asked in a new chat of that folder,
at the set's hour. Told are the note's tokens; how often it names the conversation that the question is about, and how
often a list of the latest titles does; and how much of it is about other conversations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median, quantiles
from typing import Any

from benchmarks.retrieval.product import Product, product_with
from benchmarks.retrieval.question_sets import Question, QuestionSet, own_sets
from benchmarks.setup.figures import table
from orchestrator.answer.delivery import tokens_in
from orchestrator.answer.digests.start_note import SESSIONS_WITH_STATE
from orchestrator.service import Orchestrator

LISTS = (1, 3, 5, 8)
MOST_TOKENS = 300


@dataclass(frozen=True)
class Told:
    """What one question's chat was told. `latest`: the folder's conversations, the latest first.

    `about_it`: so many of its tokens are about the conversation that the question is about; `stands`: it is told where
    that one stands; `list_tokens`: of the lists of `LISTS`.
    """

    question: Question
    stands: bool
    tokens: int
    about_it: int
    named: Sequence[str]
    latest: Sequence[str]
    list_tokens: Sequence[int]

    def names_it(self) -> bool:
        """Whether the note names the conversation that the question is about."""
        return self.question.sessions[0] in self.named

    def lists_it(self, most: int) -> bool:
        """Whether a list of so many titles would."""
        return self.question.sessions[0] in self.latest[:most]


async def told_in(asked: QuestionSet) -> list[Told]:
    """The notes of a set's questions; those about conversations of no folder get none."""
    folders = {session.id: session.project for session in asked.sessions}
    async with product_with(asked) as product:
        orchestrator = Orchestrator(product.registry)
        return [
            await _told(product, orchestrator, one, folder)
            for one in asked.questions
            if one.is_answerable and one.sessions and (folder := folders[one.sessions[0]])
        ]


async def _told(product: Product, orchestrator: Orchestrator, question: Question, folder: str) -> Told:
    outcome = await orchestrator.run({"operation": "note", "query": {"folder": folder}})
    sessions = await _listed(orchestrator, folder)
    name_of = {one["session_id"]: product.sessions[one["channel"]] for one in sessions}
    named = [name_of[one] for one in outcome["told_of"]]
    lines = [line for line in outcome["note"].splitlines() if line.startswith("- ")]
    about = dict(zip(named, map(tokens_in, lines), strict=True))
    titles = [_title(one) for one in sessions]
    return Told(
        question=question,
        stands=question.sessions[0] in named[:SESSIONS_WITH_STATE],
        tokens=outcome["tokens"],
        about_it=about.get(question.sessions[0], 0),
        named=named,
        latest=[name_of[one["session_id"]] for one in sessions],
        list_tokens=[tokens_in("\n".join(titles[:most])) for most in LISTS],
    )


def _title(one: Mapping[str, Any]) -> str:
    title = one["title"] or one["first_message_preview"][:40]
    return f'- "{title}" ({one["source"]}, {one["updated_at"][:10]})'


async def _listed(orchestrator: Orchestrator, folder: str) -> list[dict[str, Any]]:
    outcome = await orchestrator.run({"operation": "list", "query": {"project": folder, "limit": 100}})
    sessions: list[dict[str, Any]] = outcome["sessions"]
    return sorted(sessions, key=lambda one: str(one["updated_at"]), reverse=True)


def shown(told: Sequence[Told]) -> str:
    """The tables."""
    tokens = [one.tokens for one in told]
    size = [
        ("tokens, median / p95", f"{median(tokens):.0f} / {quantiles(tokens, n=20)[-1]:.0f}"),
        (f"at most {MOST_TOKENS}", _share(one <= MOST_TOKENS for one in tokens)),
        ("tokens about other conversations, mean", f"{mean(one.tokens - one.about_it for one in told):.0f}"),
        *(
            (f"tokens of a list of {most}, median", f"{median(one.list_tokens[at] for one in told):.0f}")
            for at, most in enumerate(LISTS)
        ),
    ]
    continued = [one for one in told if one.question.kind == "continue"]
    groups = [("to continue", continued), ("about a time", [one for one in told if one.question.kind == "time"])]
    named = [
        (
            f"{what} ({len(some)})",
            _share(one.names_it() for one in some),
            _share(one.stands for one in some),
            *(_share(one.lists_it(most) for one in some) for most in LISTS),
        )
        for what, some in (*groups, ("all", told))
    ]
    heads = ("conversation named, questions", "note", "and where it stands", *(f"list of {most}" for most in LISTS))
    return table(("of the note", ""), size) + "\n\n" + table(heads, named)


def _share(hits: Iterable[bool]) -> str:
    return f"{mean(hits):.2f}"


def main() -> None:
    """Measure and print."""
    told: list[Told] = []
    for asked in own_sets():
        found = asyncio.run(told_in(asked))
        told += found
        print(f"{asked.name}: {len(found)} of {len(asked.questions)} questions are about conversations of a folder")
    print("", shown(told), sep="\n")


if __name__ == "__main__":
    main()
