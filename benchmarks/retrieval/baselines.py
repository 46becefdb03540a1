"""SQLite's FTS5 on the same questions: what a search without any thought of ours would find."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.retrieval.asking import CHARACTERS_A_TOKEN, FIRST, Outcome, Way
from benchmarks.retrieval.question_sets import Question, QuestionSet

SHOWN = 20
"""An answer holds so many messages, as one of `extract` does."""
STOP_WORDS = """
a about after again all also an and any are as at be because been before but by can could did do does doing
for from had has have he her his how i if in into is it its just me my no not of on or our out she should so
some than that the their them then there these they this to up us was we were what when where which who why
will with would you your
"""


@dataclass(frozen=True)
class Baseline:
    """A tokenizer, and how the words of a question are put together."""

    name: str
    tokenizer: str
    joined: str
    leaves_out: str = ""

    @property
    def ways(self) -> tuple[Way, Way]:
        """Asked of a channel, and of all."""
        return Way(f"{self.name}, of its channel", "", in_channel=True), Way(self.name, "")

    def query(self, text: str) -> str:
        """The question in FTS5's language."""
        words = re.findall(r"\w+", text.lower())
        kept = [word for word in words if word not in self.leaves_out.split()] or words
        return self.joined.join(f'"{word}"' for word in kept)


BASELINES = (
    Baseline("FTS5 as typed", "unicode61", " "),
    Baseline("FTS5 OR", "unicode61", " OR "),
    Baseline("FTS5 porter, stop words", "porter unicode61", " OR ", STOP_WORDS),
)


BASELINE_WAYS = frozenset(way.name for one in BASELINES for way in one.ways)


def baseline_outcomes(asked: QuestionSet) -> Iterator[Outcome]:
    """Every question by every baseline, of its channel and without one."""
    for baseline in BASELINES:
        index = _index(asked, baseline.tokenizer)
        for way in baseline.ways:
            yield from (_outcome(index, baseline, way, one) for one in asked.questions if way.takes(one))
        index.close()


def _index(asked: QuestionSet, tokenizer: str) -> sqlite3.Connection:
    index = sqlite3.connect(":memory:")
    index.execute(
        f"CREATE VIRTUAL TABLE said USING fts5(text, session UNINDEXED, id UNINDEXED, tokenize='{tokenizer}')"
    )
    rows = [(said.text, session.id, said.id) for session in asked.sessions for said in session.messages]
    index.executemany("INSERT INTO said VALUES (?, ?, ?)", rows)
    return index


def _outcome(index: sqlite3.Connection, baseline: Baseline, way: Way, question: Question) -> Outcome:
    channel = question.sessions[0] if way.in_channel else None
    started = time.process_time()
    rows = index.execute(
        "SELECT id, session, text FROM said WHERE said MATCH ? AND (? IS NULL OR session = ?) ORDER BY rank",
        (baseline.query(question.text), channel, channel),
    ).fetchall()
    cpu_ms = 1000 * (time.process_time() - started)
    messages = [message for message, _, _ in rows[:SHOWN]]
    lengths = [len(text) for _, _, text in rows[:SHOWN]]
    hits = [at for at, message in enumerate(messages) if message in question.evidence]
    return Outcome(
        question,
        way.name,
        way.in_channel,
        bool(rows),
        None,
        list(dict.fromkeys(session for _, session, _ in rows)),
        messages[:FIRST],
        messages,
        sum(lengths) // CHARACTERS_A_TOKEN,
        sum(lengths[: hits[0] + 1]) // CHARACTERS_A_TOKEN if hits else None,
        cpu_ms,
        _within(index, question, channel),
    )


def _within(index: sqlite3.Connection, question: Question, channel: str | None) -> frozenset[str]:
    if channel is None:
        return question.evidence
    there = {row[0] for row in index.execute("SELECT id FROM said WHERE session = ?", (channel,))}
    return question.evidence & there
