"""Token usage and costs: each answer is counted once, even if clients copy it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from orchestrator.service import Orchestrator
from orchestrator.sync.sync import sync
from registry.access import Access, Level
from registry.monitor.prices import price_of, use_prices
from registry.registry import Registry
from sources.base import Paths
from sources.readers import READERS
from tests.sources.claude_code import claude_code_files as claude_code
from tests.sources.codex import codex_files as codex
from tests.sources.copilot import copilot_files as copilot
from tests.sources.gemini import gemini_files as gemini
from tests.sources.goose import goose_files as goose
from tests.sources.opencode import opencode_files as opencode

pytestmark = pytest.mark.anyio


def write_claude_code(home: Path) -> None:
    """Write a session with two answers, a fork (a copy of both and a third one), a sub-agent's answer, and a fifth."""
    talk = claude_code.Dialogue(claude_code.session_id(1))
    talk.user("Why does the basket lose its items?")
    usage = {"input_tokens": 10, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 100}
    talk.says("I read the basket first.", "msg_1", usage={**usage, "output_tokens": 5})
    talk.calls("Read", {"file_path": "a.py"}, "toolu_1", "msg_1", usage={**usage, "output_tokens": 50})
    talk.result("toolu_1", "return []")
    talk.says("It makes a new list.", "msg_2", usage={"input_tokens": 20, "output_tokens": 200})
    agent = claude_code.Dialogue(talk.session_id, common={"isSidechain": True, "agentId": "a1"})
    agent.user("Find all baskets")
    agent.says("There are three.", "msg_4", usage={"input_tokens": 40, "output_tokens": 400}, model="claude-haiku-4-5")
    claude_code.write_agent(home / ".claude", agent, "a1")
    fork = claude_code.Dialogue(claude_code.session_id(2), parent=talk.parent, at=talk.at)
    fork.records = [{**record, "sessionId": fork.session_id} for record in talk.records]
    fork.user("Then fix it")
    fork.says("Done.", "msg_3", usage={"input_tokens": 30, "output_tokens": 300})
    claude_code.write(home / ".claude", fork)
    talk.user("Leave it")
    talk.says("As you wish.", "msg_5", usage={"input_tokens": 50, "output_tokens": 500})
    claude_code.write(home / ".claude", talk)


def add_counts(rollout: codex.Rollout, input_tokens: int, cached: int, output: int, last: tuple[int, int, int]) -> None:
    """Add an event with the thread's running totals and the last response's tokens."""
    total, last_told = (
        {
            "input_tokens": input_tokens,
            "cached_input_tokens": cached,
            "output_tokens": output,
            "reasoning_output_tokens": output // 10,
            "total_tokens": input_tokens + output,
        }
        for input_tokens, cached, output in ((input_tokens, cached, output), last)
    )
    rollout.event("token_count", info={"total_token_usage": total, "last_token_usage": last_told})


def write_codex(home: Path) -> None:
    """Write a thread of 3000 input (1000 cached) and 300 output tokens, and a fork of it with 500 (400) and 50."""
    thread = codex.Rollout(codex.thread_id(1))
    thread.meta()
    thread.turn("t1")
    thread.message("user", "Why does the basket lose its items?")
    thread.message("assistant", "It makes a new list.")
    add_counts(thread, 1000, 0, 100, (1000, 0, 100))
    add_counts(thread, 1000, 0, 100, (1000, 0, 100))  # only the rate limits changed
    thread.turn("t2")
    thread.message("user", "Then fix it")
    thread.message("assistant", "Done.")
    add_counts(thread, 3000, 1000, 300, (2000, 1000, 200))
    codex.write(home / ".codex", thread)
    fork = codex.Rollout(codex.thread_id(2), at=thread.at)
    fork.meta(forked_from_id=thread.thread)
    fork.records += thread.records
    fork.turn("t3")
    fork.message("user", "And a test")
    fork.message("assistant", "Tested.")
    add_counts(fork, 3500, 1400, 350, (500, 400, 50))
    codex.write(home / ".codex", fork)


def write_gemini(home: Path) -> None:
    """Write 1000 input tokens (600 cached), 50 output and 30 reasoning tokens."""
    chat = gemini.Chat(gemini.session_id(1))
    chat.user("Hello")
    chat.gemini("Hi.", tokens={"input": 1000, "output": 50, "cached": 600, "thoughts": 30, "tool": 0, "total": 1080})
    gemini.write(home / ".gemini", chat)


def write_opencode(home: Path) -> None:
    """Write 70 input, 7 cached, 40 output and 5 reasoning tokens."""
    talk = opencode.Dialogue(1)
    talk.user("Hello")
    talk.answer(
        opencode.text("Hi."), tokens={"input": 70, "output": 40, "reasoning": 5, "cache": {"read": 7, "write": 0}}
    )
    opencode.write_database(home / ".local/share/opencode", talk)


