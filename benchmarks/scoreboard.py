"""Compare with plain searches and other programs, and write docs/figures.md: python -m benchmarks.scoreboard

Everything is measured twice; the column ± is the largest distance of a run of the product from the mean.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, redirect_stdout
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate, islice, product
from pathlib import Path
from statistics import fmean

from benchmarks.costs import peers, windows
from benchmarks.retrieval.asking import CHARACTERS_A_TOKEN, WAYS, Way, ask_all
from benchmarks.retrieval.baselines import PORTER, Bm25, Fts5
from benchmarks.retrieval.changes import CaseAnswer, ask_file
from benchmarks.retrieval.product import Answer, product_with
from benchmarks.retrieval.published import published_sets
from benchmarks.retrieval.question_sets import QuestionSet, read_set, sets_in
from benchmarks.scale import filled, queries, timed
from benchmarks.setup import servers
from benchmarks.setup.corpus import texts
from benchmarks.setup.figures import Spread
from registry.search.retrieval import find_messages
from registry.search.scope import Scope
from registry.storage.database import ReadTransaction

RUNS = 2
STRANGERS = "benchmarks/retrieval/strangers"
QUESTIONS = ("lives6", "lives7", "teams5")
CHANGES = ("changes_e", "changes_f", "changes_g")
PAGE = servers.ROOT / "docs" / "figures.md"
PROGRAMS = ("ctxr", "FTS5", "BM25", "fast-resume", "agentsview")
BASELINES: dict[str, type[Fts5 | Bm25]] = {"FTS5": Fts5, "BM25": Bm25}
SHOWN_TOKENS = 400  # a baseline's answer holds its best messages up to this; the product's median answer has 380
MESSAGES = 100_000
MAX_RESULTS = 300  # messages that a search ranks at most, as in the product
WORDINGS = {"extract": "one wording", "extract, also": "with wordings"}
CHANGE_WORDINGS = {"one wording": "one wording", "also": "with wordings"}

NO_ANSWER = Answer({}, "", [], 0.0)

Figures = tuple[float, ...]
Ranks = Sequence[bool]
"""For each rank of an answer: True if that session is a right one."""


@dataclass(frozen=True)
class Row:
    """A table row: the figures of each measured program."""

    what: str
    figures: Mapping[str, Figures]
    command: str
    is_low_best: bool = False


def conversations(name: str, sets: Sequence[QuestionSet]) -> Iterator[Row]:
    """Yield rows: how often `extract` without a channel answers from the right conversation."""
    command = f"python -m benchmarks.retrieval --file {STRANGERS}/{name}.json --set {name} --meaning"
    for way, ranked in asyncio.run(_ranked(sets, [way for way in WAYS if way.name in WORDINGS])).items():
        figures = {program: (_hits(some, 1), _hits(some, 5)) for program, some in ranked.items()}
        yield Row(f"{name}, {WORDINGS[way]}: right conversation, first / of five", figures, command)


PUBLISHED = {
    "locomo_sessions": ("LoCoMo", "`locomo10.json` of snap-research/locomo"),
    "longmemeval_s": ("LongMemEval-S", "`longmemeval_s.json` of xiaowu0162/LongMemEval"),
}
"""For each public set: its name, and the file that must be in the folder."""


def published_sessions(name: str, sets: Sequence[QuestionSet]) -> Iterator[Row]:
    """Yield a row on how `search_sessions` ranks sessions; each session that holds evidence is right."""
    title, file = PUBLISHED[name]
    command = f"python -m benchmarks.retrieval --published DIR --set {name} --meaning"
    if not sets:
        yield Row(f"{title}: put {file} into DIR, give `--published DIR`", {}, command)
        return
    for ranked in asyncio.run(_ranked(sets, [way for way in WAYS if way.name == "search_sessions"])).values():
        figures = {name: (_hits(some, 1), _hits(some, 5), _mrr(some)) for name, some in ranked.items()}
        yield Row(f"{title} sessions: hit@1 / hit@5 / MRR", figures, command)


async def _ranked(sets: Sequence[QuestionSet], ways: Sequence[Way]) -> dict[str, dict[str, list[Ranks]]]:
    found: dict[str, dict[str, list[Ranks]]] = {way.name: {name: [] for name in ("ctxr", *BASELINES)} for way in ways}
    for one_set in sets:
        questions = [one for one in one_set.questions if one.is_answerable]
        engines = {name: baseline(_sessions(one_set)) for name, baseline in BASELINES.items()}
        for way, (name, engine), given in product(ways, engines.items(), questions):
            ranked = engine.ranked(" ".join([given.text, *(given.also if way.with_also else ())]))
            found[way.name][name].append([session in given.sessions for session in ranked])
        async with product_with(one_set, by_meaning=True) as asking:
            async for one in ask_all(asking, questions, ways):
                found[one.way]["ctxr"].append([session in one.question.sessions for session in one.sessions])
    return found


def _sessions(held: QuestionSet) -> dict[str, str]:
    return {
        one.id: "\n".join([one.title or "", one.project or "", *(said.text for said in one.messages)])
        for one in held.sessions
    }


def _hits(ranked: Sequence[Ranks], k: int) -> float:
    return fmean(any(ranks[:k]) for ranks in ranked)


def _mrr(ranked: Sequence[Ranks]) -> float:
    return fmean(1 / (1 + list(ranks).index(True)) if any(ranks) else 0.0 for ranks in ranked)


def changes(file: Path) -> Iterator[Row]:
    """Yield rows: how often the current statement is in the answer and comes first, and how often a past one does."""
    given = json.loads(file.read_text(encoding="utf-8"))
    ours = [one for one in asyncio.run(ask_file(given, by_meaning=True)) if one.case["kind"] != "control"]
    held = read_set({**given, "questions": []})
    answers = {"ctxr": ours, **{name: _ask_baseline(held, baseline, ours) for name, baseline in BASELINES.items()}}
    for way, wordings in CHANGE_WORDINGS.items():
        figures = {name: _change_figures([one for one in some if one.way == way]) for name, some in answers.items()}
        what = f"{given['name']}, {wordings}: what holds now, delivered / first; the past, when asked for"
        yield Row(what, figures, f"python -m benchmarks.retrieval.changes {STRANGERS}/{file.name} --meaning")


def _change_figures(answers: Sequence[CaseAnswer]) -> Figures:
    now, past = ([one for one in answers if (one.about == "past") == is_past] for is_past in (False, True))
    return (
        fmean(one.is_delivered for one in now),
        fmean(one.is_first for one in now),
        fmean(one.is_past for one in past),
    )


def _ask_baseline(held: QuestionSet, baseline: type[Fts5 | Bm25], ours: Sequence[CaseAnswer]) -> list[CaseAnswer]:
    """Ask a baseline the same questions."""
    texts = {said.id: said.text for one in held.sessions for said in one.messages}
    of_messages, of_sessions = baseline(texts), baseline(_sessions(held))
    found = []
    for one in ours:
        query = " ".join([one.case[f"ask_{one.about}"], *(one.case["also"] if one.way == "also" else ())])
        ranked = of_messages.ranked(query)
        ends = accumulate(len(texts[message]) / CHARACTERS_A_TOKEN for message in ranked)
        shown = [message for message, end in zip(ranked, ends, strict=True) if end <= SHOWN_TOKENS]
        session = next(iter(of_sessions.ranked(query)), "")
        found.append(replace(one, answer=NO_ANSWER, shown=shown, replaced=frozenset(), session=session))
    return found


def costs(folder: Path | None) -> Iterator[Row]:
    """Yield rows on the costs of the import, a search and a chat window."""
    found, command = peers.measure(folder), "python -m benchmarks --only peers --peers DIR"
    rows: dict[str, Mapping[str, Figures]] = {
        f"import of {peers.MESSAGES} messages: messages/s": {name: (one.rate,) for name, one in found.items()},
        "import: peak memory, MB": {name: (one.peak_mb,) for name, one in found.items()},
        "import of nothing new, command, ms": {name: (1000 * one.nothing_new,) for name, one in found.items()},
        "search, command, p50 / p95 ms": {name: (one.search.p50, one.search.p95) for name, one in found.items()},
    }
    for what, figures in rows.items():
        yield Row(what, figures, command, is_low_best=not what.endswith("/s"))
    searches = {"ctxr": _our_search(), "FTS5": _search_of_fts5()}
    yield Row(
        f"search among {MESSAGES} messages, by words, p50 / p95 ms",
        {name: (one.p50, one.p95) for name, one in searches.items()},
        f"python -m benchmarks.scale --messages {MESSAGES}",
        is_low_best=True,
    )
    for figure in windows.measure()[:3]:
        what = f"chat window: {figure.what}, {figure.unit}"
        yield Row(what, {"ctxr": (figure.value,)}, "python -m benchmarks --only windows", is_low_best=True)


def _typical_queries() -> list[tuple[str, Scope]]:
    return [(words, Scope()) for words in queries("typical")]


def _our_search() -> Spread:
    with (
        tempfile.TemporaryDirectory() as folder,
        redirect_stdout(sys.stderr),
        filled(f"sqlite:///{Path(folder) / 'r.db'}", MESSAGES) as database,
        database.engine.begin() as connection,
    ):
        tx = ReadTransaction(connection)
        return timed(lambda words, scope: find_messages(tx, words, scope), _typical_queries())


def _search_of_fts5() -> Spread:
    with tempfile.TemporaryDirectory() as folder, closing(sqlite3.connect(Path(folder) / "fts5.db")) as index:
        index.execute(f"CREATE VIRTUAL TABLE said USING fts5(text, tokenize='{PORTER.tokenizer}')")
        index.executemany("INSERT INTO said VALUES (?)", ((one.text,) for one in islice(texts(MESSAGES), MESSAGES)))
        index.commit()
        query = "SELECT rowid FROM said WHERE said MATCH ? ORDER BY rank LIMIT ?"
        limit = MAX_RESULTS
        return timed(lambda words, _: index.execute(query, (PORTER.query(words), limit)).fetchall(), _typical_queries())


def measure(published: Path | None, folder: Path | None) -> list[Row]:
    """Measure every row once."""
    strangers = servers.ROOT / STRANGERS
    rows = [row for name in QUESTIONS for row in conversations(name, sets_in(strangers / f"{name}.json"))]
    rows += [row for name in CHANGES for row in changes(strangers / f"{name}.json")]
    sets = list(published_sets(published)) if published else []
    for name in PUBLISHED:
        rows += published_sessions(name, [one for one in sets if one.name.startswith(name)])
    return [*rows, *costs(folder)]


def markdown(runs: Sequence[Sequence[Row]]) -> str:
    """Return the table in Markdown: means of the runs, the best of each figure in bold."""
    heads = ("", *PROGRAMS, "±", "command")
    lines = [heads, tuple("---" for _ in heads), *(_cells(same) for same in zip(*runs, strict=True))]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(runs: Sequence[Row]) -> list[str]:
    row = runs[0]
    means = {name: tuple(map(fmean, zip(*(one.figures[name] for one in runs), strict=True))) for name in row.figures}
    best = [(min if row.is_low_best else max)(all_of) for all_of in zip(*means.values(), strict=True)]
    is_compared = len(means) > 1
    shown = {
        name: " / ".join(_shown(one, is_best=is_compared and one == top) for one, top in zip(some, best, strict=True))
        for name, some in means.items()
    }
    ours = [zip(one.figures.get("ctxr", ()), means.get("ctxr", ()), strict=True) for one in runs]
    off = max((abs(figure - mean) for pairs in ours for figure, mean in pairs), default=0.0)
    return [row.what, *(shown.get(name, "–") for name in PROGRAMS), _number(off), f"`{row.command}`"]


def _shown(figure: float, *, is_best: bool) -> str:
    return f"**{_number(figure)}**" if is_best else _number(figure)


def _number(figure: float) -> str:
    return f"{figure:.3f}" if figure <= 1 else f"{figure:.1f}" if figure < 100 else f"{figure:.0f}"


def page(table: str, command: str) -> str:
    """Return the text of docs/figures.md."""
    cores, memory = os.cpu_count(), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    command_line = ("git", "rev-parse", "--short=8", "HEAD")
    commit = subprocess.run(command_line, cwd=servers.ROOT, capture_output=True, text=True)
    return f"""# Figures

