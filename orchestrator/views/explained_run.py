"""Read one run for its page: what was found, what was delivered or not and why, and the fact that decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from orchestrator.answer.finding.relevance import LEAST_COVERAGE
from orchestrator.recording.recorder import KEPT_ITEMS
from registry.domain import format_time, names_message, preview_of
from registry.storage.conversations.channels import ChannelRow, find_channel
from registry.storage.conversations.message_windows import deleted_containing, numbers_containing
from registry.storage.conversations.messages import MessageRow, by_ids, by_numbers, get_message
from registry.storage.database import ReadTransaction
from registry.storage.records.executions import get_execution
from registry.text.ranking.matching import matched_by, matched_words
from registry.text.ranking.term_weights import Term
from registry.text.request.query import ParsedQuery, QueryWord, parse_query


@dataclass(frozen=True, slots=True)
class RunView:
    """A run with what its page needs to know beyond the record."""

    run: dict[str, Any]
    steps: dict[str, dict[str, Any]]
    """By node."""
    edges: frozenset[tuple[str, str]]
    """The edges taken through the graph."""
    judging: str | None
    """The node that recorded the verdicts."""
    verdicts: list[Judgement]
    """Verdicts on the best messages found."""
    missed: Missed | None
    """Reasons why nothing or only a guess was delivered, if words were asked for."""
    delivered: list[dict[str, Any]]
    gone: int
    """Delivered messages that are deleted by now, or not in the record."""
    tokens: int | None
    """Estimated tokens delivered; None if they were not recorded."""

    @property
    def path(self) -> list[str]:
        return [step["node"] for step in self.run["steps"]]


def run_view(tx: ReadTransaction, execution_id: str) -> RunView:
    run = get_execution(tx, execution_id)
    steps = {step["node"]: step for step in run["steps"]}
    judging = next((node for node, step in steps.items() if "verdicts" in step["detail"]), None)
    recorded = steps[judging]["detail"]["verdicts"] if judging else []
    verdicts = [verdict for verdict in recorded if isinstance(verdict, dict)]
    found = {row.number: row for row in by_numbers(tx, [verdict["message"] for verdict in verdicts])}
    ids, is_complete = _delivered_ids(run, steps)
    rows = by_ids(tx, ids)
    lookup = RecordedLookup(run["operation"], steps.get("cr_query", {}).get("detail", {}), frozenset(ids), is_complete)
    judged = [lookup.judge(one, row := found.get(one["message"]), _message(row)) for one in verdicts]
    is_unsure = not run["delivered"] or run["status"] == "guessed"
    return RunView(
        run,
        steps,
        frozenset(pairwise(step["node"] for step in run["steps"])),
        judging,
        judged,
        lookup.missed(judged) if lookup.noted.get("words") and is_unsure else None,
        [message for row in rows if (message := _message(row))],
        len(ids) - len(rows),
        steps.get("cr_write", {}).get("detail", {}).get("tokens"),
    )


def _delivered_ids(run: Mapping[str, Any], steps: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], bool]:
    noted = steps.get("cr_write", {}).get("detail", {}).get("delivered")
    given = noted if noted is not None else (run["result"] or {}).get("messages", [])
    given = given if isinstance(given, list) else []
    ids = [id for id in given if names_message(str(id))]
    return ids, len(ids) == len(given) and len(ids) < KEPT_ITEMS


def _message(row: MessageRow | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        "id": row.id,
        "channel": row.channel,
        "role": row.role,
        "preview": preview_of(row.text, 160),
        "timestamp": format_time(row.timestamp),
    }


class Expected(NamedTuple):
    """The expected message, the step that lost it (None: it was delivered), and why, in words."""

    id: str
    channel: str
    preview: str
    step: str | None
    why: str


def expected_in(tx: ReadTransaction, view: RunView, message_id: str) -> Expected:
    """Return what became of a message in a run; NotFound if there is no such message."""
    row = get_message(tx, message_id)
    step, why = _lost(view, row)
    return Expected(row.id, row.channel, preview_of(row.text), step, why)


def _lost(view: RunView, row: Any) -> tuple[str | None, str]:
    delivered = {one["id"] for one in view.delivered}
    if row.id in delivered:
        return None, "It was delivered."
    verdict = next((one for one in view.verdicts if one.shown and one.shown["id"] == row.id), None)
    if verdict and verdict.verdict not in (DELIVERED, WITH_QUESTION):
        return view.judging, verdict.reason or "It was good enough, but the answer was full."
    query: Mapping[str, Any] = view.run["request"].get("query") or {}
    if query.get("roles") and row.role not in query["roles"]:
        return "cr_query", "Messages of its role were not asked for."
    if view.run["channel"] and view.run["channel"] != row.channel:
        return "cr_query", "Another conversation was chosen."
    words = [word for word in view.steps.get("cr_query", {}).get("detail", {}).get("words", [])]
    if not matched_words(parse_query(" ".join(map(str, words))), row.text):
        return "cr_query", "It holds no whole word of the request."
    return view.judging or "cr_query", "It was found, but ranked too low."


DELIVERED, WITH_QUESTION, NO_ROOM, KEPT, DROPPED = "delivered", "with its question", "no room", "kept", "dropped"
LISTS_HITS = ("search", "search_sessions")
"""Operations that show messages by what each of them holds itself."""
GIVES_MESSAGES = ("search", "extract")


class Judgement(NamedTuple):
    """The verdict on one message. `held` and `lacking` are words of the wording that it holds most of."""

    verdict: str
    role: str
    coverage: float
    score: float
    similarity: float | None
    wording: int
    reason: str | None
    held: Sequence[str]
    lacking: Sequence[str]
    shown: dict[str, Any] | None
    """The message; None: deleted since."""


@dataclass(frozen=True, slots=True)
class Missed:
    """The reasons why nothing was delivered. `unknown`: words that occur nowhere in what was searched."""

    unknown: list[str]
    nearest: Judgement | None


@dataclass(frozen=True, slots=True)
class RecordedLookup:
    """The recorded look-up of a run."""

    operation: str
    noted: Mapping[str, Any]
    delivered: frozenset[str]
    is_complete: bool
    """All delivered messages are in the record."""

    def judge(self, verdict: Mapping[str, Any], row: MessageRow | None, shown: dict[str, Any] | None) -> Judgement:
        """Return a recorded verdict with its reason."""
        wording = int(verdict["wording"])
        query = self._query(wording)
        held = matched_words(query, row.text) if row else ()
        similarity = verdict.get("similarity")
        name, reason = self._outcome(verdict, row.id if row else None)
        if name == DELIVERED and not held and similarity is None:
            name = WITH_QUESTION
        return Judgement(
            name,
            verdict["role"],
            verdict["coverage"],
            verdict["score"],
            similarity if isinstance(similarity, int | float) else None,
            wording,
            reason,
            held,
            [word.text for word in query.words if word.text not in held] if row else [],
            shown,
        )

    def _query(self, wording: int) -> ParsedQuery:
        also = [one["text"] for one in self.noted.get("also", ()) if isinstance(one, dict)]
        if 0 < wording <= len(also):
            return parse_query(also[wording - 1])
        typos = self.noted.get("taken_for_typos", {})
        words = (str(word) for word in self.noted.get("words", ()))
        return parse_query(" ".join(word for each in words for word in (typos.get(each) or [each])))

    def _outcome(self, verdict: Mapping[str, Any], message_id: str | None) -> tuple[str, str | None]:
        if message_id in self.delivered:
            return (DELIVERED if verdict["kept"] else WITH_QUESTION), None
        if not verdict["kept"]:
            return DROPPED, verdict["reason"]
        is_weak = verdict["coverage"] < LEAST_COVERAGE and verdict.get("similarity") is None
        if self.operation in LISTS_HITS and is_weak:
            return DROPPED, LITTLE
        is_left_out = self.is_complete and self.operation in GIVES_MESSAGES
        return (NO_ROOM if is_left_out else KEPT), None

    def missed(self, judged: Sequence[Judgement]) -> Missed:
        """Return why none of the messages found was good enough."""
        terms = self.noted.get("terms", ())
        found = [Term(one["token"], one["weight"], 1) for one in terms if isinstance(one, dict)]
        words = parse_query(" ".join(map(str, self.noted.get("words", ())))).words
        return Missed(
            [word.text for word in words if not matched_by(ParsedQuery((word,)), found)(_own(word, found))],
            max(judged, key=lambda one: one.coverage, default=None),
        )


def _own(word: QueryWord, terms: Sequence[Term]) -> int:
    """Return the bits of a word's own terms."""
    return sum(1 << place for place, term in enumerate(terms) if term.token in word.tokens)


