"""Read executions as lists, figures and test cases, and one run with its search results for its page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

from orchestrator.answer.finding.relevance import CLOSE_SCORE, MIN_COVERAGE
from orchestrator.recording.evaluation import SOURCE as EVALUATING
from orchestrator.recording.evaluation import repeatable_request
from orchestrator.recording.recorder import MAX_ITEMS
from orchestrator.views.conversations import described_deleted
from registry.domain import format_time, is_message_id, now, preview_of
from registry.monitor.statistics import execution_statistics as execution_statistics
from registry.storage.conversations.channels import find_channel, items_of
from registry.storage.conversations.facets import known_names
from registry.storage.conversations.message_windows import find_deleted, numbers_containing
from registry.storage.conversations.messages import MessageRow, by_ids, by_numbers, get_message
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.exchange.change_feed import newest_position
from registry.storage.paging import Page
from registry.storage.records import executions
from registry.storage.records.executions import drop_expectation as drop_expectation
from registry.storage.records.executions import get_execution as get_execution
from registry.storage.records.executions import list_executions as list_executions
from registry.storage.records.executions import list_expectations as list_expectations
from registry.storage.records.executions import rate_execution as rate_execution
from registry.text.ranking.matching import match_test, matched_words
from registry.text.ranking.term_weights import Term
from registry.text.request.query import ParsedQuery, QueryWord, parse_query


def runs_page(tx: ReadTransaction, filters: dict[str, Any], page: Page) -> dict[str, Any]:
    position = str(newest_position(tx))
    found = list_executions(tx, filters, page)
    return {"place": position, "found": found, "sources": known_names(tx).sources}


def run_page(tx: ReadTransaction, execution_id: str, expected: str | None) -> dict[str, Any]:
    """Return a run, the step that lost the expected message, and the run's rating."""
    view = run_view(tx, execution_id)
    return {
        "view": view,
        "case": summarise_run(tx, view),
        "expected": expected_in(tx, view, expected) if expected else None,
        "useful": executions.rating_of(tx, execution_id),
    }


def unsure_runs(tx: ReadTransaction, without_source: str, limit: int) -> list[dict[str, Any]]:
    """Return the newest unrated guesses and misses of the last 30 days, without runs of test cases."""
    return executions.unsure_executions(tx, now() - timedelta(days=30), (without_source, EVALUATING), limit)


def save_case(tx: WriteTransaction, run: dict[str, Any], message_id: str) -> None:
    executions.keep_expectation(tx, repeatable_request(run), message_id)


Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunView:
    """A run with the facts for its page that are not in the record."""

    run: Item
    steps: dict[str, Item]  # by node
    edges: frozenset[tuple[str, str]]  # the edges taken through the graph
    judging: str | None  # the node that recorded the verdicts
    verdicts: list[Item]
    """Recorded verdicts on the best messages found, with {verdict, reason, held, lacking, shown}.

    `held` and `lacking`: matched and missing words of the best matching wording; `shown`: None for a deleted message.
    """
    missed: Item | None
    """Reasons of a miss or guess in a search by words: {unknown, nearest}."""
    delivered: list[Item]
    gone: int  # delivered messages that are deleted now, or not in the record
    tokens: int | None  # estimated tokens delivered; None if they were not recorded

    @property
    def path(self) -> list[str]:
        return [step["node"] for step in self.run["steps"]]

    def noted(self, node: str) -> Item:
        return _step_detail(self.steps, node)


def run_view(tx: ReadTransaction, execution_id: str) -> RunView:
    run = get_execution(tx, execution_id)
    steps = {step["node"]: step for step in run["steps"]}
    judging = next((node for node, step in steps.items() if "verdicts" in step["detail"]), None)
    recorded = steps[judging]["detail"]["verdicts"] if judging else []
    verdicts = [verdict for verdict in recorded if isinstance(verdict, dict)]
    found = {row.number: row for row in by_numbers(tx, [verdict["message"] for verdict in verdicts])}
    ids, is_complete = _delivered_ids(run, steps)
    rows = by_ids(tx, ids)
    lookup = RecordedLookup(run["operation"], _step_detail(steps, "cr_query"), frozenset(ids), is_complete)
    judged = [lookup.judge(one, found.get(one["message"])) for one in verdicts]
    is_unsure = not run["delivered"] or run["status"] == "guessed"
    return RunView(
        run,
        steps,
        frozenset(pairwise(step["node"] for step in run["steps"])),
        judging,
        judged,
        lookup.missed(judged) if lookup.noted.get("words") and is_unsure else None,
        list(map(_message, rows)),
        len(ids) - len(rows),
        _step_detail(steps, "cr_write").get("tokens"),
    )


def _step_detail(steps: Mapping[str, Item], node: str) -> Item:
    return steps[node]["detail"] if node in steps else {}