def write_copilot(home: Path) -> None:
    """Write output tokens with each answer, and input (including the cache) only at the end."""
    log = copilot.Log(copilot.session_id(1))
    log.add("session.start", sessionId=log.session, context={"cwd": "/home/ann/shop"})
    log.add("user.message", content="Hello")
    log.add("assistant.message", messageId="a", content="Hi.", model="gpt-5.2", outputTokens=60)
    used = {"inputTokens": 900, "outputTokens": 60, "cacheReadTokens": 700, "cacheWriteTokens": 100}
    log.add("session.shutdown", modelMetrics={"gpt-5.2": {"usage": used}})
    copilot.write_log(home / ".copilot", log, "name: x")


def write_goose(home: Path) -> None:
    """Write 800 input and 90 output tokens of the whole session, and those of the last request."""
    folder = home / ".local/share/goose/sessions"
    folder.mkdir(parents=True)
    messages = [goose.message("user", goose.text("Hello")), goose.message("assistant", goose.text("Hi."), seconds=1)]
    last: dict[str, Any] = {"input_tokens": 500, "output_tokens": 40, "total_tokens": 540}
    whole: dict[str, Any] = {f"accumulated_{name}": count for name, count in zip(last, (800, 90, 890), strict=True)}
    goose.write(folder, messages, **last, **whole, model_config_json='{"model_name": "claude-sonnet-4-5"}')


CLIENTS = {
    "claude-code": (write_claude_code, (5, 10 + 20 + 30 + 40 + 50, 50 + 200 + 300 + 400 + 500, 1000, 100)),
    "codex": (write_codex, (3, 2000 + 100, 300 + 50, 1000 + 400, 0)),
    "gemini-cli": (write_gemini, (1, 400, 80, 600, 0)),
    "goose": (write_goose, (1, 800, 90, 0, 0)),
    "opencode": (write_opencode, (1, 70, 45, 7, 0)),
    "copilot-cli": (write_copilot, (1, 100, 60, 700, 100)),
}


@pytest.fixture
def orchestrator(database_url: str) -> Iterator[Orchestrator]:
    registry = Registry(database_url)
    yield Orchestrator(registry)
    registry.close()


async def read(orchestrator: Orchestrator, home: Path) -> None:
    await sync(orchestrator, READERS, Paths(home, {}))


async def usage(orchestrator: Orchestrator, access: Access | None = None, **query: Any) -> dict[str, Any]:
    """Run the operation, and return its answer."""
    channel = query.pop("channel", None)
    answer = await orchestrator.run({"operation": "usage", "channel": channel, "query": query}, access=access)
    assert answer["success"], answer
    return answer


def sums(row: dict[str, Any]) -> tuple[int, ...]:
    return tuple(row[kind] for kind in ("answers", *(f"{kind}_tokens" for kind in KINDS)))


KINDS = ("input", "output", "cache_read", "cache_write")