`{command}`, {datetime.now(UTC):%Y-%m-%d}, commit {commit.stdout.strip()}, {cores} cores, {memory:.0f} GB,
Python {platform.python_version()}, load {os.getloadavg()[2]:.1f} during the last quarter of an hour.

The mean of {RUNS} runs; ± is how far `ctxr` was from it at most. Shares are of 1. The best figure is bold: where only
another program's is, `ctxr` loses.

{table}

- **ctxr**: the default install with its built-in model, asked through its tools. "With wordings" sends the other
  phrasings that an asking AI is told to send. An answer that is not found counts as wrong.
- **FTS5**: SQLite's, with Porter's stems, without stop words. **BM25**: stems, other letters in pairs. Both take all
  wordings as one query, and show the best messages up to {SHOWN_TOKENS} tokens (`benchmarks/retrieval/baselines.py`).
  They answer every question, also those that nothing answers.
- **fast-resume** keeps an index to resume a session from. **agentsview** keeps the messages; its server runs when its
  commands are measured, and so does the local process of `ctxr`. – was not measured.
- The sets were written by people who had not seen the program; all were read later, while rules were chosen
  (`benchmarks/RESULTS.md`). LoCoMo and LongMemEval are not part of this repository.
- **deja-vu** is a program in Go that was not run. Of LoCoMo's sessions its authors publish 0.696 / 0.857 / 0.766.
- The others: `python -m venv DIR && DIR/bin/pip install fast-resume agentsview`, then `--peers DIR`.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scoreboard", description=__doc__)
    parser.add_argument("--published", type=Path, metavar="DIR", help="folder with LoCoMo's and LongMemEval's files")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="environment with fast-resume and agentsview")
    options = parser.parse_args()
    servers.compile_program()
    table = markdown([measure(options.published, options.peers) for _ in range(RUNS)])
    print(table)
    given = [f" --{name} DIR" for name, value in vars(options).items() if value]
    PAGE.write_text(page(table, f"python -m benchmarks.scoreboard{''.join(given)}"), encoding="utf-8")


if __name__ == "__main__":
    main()