LITTLE = "holds less of the request than a hit in a list must"


@dataclass(frozen=True, slots=True)
class AnswerOption:
    """A conversation that could be the answer; `held`: the words of the question that its best messages hold."""

    channel: str
    title: str
    source: str
    project: str | None
    last: str
    deleted: bool
    score: float | None
    held: list[str]
    line: str


@dataclass(frozen=True, slots=True)
class CaseFile:
    """A run's first screen. `decided`: why the answer came before the runner-up; `is_named`: the call named it.

    `is_sure`: False for a guess, a miss, and an answer that holds none of the words. `is_tie`: a guess, since the
    runner-up matches about as well.
    """

    answer: AnswerOption | None
    runner_up: AnswerOption | None
    decided: str
    facts: dict[str, Any]
    is_named: bool
    is_sure: bool
    is_tie: bool
    unknown: list[str]
    in_trash: list[dict[str, Any]]


def case_file(tx: ReadTransaction, view: RunView) -> CaseFile:
    run = view.run
    noted: Mapping[str, Any] = view.steps.get("cr_query", {}).get("detail", {})
    listed = noted.get("channels")
    ranking = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    scores = {one["channel"]: one.get("score") for one in ranking}
    is_named = bool(run["request"].get("channel"))
    first = run["channel"] or next(iter(scores), None) if run["status"] in ("succeeded", "guessed") else None
    second = next((name for name in scores if name != first), None)
    words = [str(word) for word in noted.get("words", ())]
    answer, runner_up = (_candidate(tx, view, name, scores, words) if name else None for name in (first, second))
    decided, facts = _decided(answer, runner_up, is_named=is_named)
    holds_words = not words or answer is None or answer.deleted or bool(answer.held)
    is_good = run["status"] == "succeeded" and holds_words
    in_trash = [] if is_good or not words else deleted_containing(tx, words, 3)
    return CaseFile(
        answer,
        runner_up,
        decided,
        facts,
        is_named,
        is_good,
        _is_tie(view, answer, runner_up),
        [] if is_good or not view.missed else view.missed.unknown,
        [
            {
                "id": row.id,
                "channel": row.channel,
                "timestamp": format_time(row.timestamp),
                "line": preview_of(row.text),
            }
            for row in in_trash
        ],
    )