def _delivered_ids(run: Mapping[str, Any], steps: Mapping[str, Item]) -> tuple[list[str], bool]:
    noted = _step_detail(steps, "cr_write").get("delivered")
    given = noted if noted is not None else (run["result"] or {}).get("messages", [])
    given = given if isinstance(given, list) else []
    ids = [id for id in given if is_message_id(str(id))]
    return ids, len(ids) == len(given) and len(ids) < MAX_ITEMS


def _message(row: MessageRow) -> Item:
    return {
        "id": row.id,
        "channel": row.channel,
        "role": row.role,
        "preview": preview_of(row.text, 160),
        "timestamp": format_time(row.timestamp),
    }


def expected_in(tx: ReadTransaction, view: RunView, message_id: str) -> Item:
    """Return a message with the step that lost it (None: delivered) and the reason. Raises NotFound."""
    row = get_message(tx, message_id)
    step, why = _find_loss(view, row)
    return {**_message(row), "step": step, "why": why}


def _find_loss(view: RunView, row: MessageRow) -> tuple[str | None, str]:
    if any(one["id"] == row.id for one in view.delivered):
        return None, "It was delivered."
    verdict = next((one for one in view.verdicts if one["shown"] and one["shown"]["id"] == row.id), None)
    if verdict and verdict["verdict"] not in (DELIVERED, WITH_QUESTION):
        return view.judging, verdict["reason"] or "It was good enough, but the answer was full."
    query: Mapping[str, Any] = view.run["request"].get("query") or {}
    if query.get("roles") and row.role not in query["roles"]:
        return "cr_query", "Messages of its role were not asked for."
    if view.run["channel"] and view.run["channel"] != row.channel:
        return "cr_query", "Another conversation was chosen."
    words = view.noted("cr_query").get("words", [])
    if not matched_words(parse_query(" ".join(map(str, words))), row.text):
        return "cr_query", "It contains no whole word of the request."
    return view.judging or "cr_query", "It was found, but ranked too low."


DELIVERED, WITH_QUESTION, NO_ROOM, KEPT, DROPPED = "delivered", "with its question", "no room", "kept", "dropped"
LIST_OPERATIONS = ("search", "search_sessions")  # operations that filter messages by their own coverage
MESSAGE_OPERATIONS = ("search", "extract")
TOO_FEW_WORDS = "contains less of the request than a hit in a list must contain"


@dataclass(frozen=True, slots=True)
class RecordedLookup:
    """The recorded search of a run."""

    operation: str
    noted: Mapping[str, Any]
    delivered: frozenset[str]
    is_complete: bool  # all delivered messages are in the record

    def judge(self, verdict: Mapping[str, Any], row: MessageRow | None) -> Item:
        query = self._query(int(verdict["wording"]))
        matched = matched_words(query, row.text) if row else ()
        similarity = verdict.get("similarity")
        name, reason = self._outcome(verdict, row.id if row else None)
        if name == DELIVERED and not matched and similarity is None:
            name = WITH_QUESTION
        return {
            **verdict,
            "verdict": name,
            "reason": reason,
            "similarity": similarity,
            "held": matched,
            "lacking": [word.text for word in query.words if word.text not in matched] if row else [],
            "shown": _message(row) if row else None,
        }

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
        has_few_words = verdict["coverage"] < MIN_COVERAGE and verdict.get("similarity") is None
        if self.operation in LIST_OPERATIONS and has_few_words:
            return DROPPED, TOO_FEW_WORDS
        is_left_out = self.is_complete and self.operation in MESSAGE_OPERATIONS
        return (NO_ROOM if is_left_out else KEPT), None

    def missed(self, judged: Sequence[Item]) -> Item:
        """Return the words without any match, and the best message: the reasons why no result was good enough."""
        terms = self.noted.get("terms", ())
        found = [Term(one["token"], one["weight"], 1) for one in terms if isinstance(one, dict)]
        words = parse_query(" ".join(map(str, self.noted.get("words", ())))).words
        return {
            "unknown": [word.text for word in words if not match_test(ParsedQuery((word,)), found)(_bits(word, found))],
            "nearest": max(judged, key=lambda one: float(one["coverage"]), default=None),
        }


def _bits(word: QueryWord, terms: Sequence[Term]) -> int:
    """Return a bit mask of the terms that are tokens of a word."""
    return sum(1 << index for index, term in enumerate(terms) if term.token in word.tokens)


