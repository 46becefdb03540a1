"""Measure the note that a new chat gets: python -m benchmarks.start_note

For each question whose conversation belongs to a folder, a new chat in that folder gets its note, at the set's time.
The tables show the note's tokens, how many of them are about other conversations, and how often the note, or a plain
list of the latest titles, names the conversation that answers the question.
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
class Note:
    """The note for one question, and the plain lists that it is compared with. The target answers the question.

    `named` and `latest` are sessions: those in the note, and those of the folder, latest first. `target_tokens` is the
    part of `tokens` about the target. `has_state`: the note has the target's state. `list_tokens` belong to `LISTS`.
    """

    question: Question
    has_state: bool
    tokens: int
    target_tokens: int
    named: Sequence[str]
    latest: Sequence[str]
    list_tokens: Sequence[int]

    def names_target(self) -> bool:
        """Return True if the note names the target."""
        return self.question.sessions[0] in self.named

    def lists_target(self, most: int) -> bool:
        """Return True if the target is among the latest `most` conversations."""
        return self.question.sessions[0] in self.latest[:most]


async def notes_for(question_set: QuestionSet) -> list[Note]:
    """Return the notes for a set's questions, except questions about conversations without a folder."""
    folders = {session.id: session.project for session in question_set.sessions}
    async with product_with(question_set) as product:
        orchestrator = Orchestrator(product.registry)
        return [
            await _note_for(product, orchestrator, one, folder)
            for one in question_set.questions
            if one.is_answerable and one.sessions and (folder := folders[one.sessions[0]])
        ]


async def _note_for(product: Product, orchestrator: Orchestrator, question: Question, folder: str) -> Note:
    outcome = await orchestrator.run({"operation": "note", "query": {"folder": folder}})
    sessions = await _list_sessions(orchestrator, folder)
    name_of = {one["session_id"]: product.sessions[one["channel"]] for one in sessions}
    named = [name_of[one] for one in outcome["told_of"]]
    lines = [line for line in outcome["note"].splitlines() if line.startswith("- ")]
    about = dict(zip(named, map(tokens_in, lines), strict=True))
    titles = [_title(one) for one in sessions]
    return Note(
        question=question,
        has_state=question.sessions[0] in named[:SESSIONS_WITH_STATE],
        tokens=outcome["tokens"],
        target_tokens=about.get(question.sessions[0], 0),
        named=named,
        latest=[name_of[one["session_id"]] for one in sessions],
        list_tokens=[tokens_in("\n".join(titles[:most])) for most in LISTS],
    )


def _title(one: Mapping[str, Any]) -> str:
    title = one["title"] or one["first_message_preview"][:40]
    return f'- "{title}" ({one["source"]}, {one["updated_at"][:10]})'


async def _list_sessions(orchestrator: Orchestrator, folder: str) -> list[dict[str, Any]]:
    outcome = await orchestrator.run({"operation": "list", "query": {"project": folder, "limit": 100}})
    sessions: list[dict[str, Any]] = outcome["sessions"]
    return sorted(sessions, key=lambda one: str(one["updated_at"]), reverse=True)


def tables(notes: Sequence[Note]) -> str:
    """Return the tables."""
    tokens = [one.tokens for one in notes]
    size = [
        ("tokens, median / p95", f"{median(tokens):.0f} / {quantiles(tokens, n=20)[-1]:.0f}"),
        (f"at most {MOST_TOKENS}", _share(one <= MOST_TOKENS for one in tokens)),
        ("tokens about other conversations, mean", f"{mean(one.tokens - one.target_tokens for one in notes):.0f}"),
        *(
            (f"tokens of a list of {most}, median", f"{median(one.list_tokens[at] for one in notes):.0f}")
            for at, most in enumerate(LISTS)
        ),
    ]
    continued = [one for one in notes if one.question.kind == "continue"]
    groups = [("to continue", continued), ("about a time", [one for one in notes if one.question.kind == "time"])]
    named = [
        (
            f"{what} ({len(some)})",
            _share(one.names_target() for one in some),
            _share(one.has_state for one in some),
            *(_share(one.lists_target(most) for one in some) for most in LISTS),
        )
        for what, some in (*groups, ("all", notes))
    ]
    heads = ("conversation named, questions", "note", "with its state", *(f"list of {most}" for most in LISTS))
    return table(("note", ""), size) + "\n\n" + table(heads, named)


def _share(hits: Iterable[bool]) -> str:
    return f"{mean(hits):.2f}"


def main() -> None:
    notes: list[Note] = []
    for question_set in own_sets():
        found = asyncio.run(notes_for(question_set))
        notes += found
        total = len(question_set.questions)
        print(f"{question_set.name}: {len(found)} of {total} questions are about conversations of a folder")
    print("", tables(notes), sep="\n")


if __name__ == "__main__":
    main()