CLOSE = 0.85  # share of the answer's score from which on a runner-up makes it a guess


def _is_tie(view: RunView, answer: AnswerOption | None, runner_up: AnswerOption | None) -> bool:
    """Return whether the answer holds all words and the runner-up scores nearly as high."""
    nearest = view.missed.nearest if view.missed else None
    if nearest is None or nearest.lacking or not (answer and runner_up and answer.score and runner_up.score):
        return False
    return runner_up.score >= CLOSE * answer.score


def _candidate(
    tx: ReadTransaction, view: RunView, name: str, scores: Mapping[str, Any], words: Sequence[str]
) -> AnswerOption | None:
    row: ChannelRow | None = find_channel(tx, name)
    if row is None:
        return None
    verdicts = [one for one in view.verdicts if one.shown and one.shown["channel"] == row.name]
    best = max(verdicts, key=lambda one: (len(one.held), one.score), default=None)
    held = list(dict.fromkeys(word for one in verdicts for word in one.held))
    line = best.shown["preview"] if best and best.shown else ""
    if not verdicts:  # an extract judges the messages of its answer only
        places = {word: place for word in words for place in numbers_containing(tx, row.number, word, 1)}
        held = list(places)
        line = next((preview_of(one.text, 160) for one in by_numbers(tx, list(places.values())[:1])), "")
    return AnswerOption(
        row.name,
        row.name if row.deleted else row.title or row.first_message_preview or row.name,
        row.source,
        row.project_name,
        format_time(row.updated_at),
        row.deleted,
        scores.get(row.name),
        held,
        line,
    )


def _decided(
    answer: AnswerOption | None, runner_up: AnswerOption | None, *, is_named: bool
) -> tuple[str, dict[str, Any]]:
    if answer is None:
        return "", {}
    if is_named:
        return "The call named this conversation: no other was searched.", {}
    if runner_up is None:
        return "No other conversation matched.", {}
    more = [word for word in answer.held if word not in runner_up.held]
    if more:
        return "Only the answer mentions: {words}", {"words": ", ".join(more)}
    if answer.score and runner_up.score:
        facts = {"answer": f"{answer.score:.2f}", "other": f"{runner_up.score:.2f}"}
        if facts["answer"] == facts["other"]:
            return "", {}
        return "Both mention the same words; its messages match better: {answer} against {other}.", facts
    return "", {}
