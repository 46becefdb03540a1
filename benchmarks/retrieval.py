"""How well the right session and message are found: python -m benchmarks.retrieval [--locomo F] [--longmemeval F].

Without a file only our own development set is measured. The data of the others is not part of this repository:
LoCoMo is `locomo10.json`, LongMemEval one of `longmemeval_*.json`, as their authors publish them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.figures import table
from orchestrator.relevance import Judged, judge, session_scores
from orchestrator.semantic.embedding import embed_all
from orchestrator.semantic.meaning import Meant, open_meaning
from registry.registry import Registry
from registry.search.meaning import with_meaning
from registry.search.retrieval import SearchResult, find_messages
from registry.search.scope import Scope
from registry.settings import read_settings
from registry.storage.database import ReadTransaction
from registry.text.syntax import Search

DEVELOPMENT = Path(__file__).parent / "data" / "development.txt"
HELD_OUT = DEVELOPMENT.with_name("held_out.txt")
"""Written by somebody who knew neither the search nor the other set. It is for measuring: never tune on it."""
HEADS = ("", "questions", "session hit@1", "@5", "@10", "message recall@5", "@10", "@20", "MRR", "answered")


@dataclass(frozen=True)
class Question:
    """A question; `places` (session, number of message from 0) answer it, none if nothing does."""

    text: str
    kind: str
    places: frozenset[tuple[str, int]] = frozenset()
    sessions: frozenset[str] = frozenset()


@dataclass
class Collection:
    """Sessions of (role, text), and questions about them."""

    sessions: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)


# -- the sets


def development(file: Path = DEVELOPMENT) -> Iterator[Collection]:
    """Our own set; its format stands at its head."""
    found = Collection()
    name = ""
    for line in file.read_text(encoding="utf-8").splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "==":
            name = rest
            found.sessions[name] = []
        elif mark in ("U", "A"):
            found.sessions[name].append(("user" if mark == "U" else "assistant", rest))
        elif mark.startswith("?"):
            last = len(found.sessions[name]) - 1
            places = frozenset({(name, last), (name, last - 1)})
            found.questions.append(Question(rest, mark[1:] or "plain", places, frozenset({name})))
        elif mark == "!":
            found.questions.append(Question(rest, "no answer"))
    yield found


def locomo(file: Path) -> Iterator[Collection]:
    """All samples as one registry. Category 5 asks for what was never said."""
    found = Collection()
    for number, sample in enumerate(json.loads(file.read_text(encoding="utf-8"))):
        places: dict[tuple[int, int], tuple[str, int]] = {}
        talk = sample["conversation"]
        for key in (key for key in talk if key.startswith("session_") and isinstance(talk[key], list)):
            name = f"{number}_{key}"
            found.sessions[name] = []
            for said in talk[key]:
                places |= dict.fromkeys(_dialogue_ids(said["dia_id"]), (name, len(found.sessions[name])))
                role = "user" if said["speaker"] == talk["speaker_a"] else "assistant"
                shown = f" [{said['blip_caption']}]" if said.get("blip_caption") else ""
                found.sessions[name].append((role, f"{said['speaker']}: {said['text']}{shown}"))
        for asked in sample["qa"]:
            named = _dialogue_ids(" ".join(asked.get("evidence") or []))
            evidence = frozenset(places[one] for one in named if one in places)
            if asked["category"] == 5:
                found.questions.append(Question(asked["question"], "no answer"))
            elif evidence:
                sessions = frozenset(name for name, _ in evidence)
                found.questions.append(Question(asked["question"], "locomo", evidence, sessions))
    yield found


def _dialogue_ids(text: str) -> list[tuple[int, int]]:
    """Session and turn. A few of the published file are written D8:6; D9:17 in one string, D:11:26 or D30:05."""
    return [(int(session), int(turn)) for session, turn in re.findall(r"D:?(\d+):(\d+)", text)]


def longmemeval(file: Path) -> Iterator[Collection]:
    """Each question with a registry of its own."""
    for asked in json.loads(file.read_text(encoding="utf-8")):
        found = Collection()
        places = set()
        for name, turns in zip(asked["haystack_session_ids"], asked["haystack_sessions"], strict=True):
            found.sessions[name] = [(turn["role"], turn["content"]) for turn in turns]
            places |= {(name, place) for place, turn in enumerate(turns) if turn.get("has_answer")}
        is_answerable = not asked["question_id"].endswith("_abs")
        sessions = frozenset(asked["answer_session_ids"]) if is_answerable else frozenset()
        kind = asked["question_type"] if is_answerable else "no answer"
        found.questions.append(
            Question(asked["question"], kind, frozenset(places) if sessions else frozenset(), sessions)
        )
        yield found


# -- the measures


@dataclass(frozen=True)
class Outcome:
    """What one question found: sessions and messages in order of rank, and whether `extract` would answer at all."""

    question: Question
    sessions: list[str]
    messages: list[tuple[str, int]]
    is_answered: bool


async def store(registry: Registry, collection: Collection) -> None:
    """Log every session."""
    for name, turns in collection.sessions.items():
        await registry.save_conversation(name, [{"role": role, "text": text} for role, text in turns], "cursor")


def ask(tx: ReadTransaction, names: dict[int, str], question: Question, meant: Meant | None = None) -> Outcome:
    """Search the whole registry as `search_sessions` and `extract` do."""
    findings = find_messages(tx, question.text, Scope())
    if meant and meant.model:
        findings = with_meaning(tx, findings, Search(words=question.text), Scope(), meant.model, meant.vector)
    kept = [judged for judged in judge(findings, 0.0) if judged.reason is None]
    return Outcome(
        question,
        [names[number] for number, _ in session_scores(kept, findings)],
        [(names[one.ranked.candidate.channel_id], one.ranked.candidate.seq) for one in kept],
        bool(kept),
    )


async def understand(registry: Registry, questions: Sequence[Question]) -> dict[str, Meant]:
    """Embed what is stored, and what is asked, with the model of CTXR_EMBED_MODEL."""
    meaning = open_meaning(read_settings(), registry)
    await embed_all(registry, meaning.embedder, lambda _done, _total: None)
    found = {question.text: await meaning.of(question.text) for question in questions}
    await meaning.close()
    return {text: meant for text, meant in found.items() if meant}


def outcomes(
    collections: Iterable[Collection], ask: Callable[..., Any] = ask, *, by_meaning: bool = False
) -> Iterator[Any]:
    """Every question's outcome, each collection in a registry of its own."""
    for collection in collections:
        with tempfile.TemporaryDirectory() as folder:
            registry = Registry(f"sqlite:///{Path(folder) / 'r.db'}")
            asyncio.run(store(registry, collection))
            meant = asyncio.run(understand(registry, collection.questions)) if by_meaning else {}
            with registry.engine.begin() as connection:
                rows = connection.exec_driver_sql("SELECT number, name FROM channel").fetchall()
                names: dict[int, str] = {number: name for number, name in rows}
                for question in collection.questions:
                    yield ask(ReadTransaction(connection), names, question, meant.get(question.text))
            registry.close()


