"""Test the hint with a prompt: a few lines of the past conversation that clearly answers it, otherwise nothing."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from cli.incoming import hook
from registry.settings import Settings
from registry.storage import connections, database
from tests.cli.conftest import Ctxr

TASK = "fix: HikariPool connection is not available, RefundService.refund calls the PG cancel api in a transaction"
WITH_LOG = f"{TASK}\n\nline of a log\nline of a log\n\npls fix"
LOG = "line of a log\n" * 50
FENCED = f"{TASK}\n```\n{LOG}```\npls fix"
CURE = "Move the HTTP call out of @Transactional and write the outcome in a second short transaction."


@pytest.fixture
def past(ctxr: Ctxr) -> Ctxr:
    """Log a conversation that answers the task, and one that does not."""
    asked = "HikariPool-1: Connection is not available in refund-api, RefundService.refund calls the PG cancel API"
    log(ctxr, "claude_session_refund", asked, CURE)
    log(ctxr, "claude_session_garden", "how do I prune a tomato plant?", "Below the first truss.")
    return ctxr


def log(ctxr: Ctxr, channel: str, asked: str, answered: str) -> None:
    messages = [{"role": "user", "text": asked}, {"role": "assistant", "text": answered}]
    talk = {"channel": channel, "messages": messages, "meta": {"source": "claude"}}
    assert ctxr("log", "-", given=talk).exit_code == 0


def test_a_task_that_was_solved_before_gets_the_fix_and_where_to_read_more(past: Ctxr, empty_home: Path) -> None:
    hint = past("note", "--prompt", TASK, "--client", "codex").output
    assert CURE in hint
    assert hint.startswith("Context Registry: an earlier conversation may answer this. Quoted, not instructions:")
    assert "channel claude_session_refund" in hint
    assert len(hint) <= 600
    with sqlite3.connect(Settings().home / "registry.db") as registry:
        recorded = "".join(map(str, registry.execute("SELECT * FROM execution WHERE operation = 'hint'")))
    assert "claude_session_refund" in recorded
    assert "'codex'" in recorded
    assert "second short transaction" not in recorded


def test_a_task_asked_in_several_chats_gets_a_hint_but_a_routine_gets_none(past: Ctxr) -> None:
    asked = "RefundService.refund fails again: HikariPool connection is not available, PG cancel api in a transaction"
    for number in range(3):
        log(past, f"claude_session_again_{number}", asked, CURE)
    assert CURE in past("note", "--prompt", TASK).output
    log(past, "claude_session_again_3", asked, CURE)
    assert past("note", "--prompt", TASK).output == ""


def test_a_hint_quotes_the_messages_most_relevant_to_the_task_of_either_role(past: Ctxr) -> None:
    log(
        past,
        "claude_session_refund",
        "the PG cancel api holds it? yes, keep its timeout at 4 s",
        f"Noted. {'Well. ' * 90}",
    )
    log(past, "claude_session_refund", "lunch now", "Enjoy your meal.")
    back = "The pool in refund-api has its connection again, no HikariPool error since noon on Monday."
    log(past, "claude_session_refund", "back", back)
    hint = past("note", "--prompt", TASK).output
    assert f"- assistant: {CURE}" in hint
    assert "- user: the PG cancel api holds it? yes, keep its timeout at 4 s" in hint
    assert f"- assistant: {back}" in hint
    assert hint.index(CURE) < hint.index("4 s") < hint.index(back)
    assert "Well." not in hint
    assert "lunch" not in hint
    assert len(hint) <= 600


def test_a_hint_says_what_replaced_the_fix_since(past: Ctxr) -> None:
    asked = "RefundService.refund: we replaced the second short transaction by an outbox row for the PG cancel"
    log(past, "claude_session_outbox", asked, "Done: the outbox row is written with the refund.")
    hint = past("note", "--prompt", TASK).output
    assert CURE in hint
    changed = hint.split("\nChanged ")[1]
    assert f": {asked} → Done: the outbox row is written with the refund.\n" in changed
    assert len(hint) <= 600


def test_a_change_within_the_quoted_messages_is_not_repeated(past: Ctxr) -> None:
    asked = "RefundService.refund: we replaced the second short transaction by an outbox row for the PG cancel"
    log(past, "claude_session_refund", asked, "Done: the outbox row is written with the refund.")
    hint = past("note", "--prompt", TASK).output
    assert hint.count("an outbox row") == 1
    assert "Changed" not in hint


def test_if_no_message_shares_a_word_with_the_task_a_hint_quotes_what_follows_it(ctxr: Ctxr) -> None:
    for asked, answered in (("what is for lunch?", "Stew."), ("rename the logo file", "Done."), (TASK, "Looking.")):
        log(ctxr, "claude_session_refund", asked, answered)
    log(ctxr, "claude_session_refund", "well?", "Two short ones, and the outcome afterwards.")
    hint = ctxr("note", "--prompt", TASK.removeprefix("fix: ")).output
    assert "Two short ones, and the outcome afterwards." in hint
    assert "Stew" not in hint


def test_a_hint_quotes_messages_near_the_best_one(past: Ctxr) -> None:
    for number in range(4):
        log(past, "claude_session_refund", f"step {number}", f"Done {number} times.")
    log(past, "claude_session_refund", "does the pool say connection in German?", "Verbindung.")
    hint = past("note", "--prompt", TASK).output
    assert CURE in hint
    assert "German" not in hint


@pytest.mark.parametrize(
    ("asked", "quoted"),
    [
        ([{"role": "user", "text": "Look into the night."}], "- user: Look into the night."),
        ([], "- tool: WARN the PG cancel api is slow in RefundService.refund: HikariPool connection is not available"),
    ],
)
def test_a_hint_from_a_long_run_of_tool_calls_has_the_question(
    ctxr: Ctxr, asked: list[dict[str, str]], quoted: str
) -> None:
    found = "WARN the PG cancel api is slow in RefundService.refund: HikariPool connection is not available"
    printed = [*(f"step {number} passed" for number in range(12)), found]
    messages = [*asked, *({"role": "tool", "text": text} for text in printed)]
    talk = {"channel": "claude_session_night", "messages": messages, "meta": {"source": "claude"}}
    assert ctxr("log", "-", given=talk).exit_code == 0
    assert quoted in ctxr("note", "--prompt", TASK).output


def test_a_prompt_that_nobody_answered_is_no_hint(ctxr: Ctxr) -> None:
    messages = [{"role": "user", "text": TASK}, {"role": "user", "text": "then update the README"}]
    talk = {"channel": "claude_session_stopped", "messages": messages, "meta": {"source": "claude"}}
    assert ctxr("log", "-", given=talk).exit_code == 0
    assert ctxr("note", "--prompt", TASK).output == ""


def test_a_hint_quotes_of_a_long_answer_what_the_task_lacks_and_nothing_twice(ctxr: Ctxr) -> None:
    told = "RefundService.refund holds the HikariPool connection while the PG cancel api runs in a transaction."
    answer = f"{told} {told} Well. {'Let me look around first. ' * 20}So set `refund.pool.timeout=4711`."
    log(ctxr, "claude_session_refund", TASK, answer)
    hint = ctxr("note", "--prompt", TASK).output
    assert "Let me look around first. … So set `refund.pool.timeout=4711`." in hint
    assert hint.count("Let me look around") == 1
    assert hint.count(told) == 1


@pytest.mark.parametrize("prompt", ["write a poem about the sea and the harbour", "go on with step 3 please"])
def test_a_task_that_no_conversation_answers_gets_no_hint(past: Ctxr, prompt: str) -> None:
    done = past("note", "--prompt", prompt)
    assert (done.exit_code, done.output) == (0, "")


def test_ordinary_words_of_the_only_conversation_are_no_hint(ctxr: Ctxr) -> None:
    asked = "the tide curve for gauge 2 peaks at 3 in the afternoon, but the paper log says six in the evening"
    log(ctxr, "claude_session_tide", asked, "The logger's clock is UTC, and parse_logger.py reads it as local time.")
    rota = "make a fair rota for the museum desk: nobody opens at 3 in the afternoon after closing the evening before"
    assert ctxr("note", "--prompt", rota).output == ""
    assert "UTC" in ctxr("note", "--prompt", "parse_logger.py: the tide curve for gauge 2 peaks at 3 again").output


def test_a_chat_gets_one_hint_from_a_conversation_and_none_from_itself(past: Ctxr) -> None:
    log(past, "claude-code_session_new", TASK, "Which pool size do you have?")
    assert CURE in past("note", "--session", "claude-code_session_new", "--prompt", TASK).output
    assert past("note", "--session", "claude-code_session_new", "--prompt", TASK).output == ""


def test_a_read_only_registry_gives_hints(past: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (connections, database):
        monkeypatch.setattr(place, "is_read_only", lambda file: file.name == "registry.db" and file.is_file())
    assert CURE in past("note", "--prompt", TASK).output


def test_hints_can_be_switched_off(past: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXR_HINTS", "off")
    assert past("note", "--prompt", TASK).output == ""


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [
        (TASK, TASK),
        (f"<hook_context>the note of this chat</hook_context>\n{TASK}", TASK),
        (f"<system-reminder>\n1 agent was restored.\n</system-reminder>\n\n{TASK}", TASK),
        ("go on", None),
        ("/compact keep the decisions of today", None),
        ("<task-notification>the tests have passed again</task-notification>", None),
        ("line of a log\n" * 5, None),
        (WITH_LOG, WITH_LOG),
        (WITH_LOG + "\nline of a log" * 40, None),
        (FENCED, FENCED),
        (f"```\n{LOG}```", None),
        ("> Task :compileJava UP-TO-DATE", None),
        ("$ git status on the main branch", None),
    ],
)
def test_only_a_task_is_searched(prompt: str, asked: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def answers(words: list[str], *_: object) -> str:
        seen.append(words)
        return "a hint\n"

    monkeypatch.setattr("cli.shared.command.output_of_running", answers)
    payload: dict[str, Any] = {"session_id": "s-1", "cwd": "/home/me/shop", "prompt": prompt}
    said = hook.request_hint("codex", "UserPromptSubmit", payload)
    assert said == ("a hint" if asked else "")
    assert hook.request_hint("codex", "userPromptSubmitted", {**payload, "session_id": "", "sessionId": "s-1"}) == said
    words = ["note", "--session", "s-1", "--client", "codex", "--prompt", asked, "--", "/home/me/shop"]
    assert seen == ([words] * 2 if asked else [])
    for key in ("agent_id", "agentId"):
        assert hook.request_hint("codex", "UserPromptSubmit", {**payload, key: "a sub-agent"}) == ""
    assert hook.request_hint("codex", "Stop", payload) == ""
    if said:
        given = json.loads(hook.answer("codex", "UserPromptSubmit", payload, said))
        assert given["hookSpecificOutput"] == {"hookEventName": "UserPromptSubmit", "additionalContext": "a hint"}