@pytest.mark.both_databases
async def test_each_clients_tokens_are_counted_once_by_client_and_day(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    for write, _ in CLIENTS.values():
        write(empty_home)
    await read(orchestrator, empty_home)
    found = await usage(orchestrator, by="client")
    assert found["without_counts"] == []
    assert {row["name"]: sums(row) for row in found["rows"]} == {
        name: expected for name, (_, expected) in CLIENTS.items()
    }
    total = tuple(map(sum, zip(*(expected for _, expected in CLIENTS.values()), strict=True)))
    assert sums(found["total"]) == total
    assert sums((await usage(orchestrator, by="day"))["total"]) == total
    span: dict[str, Any] = {"from": "2026-05-04", "to": "2026-05-04"}
    assert [row["name"] for row in (await usage(orchestrator, by="day", **span))["rows"]] == ["2026-05-04"]


async def test_costs_follow_the_models_prices_and_models_without_a_price_are_named(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    write_claude_code(empty_home)
    message = {
        "role": "assistant",
        "text": "Hi.",
        "model": "house-model",
        "usage": {"input_tokens": 7, "output_tokens": 8},
    }
    await orchestrator.run({"operation": "save", "channel": "house", "messages": [message]})
    await read(orchestrator, empty_home)
    found = await usage(orchestrator, by="model")
    costs = {row["name"]: row["cost_usd"] for row in found["rows"]}
    assert costs["claude-opus-4-5"] == pytest.approx((110 * 5 + 1050 * 25 + 1000 * 0.5 + 100 * 6.25) / 1e6)
    assert costs["claude-haiku-4-5"] == pytest.approx((40 * 1 + 400 * 5) / 1e6)
    assert costs["house-model"] is None
    assert found["unpriced_models"] == ["house-model"]
    assert found["total"]["cost_usd"] == pytest.approx(costs["claude-opus-4-5"] + costs["claude-haiku-4-5"])


@pytest.mark.both_databases
async def test_a_fork_shows_its_whole_usage_and_totals_count_the_copied_part_once(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    write_claude_code(empty_home)
    await read(orchestrator, empty_home)
    rows = (await usage(orchestrator, by="session"))["rows"]
    assert sorted(row["input_tokens"] for row in rows) == [30, 40, 10 + 20 + 50]
    fork = claude_code.session_id(2)
    assert (await usage(orchestrator, channel=fork))["total"]["input_tokens"] == 10 + 20 + 30
    fetched = await orchestrator.run({"operation": "fetch", "query": {"session_id": fork, "message_limit": 5}})
    assert fetched["session"]["usage"]["input_tokens"] == 10 + 20 + 30


async def test_counts_that_a_client_writes_after_the_answer_are_stored(
    orchestrator: Orchestrator, empty_home: Path
) -> None:
    talk = claude_code.Dialogue(claude_code.session_id(1))
    talk.user("Why?")
    talk.says("Because.", "msg_1", usage={"output_tokens": 1})
    claude_code.write(empty_home / ".claude", talk)
    await read(orchestrator, empty_home)
    talk.calls("Read", {"file_path": "a.py"}, "toolu_1", "msg_1", usage={"output_tokens": 80})
    claude_code.write(empty_home / ".claude", talk)
    await read(orchestrator, empty_home)
    assert (await usage(orchestrator))["total"]["output_tokens"] == 80


async def test_answers_without_counts_are_reported_by_client(orchestrator: Orchestrator, empty_home: Path) -> None:
    write_claude_code(empty_home)
    await read(orchestrator, empty_home)
    turn = [{"role": "user", "text": "Hello"}, {"role": "assistant", "text": "Hi."}]
    await orchestrator.run({"operation": "save", "channel": "a", "source": "cursor", "messages": turn})
    assert (await usage(orchestrator))["without_counts"] == [{"client": "cursor", "answers": 1}]


async def test_counts_that_are_not_numbers_are_ignored(orchestrator: Orchestrator) -> None:
    for n, odd in enumerate(("many", -5, 1.5, None, [1], {"a": 1}, 10**30, "9" * 30, True)):
        message = {"role": "assistant", "text": f"Hi {n}.", "usage": {"output_tokens": odd, "input_tokens": 2}}
        answer = await orchestrator.run({"operation": "save", "channel": "odd", "messages": [message]})
        assert answer["success"]
    assert sums((await usage(orchestrator))["total"])[1] == 18
    assert sums((await usage(orchestrator))["total"])[2] <= 1


@pytest.mark.both_databases
async def test_an_access_token_for_one_channel_sees_only_its_usage(orchestrator: Orchestrator) -> None:
    for channel, count in (("mine", 5), ("yours", 70)):
        message = {"role": "assistant", "text": "Hi.", "usage": {"output_tokens": count}}
        await orchestrator.run({"operation": "save", "channel": channel, "messages": [message]})
    found = await usage(orchestrator, Access("phone", Level.READ, ("mine",)), by="session")
    assert [(row["name"], row["output_tokens"]) for row in found["rows"]] == [("mine", 5)]
    assert found["total"]["output_tokens"] == 5


@pytest.fixture
def price_folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    use_prices(tmp_path / "none", are_shown=True)


def test_a_configured_price_replaces_the_built_in_one_from_its_day_on(price_folder: Path) -> None:
    own = '[[price]]\nmodels = ["*claude-opus-4-5*", "house-*"]\nsince = 2026-02-01\ninput = 1\noutput = 2\n'
    (price_folder / "prices.toml").write_text(own, encoding="utf-8")
    use_prices(price_folder, are_shown=True)
    known, ours = (price_of("claude-opus-4-5-20251101", date(2026, month, 1)) for month in (1, 2))
    assert known
    assert ours
    assert (known.input, ours.input) == (5, 1)
    assert ours.dollars(dict.fromkeys(KINDS, 1_000_000)) == 1 + 2 + 1 + 1
    assert price_of("openrouter/house-model", date(2026, 1, 1)) == ours


def test_a_model_has_its_price_under_each_name() -> None:
    cases: list[tuple[str, float]] = [
        ("claude-sonnet-4-5-20250929", 3),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", 3),
        ("claude-4.5-opus-high-thinking", 5),
        ("anthropic/claude-3-5-haiku-latest", 0.8),
        ("gpt-5.2-codex-high", 1.75),
        ("gemini-2.5-flash", 0.3),
        ("claude-opus-4-1-20250805", 15),
    ]
    for model, given in cases:
        price = price_of(model, date(2026, 5, 4))
        assert price
        assert price.input == given


def test_a_variant_with_its_own_price_is_not_priced_like_the_plain_model() -> None:
    assert price_of("gpt-5.2-pro", date(2026, 5, 4)) is None