def row(kind: str, found: Sequence[Outcome]) -> tuple[str, ...]:
    """A line of the table."""
    if kind == "no answer":
        share = sum(one.is_answered for one in found) / len(found)
        return (kind, str(len(found)), *["-"] * 7, f"{share:.2f} (false)")
    hits = (_mean(bool(set(one.sessions[:k]) & one.question.sessions) for one in found) for k in (1, 5, 10))
    with_places = [one for one in found if one.question.places]
    recalls = (_mean(_recall(one, k) for one in with_places) for k in (5, 10, 20))
    ranks = _mean(_reciprocal_rank(one) for one in found)
    numbers = [*hits, *recalls, ranks, _mean(one.is_answered for one in found)]
    return (kind, str(len(found)), *(f"{number:.3f}" for number in numbers))


def _recall(one: Outcome, k: int) -> float:
    """Any message of the turn will do where a question names both of it."""
    wanted = one.question.places
    if one.question.kind in ("plain", "hard", "plant"):
        return float(bool(set(one.messages[:k]) & wanted))
    return len(set(one.messages[:k]) & wanted) / len(wanted)


def _reciprocal_rank(one: Outcome) -> float:
    places = (place for place, name in enumerate(one.sessions, 1) if name in one.question.sessions)
    return 1 / next(places, float("inf"))