def summarise_run(tx: ReadTransaction, view: RunView) -> Item:
    """Return a run's summary: the answer, the runner-up, the reason of their order, and the missing words.

    `is_sure`: False for a guess, a miss, and an answer that matches none of the words. `is_tie`: a guess, because the
    runner-up scores about as high. `lacking`: missing words of an answer that matches most of the question.
    `is_named`: the call named the conversation.
    """
    run, noted = view.run, view.noted("cr_query")
    ranked = noted.get("channels") or view.noted("filter").get("channels")
    ranking = [one for one in ranked if isinstance(one, dict)] if isinstance(ranked, list) else []
    scores = {one["channel"]: one.get("score") for one in ranking}
    is_named = bool(run["request"].get("channel"))
    first = run["channel"] or next(iter(scores), None) if run["status"] in ("succeeded", "guessed") else None
    second = next((name for name in scores if name != first), None)
    words = [str(word) for word in noted.get("words", ())]
    answer, runner_up = (_candidate(tx, view, name, scores, words) if name else None for name in (first, second))
    is_tie = _is_tie(view, answer, runner_up)
    decided, facts = ("", {}) if is_tie else _ranking_reason(answer, runner_up, is_named=is_named)
    missing_words = [word for word in words if word not in answer["held"]] if answer and _is_half_matched(view) else []
    is_similar = any(one["similarity"] is not None for one in view.verdicts)
    contains_words = not words or answer is None or answer["deleted"] or bool(answer["held"]) or is_similar
    is_sure = run["status"] == "succeeded" and contains_words
    in_trash = [] if is_sure or not words else _in_trash(tx, words, answer)
    return {
        "answer": answer,
        "runner_up": runner_up,
        "decided": decided,
        "facts": facts,
        "is_named": is_named,
        "is_sure": is_sure,
        "contains_words": contains_words,
        "is_tie": is_tie,
        "lacking": missing_words,
        "unknown": [] if is_sure or not view.missed else view.missed["unknown"],
        "in_trash": in_trash,
    }


def _in_trash(tx: ReadTransaction, words: Sequence[str], answer: Item | None) -> list[Item]:
    """Return conversations whose deleted messages match more words of the question than the answer, or all words."""
    longest = sorted(words, key=len, reverse=True)[:3]  # each word is searched in all deleted messages
    count = sum(word in answer["held"] for word in longest) if answer else 0
    return described_deleted(tx, items_of(tx, find_deleted(tx, longest, min(len(longest), max(2, count + 1)), 3)))


def _is_tie(view: RunView, answer: Item | None, runner_up: Item | None) -> bool:
    """Return True if the answer matches much of the question and the runner-up scores nearly as high."""
    if not (_is_half_matched(view) and answer and runner_up and answer["score"] and runner_up["score"]):
        return False
    return bool(runner_up["score"] >= CLOSE_SCORE * answer["score"])


def _is_half_matched(view: RunView) -> bool:
    """Return True if the answer is unsure, but a message matches at least half of the question."""
    nearest = view.missed["nearest"] if view.missed else None
    return nearest is not None and nearest["coverage"] >= 0.5


def _candidate(
    tx: ReadTransaction, view: RunView, name: str, scores: Mapping[str, Any], words: Sequence[str]
) -> Item | None:
    """Return a conversation that could be the answer; `held`: the words of the question that its messages match."""
    row = find_channel(tx, name)
    if row is None:
        return None
    verdicts = [one for one in view.verdicts if one["shown"] and one["shown"]["channel"] == row.name]
    matched = list(dict.fromkeys(word for one in verdicts for word in one["held"]))
    if verdicts:
        line = max(verdicts, key=lambda one: (len(one["held"]), one["score"]))["shown"]["preview"]
    else:  # an extract records verdicts only on messages of its answer
        numbers = {word: number for word in words for number in numbers_containing(tx, row.number, word, 1)}
        matched = list(numbers)
        line = next((preview_of(one.text, 160) for one in by_numbers(tx, list(numbers.values())[:1])), "")
    return {
        "channel": row.name,
        "title": row.name if row.deleted else row.title or row.first_message_preview or row.name,
        "source": row.source,
        "project": row.project_name,
        "last": format_time(row.updated_at),
        "deleted": row.deleted,
        "score": scores.get(row.name),
        "held": matched,
        "line": line,
    }


def _ranking_reason(answer: Item | None, runner_up: Item | None, *, is_named: bool) -> tuple[str, Item]:
    if answer is None:
        return "", {}
    if is_named:
        return "The call named this conversation: no other was searched.", {}
    if runner_up is None:
        return "No other conversation matched.", {}
    more = [word for word in answer["held"] if word not in runner_up["held"]]
    if more:
        return "Only the answer mentions: {words}", {"words": ", ".join(more)}
    if answer["score"] and runner_up["score"]:
        facts = {"answer": f"{answer['score']:.2f}", "other": f"{runner_up['score']:.2f}"}
        if facts["answer"] == facts["other"]:
            return "", {}
        return "Both mention the same words; its messages match better: {answer} against {other}.", facts
    return "", {}
