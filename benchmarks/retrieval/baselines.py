"""Baselines for the same questions: SQLite's FTS5, and BM25."""

from __future__ import annotations

import math
import re
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from snowballstemmer import stemmer  # type: ignore[import-untyped]

from benchmarks.retrieval.asking import CHARACTERS_A_TOKEN, FIRST, Outcome, Way
from benchmarks.retrieval.question_sets import Question, QuestionSet

SHOWN = 20  # messages in an answer, as in one of `extract`
STOP_WORDS = """
a about after again all also an and any are as at be because been before but by can could did do does doing
for from had has have he her his how i if in into is it its just me my no not of on or our out she should so
some than that the their them then there these they this to up us was we were what when where which who why
will with would you your
"""


@dataclass(frozen=True)
class Baseline:
    """An FTS5 tokenizer, and how the words of a question are joined to a query."""

    name: str
    tokenizer: str
    joined: str
    leaves_out: frozenset[str] = frozenset()

    @property
    def ways(self) -> tuple[Way, Way]:
        """Return the ways to ask it: in a channel, and in all channels."""
        return Way(f"{self.name}, of its channel", "", in_channel=True), Way(self.name, "")

    def query(self, text: str) -> str:
        """Return the question as an FTS5 query."""
        words = re.findall(r"\w+", text.lower())
        kept = [word for word in words if word not in self.leaves_out] or words
        return self.joined.join(f'"{word}"' for word in kept)


PORTER = Baseline("FTS5 porter, stop words", "porter unicode61", " OR ", frozenset(STOP_WORDS.split()))
BASELINES = (Baseline("FTS5 as typed", "unicode61", " "), Baseline("FTS5 OR", "unicode61", " OR "), PORTER)
STEMMER = stemmer("english")


BASELINE_WAYS = frozenset(way.name for one in BASELINES for way in one.ways)


def baseline_outcomes(question_set: QuestionSet) -> Iterator[Outcome]:
    """Ask every baseline every question, in its channel and in all channels."""
    for baseline in BASELINES:
        index = _index(question_set, baseline.tokenizer)
        for way in baseline.ways:
            yield from (_outcome(index, baseline, way, one) for one in question_set.questions if way.takes(one))
        index.close()


def _index(question_set: QuestionSet, tokenizer: str) -> sqlite3.Connection:
    index = sqlite3.connect(":memory:")
    index.execute(
        f"CREATE VIRTUAL TABLE said USING fts5(text, session UNINDEXED, id UNINDEXED, tokenize='{tokenizer}')"
    )
    rows = [(said.text, session.id, said.id) for session in question_set.sessions for said in session.messages]
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


class Fts5:
    """Rank texts with FTS5: any of the words, stemmed, without stop words."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._index = sqlite3.connect(":memory:")
        self._index.execute(f"CREATE VIRTUAL TABLE said USING fts5(id UNINDEXED, text, tokenize='{PORTER.tokenizer}')")
        self._index.executemany("INSERT INTO said VALUES (?, ?)", texts.items())

    def ranked(self, query: str) -> list[str]:
        """Return the ids of the texts that hold a word of the query, best first."""
        found = "SELECT id FROM said WHERE said MATCH ? ORDER BY rank"
        return [row[0] for row in self._index.execute(found, (PORTER.query(query),))]


class Bm25:
    """Rank texts by BM25: English stems without stop words, character pairs of other scripts."""

    def __init__(self, texts: Mapping[str, str], k: float = 1.2, b: float = 0.4) -> None:
        documents = [_terms(text) for text in texts.values()]
        mean = sum(map(len, documents)) / len(documents)
        self._ids, self._k = list(texts), k
        self._norms = [k * (1 - b + b * len(terms) / mean) for terms in documents]
        self._postings: dict[str, dict[int, int]] = defaultdict(dict)
        for at, terms in enumerate(documents):
            for term, count in Counter(terms).items():
                self._postings[term][at] = count

    def ranked(self, query: str) -> list[str]:
        """Return the ids of the texts that hold a term of the query, best first."""
        scores: dict[int, float] = defaultdict(float)
        for term in dict.fromkeys(_terms(query)):
            holding = self._postings.get(term, {})
            rarity = math.log(1 + (len(self._ids) - len(holding) + 0.5) / (len(holding) + 0.5))
            for at, count in holding.items():
                scores[at] += rarity * count * (self._k + 1) / (count + self._norms[at])
        return [self._ids[at] for at in sorted(scores, key=lambda at: (-scores[at], at))]


def _terms(text: str) -> list[str]:
    words = [word for word in re.findall(r"[a-z0-9]+|[^\W_a-z0-9]+", text.lower()) if word not in PORTER.leaves_out]
    pairs = ([word[at : at + 2] for at in range(max(len(word) - 1, 1))] for word in words if not word.isascii())
    return [*(STEMMER.stemWord(word) for word in words if word.isascii()), *chain.from_iterable(pairs)]
