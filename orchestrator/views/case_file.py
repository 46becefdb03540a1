"""Build the first screen of a run: the answer, its runner-up, the deciding fact, and hits in the trash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.views.explained_run import RunView
from registry.domain import format_time, preview_of
from registry.storage.conversations.channels import ChannelRow, find_channel
from registry.storage.conversations.message_windows import deleted_containing
from registry.storage.database import ReadTransaction


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

    `is_sure`: False for a guess, a miss, and an answer that holds none of the words.
    """

    answer: AnswerOption | None
    runner_up: AnswerOption | None
    decided: str
    facts: dict[str, Any]
    is_named: bool
    is_sure: bool
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
    answer, runner_up = (_candidate(tx, view, name, scores) if name else None for name in (first, second))
    decided, facts = _decided(answer, runner_up, is_named=is_named)
    words = [str(word) for word in noted.get("words", ())]
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


def _candidate(tx: ReadTransaction, view: RunView, name: str, scores: Mapping[str, Any]) -> AnswerOption | None:
    row: ChannelRow | None = find_channel(tx, name)
    if row is None:
        return None
    verdicts = [one for one in view.verdicts if one.shown and one.shown["channel"] == row.name]
    best = max(verdicts, key=lambda one: (len(one.held), one.score), default=None)
    return AnswerOption(
        row.name,
        row.name if row.deleted else row.title or row.first_message_preview or row.name,
        row.source,
        row.project_name,
        format_time(row.updated_at),
        row.deleted,
        scores.get(row.name),
        list(dict.fromkeys(word for one in verdicts for word in one.held)),
        best.shown["preview"] if best and best.shown else "",
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
        return "Both mention the same words; its messages match better: {answer} against {other}.", facts
    return "", {}