def _mean(numbers: Iterable[float]) -> float:
    listed = list(numbers)
    return sum(listed) / max(len(listed), 1)


# -- the thresholds


def sweep() -> None:
    """For each pair of thresholds, on the development set, what `extract` delivers of a session it is asked about."""
    found: list[tuple[Question, SearchResult, list[tuple[str, int]]]] = list(outcomes(development(), _findings))
    shares = (0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6)
    rows = []
    for least in (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5):
        answered = [_is_covered(findings, least) for _, findings, _ in found]
        right = _mean(yes for yes, (question, *_) in zip(answered, found, strict=True) if question.places)
        false = _mean(yes for yes, (question, *_) in zip(answered, found, strict=True) if not question.places)
        rows.append((f"{least:.2f}", f"{right:.3f}", f"{false:.3f}", *(_precision(found, least, s) for s in shares)))
    print(table(("coverage", "answered", "false", *(f"share {share}" for share in shares)), rows))


def _findings(tx: ReadTransaction, names: dict[int, str], question: Question, _meant: None = None) -> Any:
    findings = find_messages(tx, question.text, Scope())
    places = [(names[one.candidate.channel_id], one.candidate.seq) for one in findings.ranked]
    return question, findings, places


def _is_covered(findings: SearchResult, least: float) -> bool:
    return any(one.coverage >= least and not _has(one, "parts") for one in judge(findings, 0.0))


def _has(judged: Judged, code: str) -> bool:
    return judged.reason is not None and judged.reason.code == code


def _precision(found: Sequence[tuple[Question, SearchResult, Any]], coverage: float, share: float) -> str:
    """Of the turns delivered the wanted ones, and of the wanted turns those delivered."""
    delivered, right, asked = 0, 0, 0
    for question, findings, places in found:
        if not question.places:
            continue
        kept = {
            (name, seq - seq % 2)
            for judged, (name, seq) in zip(judge(findings, share), places, strict=True)
            if judged.coverage >= coverage and (judged.reason is None or _has(judged, "coverage"))
        }
        wanted = {(name, seq - seq % 2) for name, seq in question.places}
        delivered, right, asked = delivered + len(kept), right + len(kept & wanted), asked + 1
    return f"{right / max(delivered, 1):.2f} / {right / asked:.2f}"


def main() -> None:
    """Measure what there is data for, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description=__doc__)
    parser.add_argument("--locomo", type=Path, metavar="FILE")
    parser.add_argument("--longmemeval", type=Path, metavar="FILE")
    parser.add_argument("--most", type=int, default=1_000_000, help="so many collections of a file at most")
    parser.add_argument("--failures", action="store_true", help="print the questions that were not answered right")
    parser.add_argument("--meaning", action="store_true", help="also by meaning, with the configured model")
    parser.add_argument("--sweep", action="store_true", help="thresholds on the development set")
    options = parser.parse_args()
    if options.sweep:
        sweep()
        return
    sets = {"development": development(), "held out": development(HELD_OUT)}
    sets |= {"locomo": locomo(options.locomo)} if options.locomo else {}
    sets |= {"longmemeval": longmemeval(options.longmemeval)} if options.longmemeval else {}
    for name, collections in sets.items():
        found: list[Outcome] = list(outcomes(islice(collections, options.most), by_meaning=options.meaning))
        kinds = dict.fromkeys(one.question.kind for one in found)
        answerable = [one for one in found if one.question.sessions]
        rows = [row(kind, [one for one in found if one.question.kind == kind]) for kind in kinds]
        print(name, table(HEADS, [*rows, row("all with an answer", answerable)]), sep="\n", end="\n\n")
        if options.failures:
            print_failures(found)


def print_failures(found: Iterable[Outcome]) -> None:
    """The questions whose first session is not the right one, and those answered though nothing answers them."""
    for one in found:
        is_right = one.sessions[0] in one.question.sessions if one.sessions else not one.question.sessions
        if not is_right:
            print(f"{one.question.kind}: {one.question.text} -> {one.messages[:1]}")


if __name__ == "__main__":
    main()
