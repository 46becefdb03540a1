"""Measure how often `ctxr blame` names the right conversation first: python -m benchmarks.blame

Each code block of the sets' answers is committed as a file, 20 minutes or three days after the answer, unchanged or
reworked (half of its lines, indented, with other numbers). All conversations of a set belong to that repository.
`blame` is asked about each block's commit, file and three lines.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import product as every
from pathlib import Path
from statistics import mean

from benchmarks.retrieval.product import Product, product_with
from benchmarks.retrieval.question_sets import QuestionSet, own_sets
from benchmarks.setup.figures import table
from orchestrator.service import Orchestrator

_CODE = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
LEAST_LINES = 3
LAGS: Mapping[str, timedelta] = {"after 20 minutes": timedelta(minutes=20), "after 3 days": timedelta(days=3)}


def reworked(lines: list[str]) -> list[str]:
    """Return every second line, indented, with other digits."""
    return ["if ready:", *(f"    {re.sub('[0-9]', '7', line.strip())}" for line in lines[::2])]


FORMS: Mapping[str, Callable[[list[str]], list[str]]] = {"unchanged": list, "reworked": reworked}
KINDS = ("commit", "file", "line")
Hits = dict[tuple[str, str, str], list[bool]]


@dataclass(frozen=True)
class Block:
    """A code block of an answer, with its session and the answer's time."""

    session: str
    at: datetime
    lines: list[str]


def blocks_of(question_set: QuestionSet) -> Iterator[Block]:
    """Yield the code blocks of a set's answers that have at least `LEAST_LINES` lines."""
    for session in question_set.sessions:
        for said in session.messages:
            for code in _CODE.findall(said.text) if said.role == "assistant" else ():
                lines = [line for line in code.splitlines() if line.strip()]
                if len(lines) >= LEAST_LINES:
                    yield Block(session.id, datetime.fromisoformat(said.timestamp), lines)


async def measure(question_set: QuestionSet, hits: Hits) -> int:
    """Commit a set's blocks with each delay and form, ask `blame`, and add to `hits`. Return the number of blocks."""
    blocks = list(blocks_of(question_set))
    with tempfile.TemporaryDirectory() as folder:
        for (lag, after), (form, shape) in every(LAGS.items(), FORMS.items()):
            top = Path(folder, f"{lag} {form}".replace(" ", "-"))
            names = _commit(top, [(block, shape(block.lines), block.at + after) for block in blocks])
            sessions = [replace(session, project=str(top)) for session in question_set.sessions]
            async with product_with(replace(question_set, sessions=sessions)) as product:
                for number, (block, name) in enumerate(zip(blocks, names, strict=True)):
                    for kind, query in questions_about(f"part_{number}.txt", name, shape(block.lines)):
                        is_first = await _found_first(product, top, query) == block.session
                        hits[kind, lag, form].append(is_first)
    return len(blocks)


def _commit(top: Path, made: list[tuple[Block, list[str], datetime]]) -> list[str]:
    """Commit the blocks in the order of their times; return the commits' hashes in the order of the blocks."""
    top.mkdir()
    _git(top, "init", "-q")
    names = dict[int, str]()
    for number, (_, lines, at) in sorted(enumerate(made), key=lambda each: each[1][2]):
        (top / f"part_{number}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        _git(top, "add", "-A")
        _git(top, "commit", "-q", "-m", f"part {number}", at=at)
        names[number] = _git(top, "rev-parse", "HEAD")
    return [names[number] for number in range(len(made))]


def _git(top: Path, *words: str, at: datetime | None = None) -> str:
    when = {name: str(at) for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE")} if at else {}
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    done = subprocess.run(["git", *who, *words], cwd=top, env=os.environ | when, capture_output=True, check=True)
    return done.stdout.decode().strip()


async def _found_first(product: Product, top: Path, query: Mapping[str, str]) -> str | None:
    """Return the session that `blame` names first; None if it finds none."""
    request = {"operation": "blame", "query": {**query, "folder": str(top)}}
    outcome = await Orchestrator(product.registry).run(request)
    return product.sessions[outcome["found"][0]["session"]["channel"]] if outcome["success"] else None


def questions_about(file: str, sha: str, lines: list[str]) -> list[tuple[str, dict[str, str]]]:
    """Return queries for the commit, the file and its three longest lines, each with its kind."""
    longest = sorted(range(len(lines)), key=lambda at: -len(lines[at].strip()))[:3]
    queries = [("commit", {"commit": sha}), ("file", {"file": file})]
    return queries + [("line", {"file": f"{file}:{at + 1}"}) for at in longest]


def main() -> None:
    hits: Hits = defaultdict(list)
    for question_set in own_sets():
        count = asyncio.run(measure(question_set, hits)) if any(blocks_of(question_set)) else 0
        print(f"{question_set.name}: {count} blocks of code in {len(question_set.sessions)} conversations")
    rows = [
        (f"{form}, {lag}", *(f"{mean(hits[kind, lag, form]):.2f} of {len(hits[kind, lag, form])}" for kind in KINDS))
        for lag, form in every(LAGS, FORMS)
    ]
    print(table(("right conversation first", *KINDS), rows))


if __name__ == "__main__":
    main()
